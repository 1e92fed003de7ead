"""The bar that shows how far something has come, on standard error or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
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
    from tqdm.auto import tqdm  # in a notebook a widget

    with tqdm(total=total, unit=f" {unit}", unit_scale=True, dynamic_ncols=True, leave=False, file=sys.stderr) as made:
        yield made


def counted(things: Iterable[T], made: Bar) -> Iterator[T]:
    """Yields things, one after the other, and has a bar count them."""
    things = iter(things)
    while part := list(islice(things, PART)):
        yield from part
        made.update(len(part))
