"""A progress bar on standard error or in a notebook."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

LINE_EVERY = 10.0  # seconds between two lines


class Bar(Protocol):
    """The part of tqdm's interface that the library uses."""

    total: Any

    def update(self, n: int) -> object: ...
    def set_description(self, text: str) -> object: ...
    def refresh(self) -> object: ...


class _NoBar:
    """A bar that shows nothing. It needs no tqdm, which takes a while to import."""

    total: Any = None

    def update(self, n: int) -> None: ...
    def set_description(self, text: str) -> None: ...
    def refresh(self) -> None: ...


class _Lines(_NoBar):
    """A bar that prints a line with the count now and then, for pipes and logs."""

    def __init__(self, total: int | None, unit: str) -> None:
        self.total, self._unit, self._count, self._said, self._text = total, unit, 0, time.monotonic(), ""

    def update(self, n: int) -> None:
        self._count += n

    def set_description(self, text: str) -> None:
        self._text = f", {text}" if text else ""

    def refresh(self) -> None:
        if time.monotonic() - self._said >= LINE_EVERY:
            self._said = time.monotonic()
            line = f"colmatch: {self._count:,} of {self.total:,} {self._unit}{self._text}"
            print(line, file=sys.stderr, flush=True)


def _has_room() -> bool:
    if not sys.stderr.isatty():
        return False
    with suppress(OSError, ValueError):
        return 0 not in os.get_terminal_size(sys.stderr.fileno())
    return True


@contextmanager
def bar(total: int | None, unit: str, shown: bool, lines: bool = False, shape: str | None = None) -> Iterator[Bar]:
    """Shows a bar while a block runs: the count, the rate and the time left.

    total : the final count; None if it is unknown, and the time left with it
    unit : name of the counted things, in the plural
    lines : prints lines instead if standard error is neither terminal nor notebook, or is a
        terminal of unknown size, on which tqdm shows nothing
    shape : layout of the bar, as tqdm's ``bar_format``
    """
    if not shown:
        yield _NoBar()
        return
    from tqdm.auto import tqdm  # in a notebook a widget

    if lines and not _has_room() and tqdm.__mro__[1].__module__ != "tqdm.notebook":
        yield _Lines(total, unit)
        return
    how: dict[str, Any] = {"unit": f" {unit}", "unit_scale": True, "bar_format": shape}
    with tqdm(total=total, dynamic_ncols=True, leave=False, file=sys.stderr, **how) as progress:
        yield progress
