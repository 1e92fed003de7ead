"""``colmatch bench`` and ``demo``: measurements with the user's data, and with real flights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from colmatch.cli.options import index_option, set_option
from colmatch.cli.shell import say

if TYPE_CHECKING:
    import pyarrow as pa

    from colmatch.bench.figures import Line


class _Numbers(click.ParamType[Any]):
    """A parameter type for several whole numbers: ``1,64,4096``."""

    name = "n,n,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(part.strip().replace("_", "")) for part in value.split(","))
        except ValueError:
            numbers = (0,)
        if min(numbers) < 1:
            self.fail(
                f"{value!r}: whole numbers from 1 are needed, with commas between them, as in 1,64,4096", param, ctx
            )
        return numbers


@click.command()
@click.argument("subs")
@click.argument("events")
@click.option(
    "--index",
    "names",
    default="all",
    show_default=True,
    metavar="KIND,KIND",
    help="Kinds of index, auto, or all of them.",
)
@click.option(
    "--batch",
    "batches",
    type=_Numbers(),
    default="1,4096",
    show_default=True,
    help="Events that are matched at a time.",
)
@click.option(
    "--sizes", type=_Numbers(), help="Measure with so many of the subscriptions, the first ones. By default with all."
)
@click.option(
    "--repeat", default=5, show_default=True, type=click.IntRange(min=1), help="Rounds, whose median is shown."
)
@click.option(
    "--rows", type=click.IntRange(min=1), help="Read so many of the events; by default as many as the largest batch."
)
@click.option(
    "--plot",
    "picture",
    metavar="FILE",
    help="Draw time against subscriptions into this .png or .svg; without --sizes at some.",
)
@click.option(
    "--schema", "schema_text", metavar="SCHEMA", help="Columns of the events, where their file does not say all."
)
@set_option
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="A tunable, as for build. Repeatable.")
def bench(
    subs: str,
    events: str,
    names: str,
    batches: tuple[int, ...],
    sizes: tuple[int, ...] | None,
    repeat: int,
    rows: int | None,
    picture: str | None,
    schema_text: str | None,
    settings: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    """Measure every kind of index with the expressions in SUBS and the rows of EVENTS.

    SUBS is as for build, EVENTS as for match. One thread runs, unless --option sets another number.
    The kinds take turns, and medians are shown. --set applies to each kind that has the setting.
    "first match" is the first call after the build. It loads the kernels, or compiles them if they
    never were on this machine.

    \b
    colmatch bench alerts.csv flights.parquet
    colmatch bench subs.parquet events.parquet --index all --sizes 1000,10000,100000 --plot time.svg
    """
    from colmatch.bench.figures import choose_kinds, count, default_sizes, measure, table
    from colmatch.bench.plot import check, draw
    from colmatch.cli.arguments import read_indexes, read_options, read_subscriptions, schema_from

    if picture is not None:
        check(picture)
    indexes = read_indexes(choose_kinds([name.strip() for name in names.split(",")]), settings)
    tuned = read_options(["threads=1", *options])
    sample = _first_rows(events, None if schema_text is None else schema_from(schema_text), rows or max(batches))
    expressions = read_subscriptions([subs], None, None)
    if sizes is None:
        sizes = tuple(default_sizes(count(expressions))) if picture is not None else (max(count(expressions), 1),)
    schema = sample.schema if schema_text is None else schema_from(schema_text)
    lines: list[Line] = []

    def kept() -> Any:
        for line in measure(
            expressions, schema, sample, indexes=indexes, batches=batches, sizes=sizes, repeat=repeat, options=tuned
        ):
            lines.append(line)
            yield line

    for text in table(kept()):
        click.echo(text)
    if 0 < sample.num_rows < max(batches):
        say(f"note: {events} gives {sample.num_rows:,} events, which is the largest batch measured")
    if picture is not None:
        draw(lines, picture)
        say(f"drawn as {picture}")


def _first_rows(path: str, schema: pa.Schema | None, rows: int) -> pa.Table:
    """Reads the first rows of a file as one chunk, which batches are cut from.

    Types without a declaration are inferred.
    """
    import pyarrow as pa

    from colmatch.cli.files import read_table, reading
    from colmatch.cli.places import TEXTS, find_files
    from colmatch.events.gather import Source, batches

    if schema is None and all(file.kind in TEXTS for file in find_files(path)):
        return read_table(path).slice(0, rows).combine_chunks()
    with reading(path, schema=schema) as opened:
        first = next(batches(Source(lambda _: opened.schema, opened.batches, False), rows), None)
        return opened.schema.empty_table() if first is None else pa.Table.from_batches([first])


@click.command()
@click.option("--alerts", default=100_000, show_default=True, type=click.IntRange(min=1), help="How many alerts.")
@click.option(
    "--flights", default=None, type=click.IntRange(min=1), help="How many flights, evenly out of the 336,776."
)
@click.option("--seed", default=2013, show_default=True, help="Of the alerts.")
@index_option
@set_option
def demo(alerts: int, flights: int | None, seed: int, kind: str, settings: tuple[str, ...]) -> None:
    """Match a year of real flights with travellers' alerts.

    Needs `pip install "colmatch[examples]"`.

    \b
    colmatch demo --alerts 10000
    """
    from colmatch.bench.demo import run
    from colmatch.cli.arguments import read_index

    run(alerts, flights, seed, read_index(kind, settings))
