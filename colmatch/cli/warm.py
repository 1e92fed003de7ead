"""The command ``colmatch warm``, which compiles kernels ahead of time."""

from __future__ import annotations

import click

from colmatch.cli.shell import say


@click.command()
@click.option(
    "--index",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Only what this kind of index needs, beside what every matcher needs. Repeatable.",
)
@click.option(
    "--to",
    "folder",
    metavar="FOLDER",
    help="Keep them below this folder, for COLMATCH_CACHE_DIR; by default in your cache folder.",
)
@click.option("--native", is_flag=True, help="Compile for this very processor what came compiled with the package.")
def warm(kinds: tuple[str, ...], folder: str | None, native: bool) -> None:
    """Compile all kernels now, so that no later process on this machine waits for them.

    It takes a few minutes, and seconds where they are compiled already. Kernels are for this
    machine's processor, and for these versions of colmatch, Python and numba.

    \b
    colmatch warm
    colmatch warm --index bitslice --to /opt/colmatch
    """
    from colmatch.warming.warm import warm as warmed

    found = warmed(kinds or None, to=folder, native=native, progress=True)
    say(
        f"{found.kernels:,} kernels are ready: {found.compiled:,} compiled into {found.folder}, and {found.loaded:,} "
        f"loaded, in {found.seconds:.0f} s"
    )
