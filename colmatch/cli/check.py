"""``colmatch check``: whether an index is as it was written, and what is wrong with its rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from colmatch.cli.options import (
    expression_option,
    format_option,
    id_column_option,
    ids_option,
    missing_option,
    null_option,
    out_format_option,
    tag_option,
    tags_column_option,
)
from colmatch.cli.shell import print_figures, say

if TYPE_CHECKING:
    import pyarrow as pa

    from colmatch import Matcher
    from colmatch.given.options import MissingColumns


@click.command()
@click.argument("path", metavar="INDEX_OR_RULES")
@click.option("--rules", "looks_at_rules", is_flag=True, help="Check the rules of INDEX, after the file itself.")
@click.option("--strict", is_flag=True, help="Check the rules, and end with 1 if anything is proven.")
@click.option(
    "--events", multiple=True, metavar="EVENTS", help="Check the rules against a sample of events. Repeatable."
)
@click.option(
    "--check", "checks", multiple=True, metavar="NAME", help="A check of Matcher.check, as contained. Repeatable."
)
@ids_option
@tag_option
@click.option(
    "--schema", "schema_text", metavar="SCHEMA", help="Check a file of rules: columns, as for `colmatch build`."
)
@click.option("--like", metavar="EVENTS", help="Check a file of rules: take the columns from this file.")
@id_column_option
@expression_option
@tags_column_option
@click.option("-o", "--output", default="-", show_default=True, metavar="OUT", help="Where to write the findings.")
@missing_option
@format_option("--format", "EVENTS")
@out_format_option
@null_option
def check(
    path: str,
    looks_at_rules: bool,
    strict: bool,
    events: tuple[str, ...],
    checks: tuple[str, ...],
    ids: str | None,
    tags: tuple[str, ...],
    schema_text: str | None,
    like: str | None,
    id_column: str | None,
    expression: str | None,
    tags_column: str | None,
    output: str,
    missing_columns: MissingColumns | None,
    format: str | None,
    out_format: str | None,
    nulls: tuple[str, ...],
) -> None:
    """Check an index: every page, link and count of a file of pages, or all arrays of another file.

    The index pbtree works in a file of pages: check one of unknown origin before you open it. For
    another INDEX, the journal is read as well, also while a process writes it. If anything is
    wrong, the command reports the fault and ends with 1.

    With --rules, --strict, --events, --check, --ids or --tag, it then checks the rules: which can
    never match, always match, or are there twice. With --schema or --like, a file of rules is
    checked.

    \b
    colmatch check alerts.pages
    colmatch check alerts.cm --events flights.parquet --strict
    colmatch check alerts.csv --like flights.parquet --check contained
    """
    from colmatch.cli.arguments import open_matcher, read_schema, read_subscriptions
    from colmatch.errors import StoreError

    is_text = schema_text is not None or like is not None
    if is_text:
        from colmatch import Matcher

        columns = read_schema(like, schema_text, None)
        matcher = Matcher.build(
            read_subscriptions([path], None, None, id_column, expression, tags_column),
            columns,
            options={"missing_columns": missing_columns or "error"},
            id=id_column,
            expression=expression,
            tags=tags_column,
        )
    else:
        looks_at_rules = looks_at_rules or strict or bool(events or checks or ids or tags)
        try:
            _check_file(path, say if looks_at_rules else click.echo)  # findings have standard output for themselves
        except StoreError as error:
            if "not a saved matcher" not in str(error):
                raise
            raise StoreError(f"{error}; a file of rules needs --schema or --like") from None
        if not looks_at_rules:
            return
        matcher = open_matcher(path, missing_columns)
    if tags and not len(matcher.subset(tags=list(tags))):
        raise click.BadParameter(f"no rule has {' or '.join(map(repr, tags))}", param_hint="'--tag'")
    found = _findings(matcher, checks, ids, tags, events, format, nulls)
    _write(found, output, out_format)
    count = found["status"].to_pylist().count("proven")
    rules, findings = (f"{n:,} {word}{'s'[: n != 1]}" for n, word in ((len(matcher), "rule"), (count, "finding")))
    say(f"{rules}, {findings}, {found.num_rows - count:,} undecided or disproven")
    if strict and count:
        raise click.exceptions.Exit(1)


def _check_file(path: str, tell: Callable[[str], object]) -> None:
    from colmatch.paged.check import as_dict
    from colmatch.paged.check import check as checked
    from colmatch.paged.header import is_pages
    from colmatch.store.looking import check as checked_with_journal

    beside = None
    if is_pages(path):
        figures = as_dict(checked(path))
        if tell is not say:
            print_figures(figures)
    else:
        beside = checked_with_journal(path)
    tell(f"{path} is as it was written")
    if beside is not None:
        tell(f"{beside.path} is as it was written, with {count_updates(beside.records)} since the last save")


def count_updates(number: int) -> str:
    """Writes a number of updates."""
    return "1 update" if number == 1 else f"{number:,} updates"


def _findings(
    matcher: Matcher,
    checks: tuple[str, ...],
    ids: str | None,
    tags: tuple[str, ...],
    events: tuple[str, ...],
    format: str | None,
    nulls: tuple[str, ...],
) -> pa.Table:
    import pyarrow as pa

    from colmatch.cli.arguments import read_ids, reading_events

    given: dict[str, Any] = {"checks": list(checks) or None, "tags": list(tags) or None}
    given["ids"] = None if ids is None else read_ids(matcher, ids)
    if not events:
        return matcher.check(**given)
    with reading_events(matcher, events, format, [], nulls) as rows:
        return matcher.check(**given, sample=pa.RecordBatchReader.from_batches(rows.schema, rows.batches))


def _write(found: pa.Table, output: str, out_format: str | None) -> None:
    """Writes findings, with examples as JSON."""
    import pyarrow as pa

    from colmatch.cli import writing

    written = writing.out_format(output, out_format)
    place = found.schema.get_field_index("example")
    texts = [None if event is None else json.dumps(event, default=str) for event in found["example"].to_pylist()]
    table = found.set_column(place, "example", pa.array(texts, pa.string()))
    writing.write_all(output, table.to_batches(), table.schema, written)
