"""How the command line ends when something goes wrong.

An error is one line on standard error and exit code 1 (2 when the command line itself is wrong, 130
after Ctrl-C, 141 when the reader of a pipe went away); with COLMATCH_TRACEBACK=1 it comes with its
traceback.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from typing import Any

import click

from colmatch.errors import ColmatchError


class _Closed(io.RawIOBase):
    """Stands for standard input or output that was closed before the process began."""

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, _: Any) -> int:
        raise OSError("it is closed")

    def write(self, _: Any) -> int:
        raise OSError("standard output is closed: give a file with -o")


def stand_in() -> None:
    """Gives a process that was begun without standard streams something in their place.

    Else Python has None there, and the next file that is opened gets their number.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(_Closed())
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_Closed(), write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


class Shell(click.Group):
    """Turns errors into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            _forget_stdout()
            ctx.exit(141)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would end as a traceback
            say("interrupted")
            ctx.exit(130)
        except Exception as error:
            if is_traced():
                raise
            say(f"error: {_one_line(error)}")
            ctx.exit(1)


def is_traced() -> bool:
    """Says whether errors are shown with their tracebacks."""
    return os.environ.get("COLMATCH_TRACEBACK", "0") not in ("", "0")


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    elif isinstance(error, ColmatchError | OSError) or _is_arrow(error):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error} (this is a fault in colmatch; COLMATCH_TRACEBACK=1 shows where)"
    return " ".join(text.split())


def _is_arrow(error: Exception) -> bool:
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)


def say(text: str) -> None:
    """Prints a line for people, beside the results."""
    click.echo(f"colmatch: {text}", err=True)


def _forget_stdout() -> None:
    """Drops what is still buffered for standard output, which nobody reads any more.

    It must not raise when Python exits.
    """
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def plain(value: Any) -> Any:
    """Turns a value that JSON does not know into one that it knows."""
    return value.item() if hasattr(value, "item") else str(value)


def print_json(value: dict[str, Any]) -> None:
    """Prints one JSON object. NaN and the infinities become null, as in JSON lines."""
    text = json.dumps(value, default=plain)  # what comes back is of JSON's types alone
    click.echo(json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2, ensure_ascii=False))


def print_figures(figures: dict[str, Any], indent: int = 0) -> None:
    """Prints names and figures in columns, those within others indented."""
    width = max((len(str(name)) for name in figures), default=0)
    for name, value in figures.items():
        if isinstance(value, dict):
            click.echo(f"{'':{indent}}{name}")
            print_figures(value, indent + 2)
            continue
        value = plain(value) if not isinstance(value, int | float | str) else value
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        click.echo(f"{'':{indent}}{name!s:<{width}}  {shown}")
