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
def warm(kinds: tuple[str, ...]) -> None:
    """Compile all kernels now, so that no later process on this machine waits for them.

    It takes a few minutes on two processors. Kernels are for this machine's processor, and for
    these versions of colmatch, Python and numba. They are kept in your cache folder, or in the one
    that COLMATCH_CACHE_DIR names.

    \b
    colmatch warm
    colmatch warm --index bitslice
    COLMATCH_CACHE_DIR=/opt/colmatch colmatch warm
    """
    from colmatch.warming import warm as warmed

    stats = warmed(kinds or None, progress=True)
    say(
        f"{stats.kernels:,} kernels are ready: {stats.compiled:,} compiled into {stats.folder}, and {stats.loaded:,} "
        f"were there, in {stats.seconds:.0f} s"
    )
