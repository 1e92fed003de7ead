"""``colmatch reasons``: why subscriptions match none of the rows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from colmatch.given.options import MissingColumns


@click.command()
@click.argument("index_path", metavar="INDEX")
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", default="-", show_default=True, metavar="OUT", help="Where to write the reasons.")
@click.option(
    "--by",
    type=click.Choice(["attribute", "predicate"]),
    default="attribute",
    show_default=True,
    help="Count what is said of one attribute together, or each predicate by itself.",
)
@ids_option
@tag_option
@now_option
@missing_option
@format_option("--format", "EVENTS")
@out_format_option
@null_option
def reasons(
    index_path: str,
    events: tuple[str, ...],
    output: str,
    by: str,
    ids: str | None,
    tags: tuple[str, ...],
    now: str | None,
    missing_columns: MissingColumns | None,
    format: str | None,
    out_format: str | None,
    nulls: tuple[str, ...],
) -> None:
    """Write why subscriptions of INDEX match no row of EVENTS at all.

    The result has a row for each subscription that matches nothing and each attribute. The row
    counts the events that the attribute alone has turned away. A row without an attribute counts
    the events without a single cause.

    \b
    colmatch reasons campaigns.cm requests.parquet --ids 4711 --by predicate
    """
    import pyarrow as pa

    from colmatch.cli import writing
    from colmatch.cli.arguments import clock_for, open_matcher, read_now, read_subset, reading_events
    from colmatch.matching.reasons import check_by

    matcher = open_matcher(index_path, missing_columns)
    among = read_subset(matcher, ids, tags)
    written = writing.out_format(output, out_format)
    time = clock_for(matcher, read_now(now))
    with reading_events(matcher, events, format, [], nulls, now=time) as rows:
        table = matcher.reasons(
            pa.RecordBatchReader.from_batches(rows.schema, rows.batches), check_by(by), ids=among, now=time
        )
    plain = pa.schema([pa.field(field.name, _plain(field.type)) for field in table.schema])
    writing.write_all(output, table.cast(plain).to_batches(), plain, written)


def _plain(type: object) -> object:
    return getattr(type, "value_type", type)
