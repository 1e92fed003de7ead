"""Subscriptions that were left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Rejected(NamedTuple):
    """A subscription that was left out, with ``errors="collect"``."""

    id: int | str
    position: tuple[int, int] | None  # line and column in its text, from 1
    message: str

    @staticmethod
    def of_list(entry: Sequence[Any]) -> Rejected:
        """Returns what JSON has as a list of the three."""
        id, position, message = entry
        return Rejected(id, tuple(position) if position else None, message)
