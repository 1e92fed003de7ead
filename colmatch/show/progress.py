"""The bar that shows how far something has come, on standard error or in a notebook."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

LINE_EVERY = 10.0  # seconds between two lines


class Bar(Protocol):
    """A bar as tqdm has it."""

    total: Any

    def update(self, n: int) -> object: ...
    def set_description(self, text: str) -> object: ...
    def refresh(self) -> object: ...


class _NoBar:
    """Shows nothing, and needs no tqdm, which takes a while to import."""

    total: Any = None

    def update(self, n: int) -> None: ...
    def set_description(self, text: str) -> None: ...
    def refresh(self) -> None: ...


class _Lines(_NoBar):
    """Says in a line now and then how many there are, for pipes and logs."""

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
    """Shows a bar while a block runs: how many, how fast, and how much longer it will take.

    total : how many there are; None where that is not known, and so not how long it will take
    unit : what is counted, in the plural
    lines : whether lines are wanted instead where standard error is neither terminal nor notebook,
        or a terminal whose size nobody has said, on which tqdm shows nothing
    shape : what the bar shows, as tqdm's ``bar_format``
    """
    if not shown:
        yield _NoBar()
        return
    from tqdm.auto import tqdm  # in a notebook a widget

    if lines and not _has_room() and tqdm.__mro__[1].__module__ != "tqdm.notebook":
        yield _Lines(total, unit)
        return
    how: dict[str, Any] = {"unit": f" {unit}", "unit_scale": True, "bar_format": shape}
    with tqdm(total=total, dynamic_ncols=True, leave=False, file=sys.stderr, **how) as made:
        yield made
