"""``colmatch test`` and ``colmatch diff``: what rules must do, and what a release changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from colmatch.cli.options import format_option, missing_option, now_option, null_option, out_format_option
from colmatch.cli.shell import say
from colmatch.errors import ColmatchError, EventError, show_value

if TYPE_CHECKING:
    import pyarrow as pa

    from colmatch import Matcher
    from colmatch.given.options import MissingColumns

SHOWN = 20  # failed expectations that are explained
_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


class Expectation(NamedTuple):
    """The expected result of a subscription: a match with an event, none, or a number of events."""

    id: int | str
    event: int | None  # number of the event; None for a number of events
    least: int
    most: int | None  # None for any number

    def allows(self, number: int) -> bool:
        """Returns whether a number of events is as expected."""
        return self.least <= number and (self.most is None or number <= self.most)

    @property
    def bounds(self) -> str:
        """The expected number of events, in words."""
        words = [f"at least {self.least:,}"] if self.least or self.most is None else []
        return " and ".join(words if self.most is None else [*words, f"at most {self.most:,}"])

    def describe(self) -> str:
        if self.event is not None:
            return f"subscription {self.id!r} and event {self.event}"
        return f"subscription {self.id!r}"


class Failure(NamedTuple):
    """An expectation that was not met."""

    expectation: Expectation
    message: str
    explanation: str = ""


@click.command()
@click.argument("index_path", metavar="INDEX")
@click.argument("events", nargs=-1, required=True)
@click.option("--expect", "expect_path", required=True, metavar="FILE", help="What the rules must do, see above.")
@click.option("--junit", "junit_path", metavar="OUT", help="Write the result as XML of JUnit, too.")
@now_option
@missing_option
@format_option("--format", "EVENTS")
@null_option
def test(
    index_path: str,
    events: tuple[str, ...],
    expect_path: str,
    junit_path: str | None,
    now: str | None,
    missing_columns: MissingColumns | None,
    format: str | None,
    nulls: tuple[str, ...],
) -> None:
    """Test rules of INDEX: whether they match the rows of EVENTS that FILE says.

    FILE has the columns id, event (number of the row, from 0) and expected (true or false). Or it
    has id, at_least and at_most: how many of the events the rule matches. A file may have both, and
    an empty field asks nothing. The command explains what failed, and ends with 1 then.

    \b
    colmatch test alerts.cm flights.parquet --expect expected.csv --junit result.xml
    """
    from colmatch.cli.arguments import open_matcher

    matcher = open_matcher(index_path, missing_columns)
    expectations = read_expectations(matcher, expect_path)
    failures = _failures(matcher, events, expectations, now, format, nulls)
    for failure in failures[:SHOWN]:
        click.echo(f"{failure.expectation.describe()}: {failure.message}")
        if failure.explanation:
            click.echo("\n".join(f"  {line}" for line in failure.explanation.splitlines()[1:]))
    if len(failures) > SHOWN:
        click.echo(f"and {len(failures) - SHOWN:,} more")
    click.echo(f"{len(expectations):,} expectations, {len(failures):,} failed")
    if junit_path is not None:
        write_junit(junit_path, index_path, expectations, failures)
    if failures:
        raise click.exceptions.Exit(1)


def read_expectations(matcher: Matcher, path: str) -> list[Expectation]:
    """Reads a file of expectations.

    Raises ColmatchError: a column is missing, or a row asks nothing, or an id has no subscription.
    """
    import pyarrow as pa

    from colmatch.cli.files import read_table

    whole = dict.fromkeys(("event", "at_least", "at_most"), pa.int64())
    table = read_table(path, types={"id": matcher.ids.type, **whole}, texts=["expected"])
    names = table.column_names
    if "id" not in names or ("event" not in names and not {"at_least", "at_most"} & set(names)):
        raise ColmatchError(
            f"{path}: the columns id, event and expected are needed, or id with at_least or at_most; there are {', '.join(names)}"
        )
    found = []
    for row, given in enumerate(table.to_pylist()):
        try:
            found.append(_expectation(given))
        except ValueError as error:
            raise ColmatchError(f"{path}, row {row}: {error}") from None
        if found[-1].id not in matcher:
            raise ColmatchError(f"{path}, row {row}: there is no subscription {show_value(found[-1].id)}")
    return found


def _expectation(given: dict[str, Any]) -> Expectation:
    event, expected = given.get("event"), given.get("expected")
    least, most = given.get("at_least"), given.get("at_most")
    if event is None:
        if expected is not None:
            raise ValueError("expected goes with the number of an event")
        if least is None and most is None:
            raise ValueError("it has no event, and neither at_least nor at_most")
        if min(least or 0, most or 0) < 0 or (most is not None and (least or 0) > most):
            raise ValueError(f"at least {least} and at most {most} events cannot be")
        return Expectation(given["id"], None, least or 0, most)
    if least is not None or most is not None:
        raise ValueError("at_least and at_most are about all events: leave event empty")
    truth = True if expected is None else _TRUTHS.get(str(expected).strip().lower())
    if truth is None:
        raise ValueError(f"expected is {show_value(expected)}: true or false is needed")
    if event < 0:
        raise ValueError(f"event {event}: rows count from 0")
    return Expectation(given["id"], event, int(truth), int(truth))


def _failures(
    matcher: Matcher,
    events: Sequence[str],
    expectations: Sequence[Expectation],
    now: str | None,
    format: str | None,
    nulls: Sequence[str],
) -> list[Failure]:
    """Returns the expectations that the events do not meet, in their order.

    Raises ColmatchError: an expectation is about a row that is not there.
    """
    from colmatch.cli.arguments import clock_for, read_now, reading_events

    asked: dict[int, list[Expectation]] = {}
    for one in expectations:
        if one.event is not None:
            asked.setdefault(one.event, []).append(one)
    counted = {one.id for one in expectations if one.event is None}
    counts, failed, seen = dict.fromkeys(counted, 0), dict[Expectation, Failure](), 0
    time = clock_for(matcher, read_now(now))
    with reading_events(matcher, events, format, [], nulls, now=time) as rows:
        for batch in rows.batches:
            try:
                if counted:
                    for id, number in zip(
                        *matcher.hits(batch, ids=list(counted), now=time).to_pydict().values(), strict=True
                    ):
                        counts[id] += number
                for event in sorted(asked.keys() & range(seen, seen + batch.num_rows)):
                    failed |= _failures_of_event(matcher, batch.slice(event - seen, 1), asked.pop(event), time)
            except EventError as error:
                error.count_from(seen)
                raise
            seen += batch.num_rows
    if asked:
        raise ColmatchError(
            f"{' '.join(events)} has {seen:,} rows, so there is no row {min(asked)} (they count from 0)"
        )
    for one in expectations:
        if one.event is None and not one.allows(number := counts[one.id]):
            failed[one] = Failure(one, f"matches {number:,} events, not {one.bounds}")
    return [failed[one] for one in dict.fromkeys(expectations) if one in failed]


def _failures_of_event(
    matcher: Matcher, event: pa.RecordBatch, expectations: Sequence[Expectation], time: Any
) -> Iterator[tuple[Expectation, Failure]]:
    matched = set(matcher.match_lists(event, ids=[one.id for one in expectations], now=time)[0].as_py())
    for one in expectations:
        if (one.id in matched) is not bool(one.least):
            message = "matches, and must not" if one.id in matched else "does not match, and must"
            yield one, Failure(one, message, str(matcher.explain(event, one.id, now=time)))


def write_junit(path: str, name: str, expectations: Sequence[Expectation], failures: Sequence[Failure]) -> None:
    """Writes the result of a test as XML of JUnit."""
    from xml.etree import ElementTree

    failed = {failure.expectation: failure for failure in failures}
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(expectations)), failures=str(len(failures)))
    for one in expectations:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=one.describe())
        if one in failed:
            failure = ElementTree.SubElement(case, "failure", message=failed[one].message)
            failure.text = failed[one].explanation
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


@click.command()
@click.argument("old_path", metavar="OLD")
@click.argument("new_path", metavar="NEW")
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", default="-", show_default=True, metavar="OUT", help="Where to write the differences.")
@click.option("--count", "counts", is_flag=True, help="One row a subscription: how many events it gains and loses.")
@click.option("--exit-code", is_flag=True, help="End with 1 if anything differs.")
@now_option
@missing_option
@format_option("--format", "EVENTS")
@out_format_option
@null_option
def diff(
    old_path: str,
    new_path: str,
    events: tuple[str, ...],
    output: str,
    counts: bool,
    exit_code: bool,
    now: str | None,
    missing_columns: MissingColumns | None,
    format: str | None,
    out_format: str | None,
    nulls: tuple[str, ...],
) -> None:
    """Write which rows of EVENTS each rule matches in NEW and not in OLD, and the other way round.

    OLD and NEW are indexes. The result has a row for each difference: the number of the event, the
    id of the subscription, and "gained" or "lost".

    \b
    colmatch diff alerts.cm next.cm flights.parquet --count
    """
    from colmatch.cli import writing
    from colmatch.cli.arguments import open_matcher

    old, new = (open_matcher(path, missing_columns) for path in (old_path, new_path))
    if old.ids.type != new.ids.type and len(old) and len(new):
        raise ColmatchError(f"the ids of {old_path} are {old.ids.type}, those of {new_path} are {new.ids.type}")
    written = writing.out_format(output, out_format)
    table = _differences(old, new, events, now, format, nulls)
    differs = table.num_rows > 0
    if counts:
        table = _count(table)
    writing.write_all(output, table.to_batches(), table.schema, written)
    changed = _changed_texts(old, new)
    if changed is not None:
        say(f"note: new rules: {changed[0]:,}, written in another way: {changed[1]:,}, gone: {changed[2]:,}")
    names = {name for one in (old, new) for name in one.definitions}
    if other := sorted(name for name in names if old.definitions.get(name) != new.definitions.get(name)):
        say(f"note: definitions that differ: {', '.join(other)}")
    if exit_code and differs:
        raise click.exceptions.Exit(1)


def _differences(
    old: Matcher, new: Matcher, events: Sequence[str], now: str | None, format: str | None, nulls: Sequence[str]
) -> pa.Table:
    """Returns the table (event, subscription, change) of the matches that only one matcher has."""
    import pyarrow as pa

    from colmatch.cli.arguments import clock_for, read_now, reading_events

    if "-" in events:
        raise ColmatchError("the events are read twice, so standard input will not do: name a file")
    found = []
    for matcher in (old, new):  # each reads the columns that it needs, in its own types
        time = clock_for(matcher, read_now(now))
        with reading_events(matcher, events, format, [], nulls, now=time) as rows:
            found.append(matcher.match(pa.RecordBatchReader.from_batches(rows.schema, rows.batches), now=time))
    type = found[0].schema.field("subscription").type if len(old) else found[1].schema.field("subscription").type
    found = [table.set_column(1, "subscription", table["subscription"].cast(type)) for table in found]
    keys = ["event", "subscription"]
    parts = []
    for here, other, word in ((found[1], found[0], "gained"), (found[0], found[1], "lost")):
        rows = here.join(other, keys, join_type="left anti")
        parts.append(rows.append_column("change", pa.array([word] * rows.num_rows, pa.string())))
    return pa.concat_tables(parts).sort_by([("event", "ascending"), ("subscription", "ascending")])


def _count(table: pa.Table) -> pa.Table:
    """Returns the table (subscription, gained, lost), the most differences first."""
    import pyarrow.compute as pc

    for word in ("gained", "lost"):
        table = table.append_column(word, pc.cast(pc.equal(table["change"], word), "int64"))
    table = table.group_by("subscription").aggregate([("gained", "sum"), ("lost", "sum")])
    table = table.rename_columns(["subscription", "gained", "lost"])
    return (
        table.append_column("both", pc.add(table["gained"], table["lost"]))
        .sort_by([("both", "descending"), ("subscription", "ascending")])
        .drop_columns(["both"])
    )


def _changed_texts(old: Matcher, new: Matcher) -> tuple[int, int, int] | None:
    """Returns how many rules are new, changed and gone; None where texts were not kept."""
    from colmatch.errors import SubscriptionError

    try:
        before, after = (
            dict(zip(*matcher.to_table().select(["id", "expression"]).to_pydict().values(), strict=True))
            for matcher in (old, new)
        )
    except SubscriptionError:
        return None
    changed = sum(before.get(id, text) != text for id, text in after.items())
    return len(after.keys() - before.keys()), changed, len(before.keys() - after.keys())
