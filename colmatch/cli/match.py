"""``colmatch match``: the subscriptions that are true for each row of a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from colmatch.cli.options import (
    format_option,
    ids_option,
    missing_option,
    now_option,
    null_option,
    out_format_option,
    tag_option,
)
from colmatch.errors import ColmatchError, EventError, suggest_names

if TYPE_CHECKING:
    import pyarrow as pa

    from colmatch import Matcher
    from colmatch.cli.arguments import Lacking, Now
    from colmatch.cli.files import Input
    from colmatch.given.options import MissingColumns
    from colmatch.matching.range_worker import RangeNames
    from colmatch.matching.subset import Subset
    from colmatch.matching.topk.arguments import Score

_F = TypeVar("_F", bound=Callable[..., Any])


def _shape_option(name: str, help: str) -> Callable[[_F], _F]:
    """Makes a flag that chooses the rows of the result. Users may give at most one such flag."""

    def chosen(context: click.Context, option: click.Parameter, given: bool) -> None:
        other = context.params.get("shape")
        if given and other:
            raise click.UsageError(f"--{other} and {name} have rows of their own: leave one out")
        if given:
            context.params["shape"] = option.name

    return click.option(name, is_flag=True, expose_value=False, callback=chosen, help=help)


def _check_top(top: int | None, shape: str | None, score: Score | None, weights: tuple[str, ...]) -> None:
    """Checks that options fit --top, or its absence."""
    if top is not None and shape is not None:
        raise click.UsageError(f"--top has rows of its own: leave --{shape} out")
    if top is None and (weights or score is not None):
        raise click.UsageError(f"{'--event-weights' if weights else '--score'} goes with --top")


@click.command()
@click.argument("index_path", metavar="INDEX")
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", default="-", show_default=True, metavar="OUT", help="Where to write the matches.")
@_shape_option("--count", "One row an event: how many subscriptions match it.")
@_shape_option("--lists", "One row an event: the list of its subscriptions (not as CSV).")
@_shape_option("--exists", "One row an event: whether any subscription matches it.")
@_shape_option("--hits", "One row a subscription that matches any: how many events it matches, most first.")
@ids_option
@tag_option
@click.option("--top", type=click.IntRange(min=1), metavar="K", help="The K most relevant of each event, with scores.")
@click.option(
    "--score",
    type=click.Choice(["dot", "sum", "max", "priority"]),
    help="With --top: how weights make a score.  [default: dot]",
)
@click.option(
    "--event-weights",
    "weights",
    multiple=True,
    metavar="COLUMN",
    help="With --top: a column of maps from attribute to weight; or ATTRIBUTE=COLUMN, or ATTRIBUTE=NUMBER. Repeatable.",
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="Write this column of the events as well. Repeatable.")
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="NAME=LOW,HIGH",
    help="A column of the expressions that is a range in each event, from column LOW to column HIGH. Repeatable.",
)
@now_option
@missing_option
@format_option("--format", "EVENTS")
@out_format_option
@null_option
def match(
    index_path: str,
    events: tuple[str, ...],
    output: str,
    keep: tuple[str, ...],
    ranges: tuple[str, ...],
    missing_columns: MissingColumns | None,
    format: str | None,
    out_format: str | None,
    nulls: tuple[str, ...],
    top: int | None,
    score: Score | None,
    weights: tuple[str, ...],
    ids: str | None,
    tags: tuple[str, ...],
    now: str | None,
    shape: str | None = None,
) -> None:
    """Write which subscriptions of INDEX are true for each row of EVENTS.

    The result has a row for each match, with the number of the event (its row, from 0) and the id
    of the subscription.

    \b
    colmatch match alerts.cm flights.parquet -o fired.parquet
    cat flights.csv | colmatch match alerts.cm - --format csv --keep carrier,flight | head
    colmatch match alerts.cm flights.parquet --top 5 --event-weights delay=urgency
    colmatch match alerts.cm flights.parquet --hits | head
    """
    import pyarrow as pa

    from colmatch.cli import arguments, writing
    from colmatch.events.gather import Source, batches
    from colmatch.matching.topk.arguments import check_topk
    from colmatch.show.progress import bar

    matcher = arguments.open_matcher(index_path, missing_columns)
    _check_top(top, shape, score, weights)
    best = None if top is None else (top, score or "dot", arguments.read_event_weights(weights))
    needed = [] if best is None else check_topk(*best, matcher.schema).columns
    shape = shape or ("pairs" if top is None else "best")
    written = writing.out_format(output, out_format, "jsonl" if shape == "lists" else "csv")
    if written == "csv" and shape == "lists":
        raise click.UsageError("CSV cannot carry lists: write jsonl, parquet or arrow, or leave --lists out")
    kept = list(dict.fromkeys(name.strip() for names in keep for name in names.split(",") if name.strip()))
    if kept and shape == "hits":
        raise click.UsageError("--hits has no row for an event: leave --keep or --hits out")
    spans, among = arguments.read_ranges(ranges), arguments.read_subset(matcher, ids, tags)
    typed, time = _find_weight_types(best, needed), arguments.clock_for(matcher, arguments.read_now(now))
    with arguments.reading_events(matcher, events, format, kept, nulls, weights=typed, ranges=spans, now=time) as rows:
        lacking = arguments.Lacking(matcher, spans)
        if shape == "hits":
            hits = _hits(matcher, rows, spans, among, time, lacking)
            writing.write_all(output, hits.to_batches(), hits.schema, written)
            lacking.say()
            return
        schema = _result_schema(matcher, rows, shape, kept, events)
        common = schema, shape, kept, best, needed, spans, among, time
        if "-" not in events:  # while standard input is read, the output must be open for Ctrl-C
            nulls_alone = pa.RecordBatch.from_arrays(
                [pa.nulls(1, field.type) for field in rows.schema], schema=rows.schema
            )
            for _ in _results(matcher, nulls_alone, 0, *common):
                pass  # reports absent columns and wrong types, before anything is written
        with (
            writing.writing(output, schema, written) as writer,
            bar(rows.total, "events", sys.stderr.isatty()) as shown,
        ):
            start = 0
            source = Source(lambda _: rows.schema, rows.batches, False)
            for batch in batches(source, matcher.options.batch_rows):
                try:
                    for result in _results(matcher, batch, start, *common):
                        writer.write_batch(result)
                except EventError as error:
                    error.count_from(start)
                    raise
                lacking.look(batch)
                start += batch.num_rows
                shown.update(batch.num_rows)
    lacking.say()


def _hits(
    matcher: Matcher, rows: Input, ranges: RangeNames | None, among: Subset | None, now: Now, lacking: Lacking
) -> pa.Table:
    """Returns the number of events that each subscription matches.

    Rows are ordered by that number, the most first, and then like the ids.
    """
    import pyarrow as pa

    from colmatch.show.progress import bar

    with bar(rows.total, "events", sys.stderr.isatty()) as shown:

        def seen() -> Iterator[pa.RecordBatch]:
            for batch in rows.batches:
                yield batch
                lacking.look(batch)
                shown.update(batch.num_rows)

        events = pa.RecordBatchReader.from_batches(rows.schema, seen())
        return matcher.hits(events, ranges, ids=among, now=now).sort_by([("events", "descending")])


def _find_weight_types(best: tuple[int, Score, Any] | None, needed: Sequence[str]) -> dict[str, pa.DataType]:
    """Returns the types of the columns of weights, for formats without types."""
    import pyarrow as pa

    maps = best is not None and isinstance(best[2], str)
    return dict.fromkeys(needed, pa.map_(pa.string(), pa.float64()) if maps else pa.float64())


def _result_schema(matcher: Matcher, rows: Input, shape: str, kept: Sequence[str], paths: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    id_type = matcher.ids.type
    last = {
        "pairs": [("subscription", id_type)],
        "best": [("subscription", id_type), ("score", pa.float64())],
        "count": [("matches", pa.int64())],
        "exists": [("matches", pa.bool_())],
        "lists": [("subscriptions", pa.list_(id_type))],
    }[shape]
    fields = [pa.field("event", pa.int64())]
    for name in kept:
        if name not in rows.schema.names:
            hint = suggest_names(name, rows.names, "the file")
            raise ColmatchError(f"{' '.join(paths)} has no column {name!r} to keep: {hint}")
        if name in ("event", *(result for result, _ in last)):
            raise ColmatchError(f"column {name!r} cannot be kept: the result has a column of that name")
        fields.append(rows.schema.field(name))
    return pa.schema([*fields, *(pa.field(*result) for result in last)])


def _results(
    matcher: Matcher,
    batch: pa.RecordBatch,
    start: int,
    schema: pa.Schema,
    shape: str,
    kept: Sequence[str],
    best: tuple[int, Score, Any] | None,
    needed: Sequence[str],
    ranges: RangeNames | None,
    among: Subset | None,
    now: Now,
) -> Iterator[pa.RecordBatch]:
    """Yields the output for the events of ``batch``, which count from ``start``.

    best, needed : arguments of ``match_topk``, and the columns that it needs for weights
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from colmatch.events.gather import match_names

    used = batch.select(match_names(batch.schema.names, [*matcher.columns_with(ranges), *needed]))
    columns = batch.select(kept)
    if shape in ("pairs", "best"):
        pieces = (
            matcher.match_batches(used, ranges, ids=among, now=now)
            if best is None
            else matcher.match_topk_batches(used, *best, ranges=ranges, ids=among, now=now)
        )
        for pairs in pieces:
            event = pairs["event"]
            rows = [column.take(event) for column in columns.columns]
            yield pa.RecordBatch.from_arrays([pc.add(event, start), *rows, *pairs.columns[1:]], schema=schema)
        return
    numbers = pa.array(np.arange(start, start + batch.num_rows))
    if shape == "count":
        last = pa.array(matcher.count(used, ranges, ids=among, now=now), pa.int64())
    elif shape == "exists":
        last = pa.array(matcher.exists(used, ranges, ids=among, now=now))
    else:
        last = matcher.match_lists(used, ranges, ids=among, now=now).combine_chunks()
    yield pa.RecordBatch.from_arrays([numbers, *columns.columns, last], schema=schema)
