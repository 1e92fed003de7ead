"""``colmatch generate``: subscriptions and events of a workload, as files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from colmatch.cli.shell import say

_F = TypeVar("_F", bound=Callable[..., Any])


class _Bounds(click.ParamType[Any]):
    """``LOW,HIGH``, or one number for both."""

    def __init__(self, number: type[int] | type[float]) -> None:
        self.number = number
        self.name = "low,high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(self.number(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if not 1 <= len(numbers) <= 2:
            words = "whole numbers" if self.number is int else "numbers"
            self.fail(
                f"{value!r}: two {words} are needed, as in {'3,7' if self.number is int else '0,0.5'}, or one for both",
                param,
                ctx,
            )
        return (numbers[0], numbers[-1])


class _Shares(click.ParamType[Any]):
    """``OP:SHARE,OP:SHARE``."""

    name = "op:share,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        pairs = []
        for part in value.split(","):
            op, colon, share = part.rpartition(":")
            try:
                pairs.append((" ".join(op.lower().split()), float(share)))
            except ValueError:
                colon = ""
            if not colon:
                self.fail(f"{part!r} should be OPERATOR:SHARE, as in between:0.8,<=:0.2", param, ctx)
        return tuple(pairs)


_FIELDS: list[tuple[str, Any, str]] = [
    ("subscriptions", int, "How many subscriptions."),
    ("attributes", int, "How many attributes."),
    ("cardinality", int, "Values of each attribute."),
    ("subscription_size", _Bounds(int), "Fewest and most predicates of a subscription."),
    ("subscription_mean", float, "Their mean, where they are not uniform."),
    ("event_size", _Bounds(int), "Fewest and most attributes of an event."),
    ("equality", float, "Share of predicates that are equalities."),
    ("operators", _Shares(), "Shares of the others: between <= >= < > <> in 'not in'."),
    ("attribute_zipf", float, "Skew of attributes, 0 for none."),
    ("value_zipf", float, "Skew of values, 0 for none."),
    ("clusters", int, "Clusters of values on each attribute, 0 for none."),
    ("cluster_size", int, "How far from the middle of its cluster a value may be."),
    ("width", _Bounds(float), "Width of BETWEEN, in shares of the domain."),
    ("list_size", _Bounds(int), "Fewest and most values of IN."),
    ("planted", float, "Share of subscriptions that are made true for an event."),
    ("around", int, "Out of how many events that one is, the first ones."),
    ("layout", click.Choice(["columns", "map"]), "A column for each attribute, or one map column."),
    ("seed", int, "Another seed, other data. By default 0."),
]


def _fields(command: _F) -> _F:
    """Adds an option for each field of a workload; the named workload says what is not given."""
    command = click.option("--weights/--no-weights", default=None, help="With --predicates: a weight for each.")(
        command
    )
    for name, type, help in reversed(_FIELDS):
        command = click.option(f"--{name.replace('_', '-')}", name, type=type, default=None, help=help)(command)
    return command


def _of_texts(name: str, given: dict[str, Any]) -> Any:
    from colmatch.workload import TextWorkload

    other = sorted(set(given) - {"subscriptions", "seed"})
    if other:
        raise click.UsageError(f"--{other[0].replace('_', '-')} says nothing of {name}")
    return TextWorkload(name, **given)


@click.command()
@click.argument("name")
@click.option("-o", "--output", "folder", metavar="DIR", help="Write subs.parquet and events.parquet into this folder.")
@click.option("--subs", metavar="FILE", help="Where to write the subscriptions.")
@click.option("--events", metavar="FILE", help="Where to write the events.")
@click.option("--rows", default=4096, show_default=True, type=click.IntRange(min=0), help="How many events.")
@click.option(
    "--text/--predicates",
    "text",
    default=None,
    help="Subscriptions as expressions, or a row for each predicate. By default text for csv only.",
)
@click.option("--format", help="Format of both files; by default what their extensions say.")
@_fields
def generate(
    name: str,
    folder: str | None,
    subs: str | None,
    events: str | None,
    rows: int,
    text: bool | None,
    format: str | None,
    **given: Any,
) -> None:
    """Write made-up subscriptions and events, as the papers measure indexes with.

    NAME is one of dense, dense-planted, dense-equal, pstree-dense, pstree-sparse, opindex, bestar,
    ads, querylog. Or it is detections or user-agents, whose subscriptions are expressions: text
    patterns. Options change what a name says; colmatch/workload/parameters.py tells more of them.
    The same options give the same files.

    \b
    colmatch generate dense --subscriptions 1000 --rows 100 -o .
    colmatch build subs.parquet --like events.parquet -o x.colmatch
    colmatch match x.colmatch events.parquet
    """
    from colmatch.cli.places import format_of
    from colmatch.cli.writing import write_all
    from colmatch.workload import named
    from colmatch.workload.strings import NAMES as TEXT_WORKLOADS
    from colmatch.workload.subscriptions import TEXTS
    from colmatch.workload.subscriptions import schema as predicate_schema

    if folder is None and subs is None and events is None:
        raise click.UsageError("say where to write: -o DIR, or --subs and --events")
    if subs is not None and subs == events:
        raise click.UsageError("--subs and --events are the same file")
    given = {field: value for field, value in given.items() if value is not None}
    workload: Any = _of_texts(name, given) if name in TEXT_WORKLOADS else named(name, **given)
    if name in TEXT_WORKLOADS:
        if text is False:
            raise click.UsageError(f"the subscriptions of {name} are expressions: leave out --predicates")
        text = True
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
        extension = format or "parquet"
        subs = subs or os.path.join(folder, f"subs.{extension}")
        events = events or os.path.join(folder, f"events.{extension}")
    for path in filter(None, (subs, events)):
        format_of(path, format)  # before the work, not after it
    if events is not None:
        write_all(events, workload.event_batches(rows), workload.schema(), format)
        say(f"{rows:,} events, saved as {events}")
    if subs is not None:
        if text is None:
            text = format_of(subs, format) == "csv"
        schema = TEXTS if text else predicate_schema(workload)
        write_all(subs, workload.text_batches() if text else workload.predicate_batches(), schema, format)
        say(f"{workload.subscriptions:,} subscriptions, saved as {subs}")
