"""The commands ``build``, ``match``, ``explain``, ``stats``, ``kinds`` and ``demo``; ``bench.py``
and ``generate.py`` have one each.

Everything heavy is imported inside the commands, so that ``colmatch --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from colmatch import __version__
from colmatch.cli.bench import bench
from colmatch.cli.generate import generate
from colmatch.cli.shell import Shell, plain, print_figures, say
from colmatch.errors import ColmatchError

if TYPE_CHECKING:
    import pyarrow as pa

    from colmatch import Matcher
    from colmatch.cli.files import Rows

_FORMATS = ["parquet", "arrow", "arrows", "csv", "jsonl"]  # colmatch.cli.files.FORMATS, without importing pyarrow
_F = TypeVar("_F", bound=Callable[..., Any])


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"colmatch {__version__}")
        ctx.exit()


@click.group(cls=Shell, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def cli() -> None:
    """Which of many Boolean expressions are true for each row of a file.

    \b
    colmatch build alerts.csv --like flights.parquet -o alerts.colmatch
    colmatch match alerts.colmatch flights.parquet -o fired.parquet
    colmatch explain alerts.colmatch flights.parquet --row 17 --id 4
    colmatch demo

    Files are parquet, Arrow, CSV or JSON lines, by their extension. "-" is standard input or
    output.
    """


def _format_option(name: str, whose: str) -> Callable[[_F], _F]:
    return click.option(
        name, type=click.Choice(_FORMATS), help=f"Format of {whose}; by default what its extension says."
    )


_missing_option = click.option(
    "--missing-columns",
    type=click.Choice(["error", "null"]),
    help="What it means that EVENTS lacks a column that expressions use; by default what INDEX was built with. "
    "Of JSON lines it is known behind the last line.",
)
_null_option = click.option(
    "--null", "nulls", multiple=True, metavar="TEXT", help="CSV: a text that means NULL, as an empty field does."
)


@cli.command()
@click.argument("subs", nargs=-1, required=True)
@click.option("-o", "--output", "index_path", required=True, metavar="INDEX", help="Where to save the index.")
@click.option(
    "--schema",
    "schema_text",
    metavar="SCHEMA",
    help='Columns of the events: "age:int64, city:string", or a file that says so.',
)
@click.option("--like", metavar="EVENTS", help="Take the columns of the events from this file.")
@click.option(
    "--index", "kind", default="auto", show_default=True, metavar="KIND", help="Kind of index, see `colmatch kinds`."
)
@click.option(
    "--errors", type=click.Choice(["raise", "collect"]), help="Stop at a bad expression, or leave it out and go on."
)
@click.option(
    "--rejected", "rejected_path", metavar="FILE", help="Write bad expressions here; implies --errors collect."
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A tunable, as in --option batch_rows=4096. Repeatable.",
)
@click.option(
    "--ids", type=click.Choice(["int64", "string"]), help="CSV: type of the ids; by default what they look like."
)
@_format_option("--format", "SUBS")
def build(
    subs: tuple[str, ...],
    index_path: str,
    schema_text: str | None,
    like: str | None,
    kind: str,
    errors: str | None,
    rejected_path: str | None,
    options: tuple[str, ...],
    ids: str | None,
    format: str | None,
) -> None:
    """Build an index of the expressions in SUBS and save it.

    SUBS has the columns id and expression; or, one row a predicate, the columns id, attribute, op
    and operands (several such files may be given, one for each type of operands).

    \b colmatch build alerts.csv --schema "origin:string, dest:string, dep_delay:double" -o
    alerts.colmatch
    """
    from colmatch import Matcher
    from colmatch.cli.arguments import read_options, read_subscriptions, schema_from, schema_of

    if (schema_text is None) == (like is None):
        raise click.UsageError("say what columns the events have: one of --schema and --like")
    if rejected_path and errors == "raise":
        raise click.UsageError("--rejected needs --errors collect")
    chosen = read_options(options)
    schema = schema_of(like) if like is not None else schema_from(schema_text or "")
    if rejected_path:
        from colmatch.cli.files import format_of

        format_of(rejected_path)  # an unknown extension is better said before the work than after it
    matcher = Matcher.build(
        read_subscriptions(subs, format, ids),
        schema,
        index=kind,
        options=chosen,
        errors="collect" if rejected_path or errors == "collect" else "raise",
    )
    matcher.save(index_path)
    bad = list(matcher.rejected)
    if rejected_path:
        _write_rejected(rejected_path, bad)
    else:
        for one in bad[:10]:
            place = f" (line {one.position[0]}, column {one.position[1]})" if one.position else ""
            say(f"rejected {one.id!r}: {' '.join(one.message.split())}{place}")
        if len(bad) > 10:
            say(f"and {len(bad) - 10:,} more; --rejected FILE keeps them all")
    left_out = f", {len(bad):,} rejected" if bad else ""
    say(f"{len(matcher):,} subscriptions{left_out}, index {matcher.kind}, saved as {index_path}")


def _write_rejected(path: str, bad: Sequence[Any]) -> None:
    import pyarrow as pa

    from colmatch.cli.writing import writing

    batch = pa.record_batch(
        {
            "id": pa.array([one.id for one in bad]) if bad else pa.array([], pa.int64()),
            "line": pa.array([one.position[0] if one.position else None for one in bad], pa.int64()),
            "column": pa.array([one.position[1] if one.position else None for one in bad], pa.int64()),
            "message": pa.array([one.message for one in bad], pa.string()),
        }
    )
    with writing(path, batch.schema) as writer:
        writer.write_batch(batch)


@cli.command()
@click.argument("index_path", metavar="INDEX")
@click.argument("events")
@click.option("-o", "--output", default="-", show_default=True, metavar="OUT", help="Where to write the matches.")
@click.option("--count", "shape", flag_value="count", help="One row an event: how many subscriptions match it.")
@click.option(
    "--lists", "shape", flag_value="lists", help="One row an event: the list of its subscriptions (not as CSV)."
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="Write this column of the events as well. Repeatable.")
@_missing_option
@_format_option("--format", "EVENTS")
@_format_option("--out-format", "OUT (standard output: csv, or jsonl with --lists)")
@_null_option
def match(
    index_path: str,
    events: str,
    output: str,
    shape: str | None,
    keep: tuple[str, ...],
    missing_columns: str | None,
    format: str | None,
    out_format: str | None,
    nulls: tuple[str, ...],
) -> None:
    """Write which subscriptions of INDEX are true for each row of EVENTS.

    One row a match: the number of the event (its row, from 0) and the id of the subscription.

    \b
    colmatch match alerts.colmatch flights.parquet -o fired.parquet
    cat flights.csv | colmatch match alerts.colmatch - --format csv --keep carrier,flight | head
    """
    from colmatch.cli.files import format_of, rebatch
    from colmatch.cli.writing import writing

    matcher = _open(index_path, missing_columns)
    shape = shape or "pairs"
    if output == "-" and out_format is None:
        out_format = "jsonl" if shape == "lists" else "csv"
    if format_of(output, out_format) == "csv" and shape == "lists":
        raise click.UsageError("CSV cannot carry lists: write jsonl, parquet or arrow, or leave --lists out")
    if output == "-" and out_format == "arrows" and sys.stdout.isatty():
        raise click.UsageError("Arrow is not for a terminal: pipe it, or write it to a file with -o")
    kept = list(dict.fromkeys(name.strip() for names in keep for name in names.split(",") if name.strip()))
    with _events(matcher, events, format, kept, nulls) as rows:
        schema = _result_schema(matcher, rows, shape, kept, events)
        with writing(output, schema, out_format) as writer, _bar(rows.total) as advance:
            start = 0
            for batch in rebatch(rows.batches, matcher.options.batch_rows):
                for result in _results(matcher, batch, start, schema, shape, kept):
                    writer.write_batch(result)
                start += batch.num_rows
                advance(batch.num_rows)


def _open(path: str, missing_columns: str | None = None) -> Matcher:
    from colmatch import Matcher

    if not os.path.exists(path):
        raise FileNotFoundError(2, "no such index", path)
    matcher = Matcher.open(path)
    if missing_columns is not None:
        matcher.options = replace(matcher.options, missing_columns=missing_columns)
    return matcher


@contextmanager
def _events(
    matcher: Matcher, path: str, format: str | None, kept: Sequence[str], nulls: Sequence[str], whole: bool = True
) -> Iterator[Rows]:
    """The columns of the events that are needed, in the types that the matcher was built with.

    ``whole``: all must be there.
    """
    from colmatch.cli.files import reading

    used, types, strict = matcher.columns, matcher.schema.arrow, whole and matcher.options.missing_columns == "error"
    wanted = [*used, *kept]
    with reading(
        path, format, schema=types, columns=wanted, required=matcher.paths, strict=strict, nulls=["", *nulls]
    ) as rows:
        folded = {name.lower() for name in rows.schema.names}
        absent = [name for name in used if name.lower() not in folded]
        if absent and whole:
            say(
                f"note: {path} has no column {', '.join(map(repr, absent))}, which the expressions use: NULL throughout"
            )
        yield rows


def _result_schema(matcher: Matcher, rows: Rows, shape: str, kept: Sequence[str], path: str) -> pa.Schema:
    import pyarrow as pa

    id_type = matcher.ids.type
    last = {
        "pairs": ("subscription", id_type),
        "count": ("matches", pa.int64()),
        "lists": ("subscriptions", pa.list_(id_type)),
    }[shape]
    fields = [pa.field("event", pa.int64())]
    for name in kept:
        if name not in rows.schema.names:
            raise ColmatchError(f"{path} has no column {name!r} to keep")
        if name in ("event", last[0]):
            raise ColmatchError(f"column {name!r} cannot be kept: the result has a column of that name")
        fields.append(rows.schema.field(name))
    return pa.schema([*fields, pa.field(*last)])


def _results(
    matcher: Matcher, batch: pa.RecordBatch, start: int, schema: pa.Schema, shape: str, kept: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """What is to be written about the events of ``batch``, the first of which is event number
    ``start``.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from colmatch.events.gather import meant

    used = batch.select(meant(batch.schema.names, matcher.columns))
    columns = batch.select(kept)
    if shape == "pairs":
        for pairs in matcher.match_batches(used):
            event = pairs["event"]
            rows = [column.take(event) for column in columns.columns]
            yield pa.RecordBatch.from_arrays([pc.add(event, start), *rows, pairs["subscription"]], schema=schema)
        return
    numbers = pa.array(np.arange(start, start + batch.num_rows))
    if shape == "count":
        last = pa.array(matcher.count(used), pa.int64())
    else:
        last = matcher.match_lists(used).combine_chunks()
    yield pa.RecordBatch.from_arrays([numbers, *columns.columns, last], schema=schema)


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[int], object]]:
    """A progress bar, when somebody is there to see it."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" events", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield bar.update


@cli.command()
@click.argument("index_path", metavar="INDEX")
@click.argument("events")
@click.option("--row", default=0, show_default=True, type=click.IntRange(min=0), help="Number of the event, from 0.")
@click.option("--id", "id_text", required=True, help="Id of the subscription.")
@_missing_option
@_format_option("--format", "EVENTS")
@_null_option
def explain(
    index_path: str,
    events: str,
    row: int,
    id_text: str,
    missing_columns: str | None,
    format: str | None,
    nulls: tuple[str, ...],
) -> None:
    """Show why a subscription of INDEX is true, or is not, for one row of EVENTS.

    \b colmatch explain alerts.colmatch flights.parquet --row 17 --id 4 echo '{"origin": "JFK",
    "dep_delay": 50}' | colmatch explain alerts.colmatch - --format jsonl --id 4
    """
    import pyarrow as pa

    matcher = _open(index_path, missing_columns)
    id: int | str = id_text
    if pa.types.is_integer(matcher.ids.type):
        try:
            id = int(id_text)
        except ValueError:
            raise click.BadParameter(
                f"{id_text!r}: the ids of this index are whole numbers", param_hint="'--id'"
            ) from None
    with _events(matcher, events, format, [], nulls, whole=False) as rows:
        seen = 0
        for batch in rows.batches:
            if row < seen + batch.num_rows:
                event = pa.Table.from_batches([batch.slice(row - seen, 1)])
                event = event.drop_columns(
                    [path[0] for path in rows.unseen if len(path) == 1 and path[0] in event.column_names]
                )
                break
            seen += batch.num_rows
        else:
            raise ColmatchError(f"{events} has {seen:,} rows, so there is no row {row} (they count from 0)")
    click.echo(str(matcher.explain(event, id)))


@cli.command()
@click.argument("index_path", metavar="INDEX")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def stats(index_path: str, as_json: bool) -> None:
    """Show what INDEX holds: sizes, the kind of index and why it was chosen.

    \b
    colmatch stats alerts.colmatch
    """
    import json

    figures = _open(index_path).stats()
    if as_json:
        click.echo(json.dumps(figures, indent=2, default=plain, ensure_ascii=False))
    else:
        print_figures(figures)


@cli.command()
def kinds() -> None:
    """List the kinds of index that --index takes.

    \b
    colmatch kinds
    """
    from colmatch import kinds as known

    for name in known():
        click.echo(name)


@cli.command()
@click.option("--alerts", default=100_000, show_default=True, type=click.IntRange(min=1), help="How many alerts.")
@click.option(
    "--flights", default=None, type=click.IntRange(min=1), help="How many flights, evenly out of the 336,776."
)
@click.option("--seed", default=2013, show_default=True, help="Of the alerts.")
@click.option(
    "--index", "kind", default="auto", show_default=True, metavar="KIND", help="Kind of index, see `colmatch kinds`."
)
def demo(alerts: int, flights: int | None, seed: int, kind: str) -> None:
    """Match a year of real flights with travellers' alerts.

    Needs `pip install "colmatch[examples]"`.

    \b
    colmatch demo --alerts 10000
    """
    from colmatch.bench.demo import run

    run(alerts, flights, seed, kind)


cli.add_command(bench)
cli.add_command(generate)


def main() -> None:
    """Entry point of the console script.

    Ends the process without Python's own clearing up: a thread of Arrow's may still wait for
    standard input, and Python would wait for it, or abort when that thread wants to call it once
    more.
    """
    code: Any = 0
    try:
        cli.main(prog_name="colmatch")
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code or 0
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
