"""Rows in which a computed value cannot be computed: with ANSI, an overflow, say.

A function that finds such rows raises ``RowsError``, which has the values of all others. A value
fails where it depends on a part that fails. ``coalesce`` and CASE evaluate their arguments from the
left, as far as they must. Any argument may decide an AND, an OR, or a function that is NULL where
an argument is. Spark evaluates from the left and stops at a part that decides, so it raises an
error in more rows.

A batch without such a row costs nothing extra.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import EventError

Rows = NDArray[np.bool_]


class Failed(NamedTuple):
    """The rows of a batch that have no value, and what is said of one of them."""

    rows: Rows
    message_of: Callable[[int], str]


class RowsError(EventError):
    """A value cannot be computed in some rows.

    Attributes
    ----------
    values : the value in all rows; NULL in those
    failed : the rows
    """

    def __init__(self, rows: Rows, values: Any, message_of: Callable[[int], str]) -> None:
        super().__init__(message_of(int(rows.argmax())))
        self.values = values
        self.failed = Failed(rows, message_of)


def refuse(rows: Any, values: Any, message: str | Callable[[int], str]) -> Any:
    """Returns a value, or raises RowsError where it cannot be computed in some rows.

    rows : a bool for each row, of NumPy or Arrow, or one for all
    message : or a function that returns it for a row
    """
    found = true_rows(rows)
    if not found.any():
        return values
    raise RowsError(found, values, message if callable(message) else lambda row: message)


def true_rows(values: Any) -> Rows:
    """Returns whether each of some bools is true; NULL is not."""
    if isinstance(values, pa.Scalar):
        return np.array([values.as_py() is True])
    if isinstance(values, pa.Array):
        values = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.bool_)


def nulled(values: Any, rows: Rows) -> Any:
    """Returns values that are NULL in some rows."""
    if not rows.any():
        return values
    if isinstance(values, pa.Scalar):
        return pa.scalar(None, values.type)
    return pc.if_else(pa.array(rows), pa.scalar(None, values.type), values)


def failed_of(
    function: str, rows: int, values: Sequence[Any], parts: Sequence[Failed | None], own: Failed | None
) -> Failed | None:
    """Returns the rows in which a function has no value; None without any.

    values, parts : of its arguments: their values, and the rows in which they have none
    own : the rows in which only the function itself has none
    """
    found = [part for part in (own, *_needed(function, rows, values, parts)) if part is not None and part.rows.any()]
    if len(found) < 2:
        return found[0] if found else None
    return Failed(
        np.logical_or.reduce([part.rows for part in found]),
        lambda row: next(part.message_of(row) for part in found if part.rows[row]),
    )


def _needed(function: str, rows: int, values: Sequence[Any], parts: Sequence[Failed | None]) -> Sequence[Failed | None]:
    """Returns for each argument the rows in which it fails, and the function depends on it."""
    if function in ("case", "coalesce"):
        return _in_order(function == "case", rows, values, parts)
    decides = _DECIDES.get(function, _is_null)
    left = np.ones(rows, np.bool_)
    for value, part in zip(values, parts, strict=True):
        decided = decides(value)
        left = left & ~(decided if part is None else decided & ~part.rows)
    return [None if part is None else Failed(left & part.rows, part.message_of) for part in parts]


def _in_order(
    is_case: bool, rows: int, values: Sequence[Any], parts: Sequence[Failed | None]
) -> Sequence[Failed | None]:
    """Returns what ``_needed`` does, of arguments that are evaluated from the left."""
    left = chosen = np.ones(rows, np.bool_)  # rows that no argument has decided yet; that the last one has
    found: list[Failed | None] = []
    for place, (value, part) in enumerate(zip(values, parts, strict=True)):
        is_result = is_case and place % 2 == 1
        found.append(None if part is None else Failed((chosen if is_result else left) & part.rows, part.message_of))
        if not is_result and place < len(values) - 1:
            left = left if part is None else left & ~part.rows
            chosen = left & (true_rows(value) if is_case else ~_is_null(value))
            left = left & ~chosen
    return found


def _is_null(value: Any) -> Rows:
    return true_rows(pc.is_null(value))


def _nothing(value: Any) -> Rows:
    return np.zeros(1, np.bool_)


# Whether a value decides a function by itself; a NULL does for all others.
_DECIDES: dict[str, Callable[[Any], Rows]] = {
    "and": lambda value: true_rows(pc.invert(value)),
    "or": true_rows,
    "same": _nothing,
    "isnull": _nothing,
    "greatest": _nothing,
    "least": _nothing,
}
