"""The group of all commands, and the entry point.

A command imports everything heavy when it runs, so that ``colmatch --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import click

from colmatch import __version__
from colmatch.cli.bench import bench, demo
from colmatch.cli.build import build
from colmatch.cli.check import check
from colmatch.cli.compare import diff, test
from colmatch.cli.match import match
from colmatch.cli.reasons import reasons
from colmatch.cli.report import report
from colmatch.cli.shell import Shell, is_traced, say, stand_in
from colmatch.cli.show import explain, kinds, recover, stats
from colmatch.cli.warm import warm


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"colmatch {__version__}")
        ctx.exit()


@click.group(cls=Shell, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def cli() -> None:
    """Find the Boolean expressions, out of many, that are true for each row of a file.

    \b
    colmatch build alerts.csv --like flights.parquet -o alerts.cm
    colmatch match alerts.cm flights.parquet -o fired.parquet
    colmatch explain alerts.cm flights.parquet --row 17 --id 4
    colmatch demo

    Files are parquet, Arrow, CSV or JSON lines, by their extension: one or several, folders,
    patterns, or URLs such as s3://bucket/events. "-" is standard input or output.
    """


for command in (build, match, explain, reasons, report, test, diff, stats, check, recover, kinds, demo, bench, warm):
    cli.add_command(command)


def main() -> None:
    """Runs the console script.

    The process ends without Python's cleanup, since a thread of Arrow may still wait for standard
    input. Python would wait for the thread, or abort when the thread calls Python once more.
    """
    stand_in()
    code: Any = 0
    try:
        cli.main(prog_name="colmatch")
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code or 0
    except OSError as error:  # while click itself prints
        if is_traced():
            raise
        say(f"error: {error}")
        code = 1
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
