"""What special functions cost: circles by the hundred thousand, and frequency caps.

    python asv_benchmarks/calls.py --subscriptions 100000 --caps 1000

On one thread, medians of runs in turns. Circles: subscriptions that ask for a circle each, of which
each event is in ten, beside the same circles asked one after the other. Caps: subscriptions with
two conditions and a cap, beside those with the two conditions alone; the caps have 1,000 distinct
lists of arguments, and an event has 10 caps, or 20.
"""

from __future__ import annotations

import argparse
import random
from time import perf_counter

import numpy as np
import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions

import colmatch as cm
from colmatch.arrays.frozen import freeze_view
from colmatch.events.special.circles import circles_of, places_in

ROWS = 8192
COLUMNS = 20
NOW = 1_700_000_000
CAPS = cm.betree.Domains("frequency_caps|frequency|true").arrow.field(0).type
ONE_BY_ONE = 64  # rows for which each circle is asked


def circles(count: int) -> None:
    """Circles of 2 to 10 km, with 100,000 of them, in a box of 10 x 20 degrees."""
    rng = np.random.default_rng(7)
    lat, lon = rng.uniform(40, 55, count), rng.uniform(0, 20, count)
    area = 15 * 20 * 111.2**2 * np.cos(np.radians(47.5))
    radius = np.sqrt(10 * area / count / np.pi) * rng.uniform(0.3, 1.5, count)
    columns = lat.tolist(), lon.tolist(), radius.tolist()
    texts = {
        id: f"geo_within_radius(lat, lon, {north!r}, {east!r}, {km!r})"
        for id, (north, east, km) in enumerate(zip(*columns, strict=True))
    }
    schema = {"lat": "float64", "lon": "float64", "a": "int64"}
    began = perf_counter()
    matcher = cm.Matcher.build(texts, schema, options=cm.Options(threads=1))
    built = perf_counter() - began
    places = {"lat": rng.uniform(40, 55, ROWS), "lon": rng.uniform(0, 20, ROWS)}
    events = pa.table(places | {"a": np.zeros(ROWS, np.int64)})
    every = circles_of(lat, lon, radius)
    every = every._replace(levels=every.levels[:0], anywhere=freeze_view(np.arange(count)))
    some = [places[name][:ONE_BY_ONE] for name in ("lat", "lon")]
    times = medians({"match": lambda: matcher.match(events), "one by one": lambda: places_in(every, *some)}, repeat=7)
    found, alone = times["match"] / ROWS * 1e6, times["one by one"] / ONE_BY_ONE * 1e6
    print(f"{count:,} circles, {matcher.match(events).num_rows / ROWS:.1f} matches an event; build {built:.1f} s")
    print(f"match          {found:10.2f} us an event")
    print(f"one by one     {alone:10.2f} us an event, {alone / found:.0f} times as much")
    first = events.slice(0, 1)
    took = []
    for id in range(count, count + 200):
        began = perf_counter()
        matcher.insert({id: f"geo_within_radius(lat, lon, 50, 10, {id})"})
        matcher.match(first)
        took.append(perf_counter() - began)
    print(f"insert of a new circle and a match of one event: {np.median(took[20:]) * 1e3:.2f} ms")
    matcher.close()


def caps(count: int, distinct: int) -> None:
    """Caps of which an event's own are asked for by five in six, and half of these are reached."""
    rng = random.Random(7)
    named = "\n".join(f"a{i}|integer|true" for i in range(COLUMNS))
    domains = cm.betree.Domains(f"{named}\nfrequency_caps|frequency|true\nnow|integer|true")
    lists: dict[tuple[str, int, str, int, int], None] = {}
    while len(lists) < distinct:
        value, seconds = rng.randrange(1, 6), rng.choice([0, 3600, 86400])
        lists[rng.choice(["flight", "campaign"]), rng.randrange(300), rng.choice("ab"), value, seconds] = None
    with_caps, without, constants = {}, {}, {}
    for id in range(count):
        type, number, space, value, seconds = rng.choice(list(lists)) if id >= distinct else list(lists)[id]
        plain = (
            f"a{rng.randrange(COLUMNS)} = {rng.randrange(1000)} and a{rng.randrange(COLUMNS)} < {rng.randrange(1000)}"
        )
        without[id] = plain
        with_caps[id] = f'{plain} and within_frequency_cap("{type}", "{space}", {value}, {seconds})'
        constants[id] = {f"{type}_id": number}
    options = cm.Options(threads=1)
    ours = cm.Matcher.build(with_caps, domains, options=options, language="betree", constants=constants)
    theirs = cm.Matcher.build(without, domains, options=options, language="betree")
    keys = [(type, number, space) for type in ("flight", "campaign") for number in range(300) for space in "ab"]

    def some_caps(number: int) -> list[dict[str, object]]:
        return [
            {"type": type, "id": id, "ns": space, "value": rng.randrange(8), "timestamp": (NOW - rng.randrange(200_000)) * 10**6}
            for type, id, space in rng.sample(keys, number)
        ]  # fmt: skip

    whole = np.random.default_rng(7).integers(0, 1000, (COLUMNS, ROWS))
    columns = {f"a{i}": values for i, values in enumerate(whole)}
    print(f"{count:,} subscriptions, {len(lists):,} lists of arguments; {ours.kind}")
    for number in (10, 20):
        held = pa.array([some_caps(number) for _ in range(ROWS)], CAPS)
        events = pa.table(columns | {"frequency_caps": held, "now": pa.array([NOW] * ROWS)})
        times = medians({"with": lambda e=events: ours.match(e), "without": lambda e=events: theirs.match(e)}, repeat=9)
        each = {name: seconds / ROWS * 1e6 for name, seconds in times.items()}
        pairs = ours.match(events).num_rows / ROWS, theirs.match(events).num_rows / ROWS
        print(
            f"events with {number} caps: {pairs[0]:.2f} matches an event, {pairs[1]:.2f} without the conditions on caps"
        )
        print(f"with caps      {each['with']:10.2f} us an event")
        print(f"without        {each['without']:10.2f} us an event")
        print(f"the caps cost  {each['with'] - each['without']:10.2f} us an event")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--caps", type=int, default=1000)
    given = parser.parse_args()
    one_thread()
    print(machine(), versions("colmatch", "pyarrow"), sep="\n")
    circles(given.subscriptions)
    caps(given.subscriptions, given.caps)


if __name__ == "__main__":
    main()
