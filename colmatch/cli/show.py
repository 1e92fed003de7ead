"""``colmatch explain``, ``stats``, ``recover`` and ``kinds``: commands about indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from colmatch.cli.check import count_updates
from colmatch.cli.options import format_option, json_option, missing_option, now_option, null_option
from colmatch.cli.shell import print_figures, print_json, say
from colmatch.errors import ColmatchError, EventError, StoreError

if TYPE_CHECKING:
    from colmatch.given.options import MissingColumns


@click.command()
@click.argument("index_path", metavar="INDEX")
@click.argument("events", nargs=-1, required=True)
@click.option("--row", default=0, show_default=True, type=click.IntRange(min=0), help="Number of the event, from 0.")
@click.option("--id", "id_text", required=True, help="Id of the subscription.")
@now_option
@missing_option
@format_option("--format", "EVENTS")
@null_option
@json_option
def explain(
    index_path: str,
    events: tuple[str, ...],
    row: int,
    id_text: str,
    now: str | None,
    missing_columns: MissingColumns | None,
    format: str | None,
    nulls: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show why a subscription of INDEX is true, or is not, for one row of EVENTS.

    \b
    colmatch explain alerts.cm flights.parquet --row 17 --id 4
    echo '{"dep_delay": 50}' | colmatch explain alerts.cm - --format jsonl --id 4
    """
    import pyarrow as pa

    from colmatch.cli.arguments import clock_for, open_matcher, read_now, reading_events

    matcher = open_matcher(index_path, missing_columns)
    id: int | str = id_text
    if pa.types.is_integer(matcher.ids.type):
        try:
            id = int(id_text)
        except ValueError:
            raise click.BadParameter(
                f"{id_text!r}: the ids of this index are whole numbers", param_hint="'--id'"
            ) from None
    time = clock_for(matcher, read_now(now))
    with reading_events(matcher, events, format, [], nulls, whole=False, now=time) as rows:
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
            raise ColmatchError(f"{' '.join(events)} has {seen:,} rows, so there is no row {row} (they count from 0)")
    try:
        explanation = matcher.explain(event, id, now=time)
        if as_json:
            print_json(explanation.as_dict())
        else:
            click.echo(str(explanation))
    except EventError as error:
        error.count_from(row)
        raise


@click.command()
@click.argument("index_path", metavar="INDEX")
@json_option
def stats(index_path: str, as_json: bool) -> None:
    """Show the sizes of INDEX, the kind of index and the reason for the kind.

    The figures are as of the last save. Updates in the journal are not counted, but reported in a
    note.

    \b
    colmatch stats alerts.cm
    """
    from colmatch.cli.arguments import open_matcher
    from colmatch.paged.check import as_dict, count_pages
    from colmatch.paged.header import is_pages
    from colmatch.store.looking import find_unsaved

    figures = open_matcher(index_path).stats()
    if is_pages(index_path):
        figures |= as_dict(count_pages(index_path))
    else:
        try:
            if (beside := find_unsaved(index_path)) is not None:
                figures["journal"] = beside._asdict()
                if beside.records:
                    say(f"note: {beside.path} has {count_updates(beside.records)} that no other figure counts")
        except StoreError as error:
            say(f"note: {error}")  # the figures are of the file, which is sound
    if as_json:
        print_json(figures)
    else:
        print_figures(figures)


@click.command()
@click.argument("index_path", metavar="INDEX")
def recover(index_path: str) -> None:
    """Cut off the damaged end of the log or journal of INDEX.

    The updates before the damage are kept. The command says how many bytes are lost, and keeps a
    copy of the damaged file. It changes nothing where nothing is damaged.

    \b
    colmatch recover alerts.pages
    """
    import os

    from colmatch.matcher import Matcher
    from colmatch.paged.header import is_pages
    from colmatch.paged.recovery import recover_log
    from colmatch.store.recovery import recover_journal

    os.stat(index_path)
    pages = is_pages(index_path)
    figures = recover_log(index_path) if pages else recover_journal(index_path)
    if figures is None:
        say(f"nothing is damaged beside {index_path}, and nothing was changed")
        return
    with Matcher.open(index_path, journal=not pages) as matcher:  # raises an error if anything is still wrong
        print_figures(figures | {"number of the next update": matcher.version + 1})
    say(f"{index_path} goes on; see that it has what you need before you remove {figures['damaged copy']}")


@click.command()
@json_option
def kinds(as_json: bool) -> None:
    """List the kinds of index for --index, and the settings of each for --set, with defaults.

    \b
    colmatch kinds
    """
    from colmatch.cli.arguments import describe_kinds, kinds_as_dict

    if as_json:
        print_json(kinds_as_dict())
        return
    for line in describe_kinds():
        click.echo(click.wrap_text(line, 100, subsequent_indent="      "))
