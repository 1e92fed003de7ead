"""The bar that shows how far something has come, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")
PART = 1024  # things of which a bar is told together


class Bar(Protocol):
    """A bar as tqdm has it."""

    def update(self, n: int) -> object: ...
    def set_description(self, text: str) -> object: ...


class _NoBar:
    """Shows nothing, and needs no tqdm, which takes a while to import."""

    def update(self, n: int) -> None: ...
    def set_description(self, text: str) -> None: ...


@contextmanager
def bar(total: int | None, unit: str, shown: bool) -> Iterator[Bar]:
    """Shows a bar while a block runs: how many, how fast, and how much longer it will take.

    total : how many there are; None where that is not known, and so not how long it will take
    unit : what is counted, in the plural
    """
    if not shown:
        yield _NoBar()
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=f" {unit}", unit_scale=True, dynamic_ncols=True, leave=False, file=sys.stderr) as made:
        yield made


def watched(things: Sequence[T], unit: str, shown: bool) -> Iterable[T]:
    """Returns things, one after the other, with a bar that counts them."""
    return _watched(things, unit) if shown else things


def _watched(things: Sequence[T], unit: str) -> Iterator[T]:
    with bar(len(things), unit, True) as made:
        for start in range(0, len(things), PART):
            part = things[start : start + PART]
            yield from part
            made.update(len(part))
