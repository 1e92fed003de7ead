"""``colmatch report``: rules that match too little or too much, and columns that nobody needs."""

from __future__ import annotations

import click

from colmatch.cli.options import format_option, now_option, null_option, out_format_option, tag_option


@click.command()
@click.argument("index_path", metavar="INDEX")
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", metavar="OUT", help="Write the figures of each rule, too.")
@click.option(
    "--noisy", type=float, default=0.5, show_default=True, help="Share of the rows above which a rule is noisy."
)
@tag_option
@now_option
@format_option("--format", "EVENTS")
@out_format_option
@null_option
def report(
    index_path: str,
    events: tuple[str, ...],
    output: str | None,
    noisy: float,
    tags: tuple[str, ...],
    now: str | None,
    format: str | None,
    out_format: str | None,
    nulls: tuple[str, ...],
) -> None:
    """Report which rules of INDEX match no row of EVENTS, too many rows, or cost the most.

    The report also names columns that no rule uses, and columns that rules use and no row has. OUT
    gets a row for each rule: its matches and their share of the rows, its conjunctions and
    predicates, the rows that it is checked for, and the predicates that are tested for these rows,
    an estimate of its work.

    \b
    colmatch report alerts.cm flights.parquet --noisy 0.1 -o rules.csv
    """
    import pyarrow as pa

    from colmatch.cli import writing
    from colmatch.cli.arguments import clock_for, open_matcher, read_now, read_subset, reading_events

    matcher = open_matcher(index_path, "null")
    among = read_subset(matcher, None, tags)
    written = None if output is None else writing.out_format(output, out_format)
    time = clock_for(matcher, read_now(now))
    with reading_events(matcher, events, format, [], nulls, now=time) as rows:
        found = matcher.report(
            pa.RecordBatchReader.from_batches(rows.schema, rows.batches), noisy=noisy, ids=among, now=time
        )
    if output is not None and written is not None:
        writing.write_all(output, found.rules.to_batches(), found.rules.schema, written)
    if output != "-":
        click.echo(str(found))
