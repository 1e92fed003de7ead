"""Subscriptions that were left out."""

from __future__ import annotations

from typing import NamedTuple


class Rejected(NamedTuple):
    """A subscription that was left out, with ``errors="collect"``."""

    id: int | str
    position: tuple[int, int] | None  # line and column in its text, from 1
    message: str
