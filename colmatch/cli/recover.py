"""The command ``colmatch recover``, which repairs a damaged log or journal."""

from __future__ import annotations

import click

from colmatch.cli.shell import print_figures, say


@click.command()
@click.argument("index_path", metavar="INDEX")
def recover(index_path: str) -> None:
    """Cut off the damaged end of the log or journal of INDEX.

    The updates before the damage are kept. The command says how many updates are lost, and keeps a
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
    found = recover_log(index_path) if pages else recover_journal(index_path)
    if found is None:
        say(f"nothing is damaged beside {index_path}, and nothing was changed")
        return
    with Matcher.open(index_path, journal=not pages) as matcher:  # raises an error if anything is still wrong
        print_figures(found.as_dict() | {"number of the next update": matcher.version + 1})
    say(f"{index_path} goes on; see that it has what you need before you remove {found.copy}")
