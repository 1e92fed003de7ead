"""Errors of the command line, and the exit codes.

An error is one line on standard error, with exit code 1. The code is 2 if the command line itself
is wrong, 130 after Ctrl-C, and 141 if the reader of a pipe went away. With COLMATCH_TRACEBACK=1,
the error comes with its traceback.
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
    """A substitute for standard input or output that was closed before the process began."""

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, _: Any) -> int:
        raise OSError("it is closed")

    def write(self, _: Any) -> int:
        raise OSError("standard output is closed: give a file with -o")


def stand_in() -> None:
    """Replaces the standard streams that a process was begun without.

    Otherwise Python has None there, and the next opened files get their numbers.
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
    """A group of commands that turns errors into one line and an exit code."""

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
    """Returns whether errors are shown with their tracebacks."""
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
    """Prints a line for people, on standard error."""
    click.echo(f"colmatch: {text}", err=True)


def _forget_stdout() -> None:
    """Drops the text that standard output still buffers, which nobody reads any more.

    The text must not raise an error when Python exits.
    """
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def plain(value: Any) -> Any:
    """Converts a value that JSON does not know, to a Python scalar or to text."""
    return value.item() if hasattr(value, "item") else str(value)


def print_json(value: dict[str, Any]) -> None:
    """Prints one JSON object. NaN and the infinities become null, as in JSON lines."""
    text = json.dumps(value, default=plain)  # reading it back gives only types of JSON
    click.echo(json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2, ensure_ascii=False))


def print_figures(figures: dict[str, Any], indent: int = 0) -> None:
    """Prints names and figures in columns, nested ones indented."""
    width = max((len(str(name)) for name in figures), default=0)
    for name, value in figures.items():
        if isinstance(value, dict):
            click.echo(f"{'':{indent}}{name}")
            print_figures(value, indent + 2)
            continue
        value = plain(value) if not isinstance(value, int | float | str) else value
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        click.echo(f"{'':{indent}}{name!s:<{width}}  {shown}")
