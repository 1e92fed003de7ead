"""Rows where a computed value fails, for example by an overflow with ANSI.

A function that finds such rows raises ``RowsError``, which has the values of all others. A value
fails if it depends on a part that fails. ``coalesce`` and CASE evaluate their arguments from the
left, as far as they must. Any argument may decide an AND, an OR, or a function that is NULL if an
argument is. Spark evaluates from the left and stops at a part that decides, so it raises an error
in more rows.

A batch without such a row costs nothing extra.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import EventError
from colmatch.kernels.layout import I64

Rows = NDArray[np.bool_]


class FailedRows(NamedTuple):
    """The rows of a batch without a value, and the error message of each."""

    rows: Rows
    message_of: Callable[[int], str]


class Doubts(NamedTuple):
    """Pairs of a row and a number, in doubt because a value fails.

    A number is that of a subscription, or the key of a literal.
    """

    row: I64
    number: I64
    reason: Callable[[int], str]  # of the pair at a place

    @staticmethod
    def join(parts: Sequence[Doubts]) -> Doubts:
        """Returns the pairs of several parts."""
        end = np.cumsum([0, *(len(part.row) for part in parts)])

        def reason(place: int) -> str:
            which = int(np.searchsorted(end, place, "right")) - 1
            return parts[which].reason(place - int(end[which]))

        none = np.empty(0, np.int64)
        row, number = (np.concatenate([none, *(part[i] for part in parts)]) for i in (0, 1))
        return Doubts(row, number, reason)


class Failures(NamedTuple):
    """All that fails in a batch.

    Attributes
    ----------
    values : names of computed values -> the rows where they fail
    conditions : attributes of conditions on elements -> the literals in doubt
    """

    values: Mapping[str, FailedRows] = {}
    conditions: Mapping[int, Doubts] = {}


class Unfit(Exception):
    """A value that makes a function of one value fail."""


class RowsError(EventError):
    """An error for a value that fails in some rows.

    Attributes
    ----------
    values : the value in all rows; NULL in the failed ones
    failed : the failed rows
    """

    def __init__(self, rows: Rows, values: Any, message_of: Callable[[int], str]) -> None:
        super().__init__(message_of(int(rows.argmax())))
        self.values = values
        self.failed = FailedRows(rows, message_of)


def refuse(rows: Any, values: Any, message: str | Callable[[int], str]) -> Any:
    """Returns a value, or raises RowsError if it fails in some rows.

    rows : a bool for each row, of NumPy or Arrow, or one for all
    message : error message, or a function that returns it for a row
    """
    failed_rows = true_rows(rows)
    if not failed_rows.any():
        return values
    raise RowsError(failed_rows, values, message if callable(message) else lambda row: message)


def forgive(function: Callable[..., Any], *values: Any) -> Any:
    """Returns the values of a function, NULL in the rows where it fails."""
    try:
        return function(*values)
    except RowsError as error:
        return error.values


def array_of(value: Any) -> pa.Array:
    """Returns an array, which has one row for a scalar."""
    return pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value


def true_rows(values: Any) -> Rows:
    """Returns whether each bool is true; NULL is not."""
    if isinstance(values, pa.Scalar):
        return np.array([values.as_py() is True])
    if isinstance(values, pa.Array):
        values = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.bool_)


def set_nulls(values: Any, rows: Rows) -> Any:
    """Returns values with NULL in some rows."""
    if not rows.any():
        return values
    return pc.if_else(pa.array(rows), pa.scalar(None, values.type), values)


def find_failed(
    function: str, rows: int, values: Sequence[Any], parts: Sequence[FailedRows | None], own: FailedRows | None
) -> FailedRows | None:
    """Returns the rows where a function fails; None if there are none.

    values, parts : values and failed rows of the arguments
    own : rows where only the function itself fails
    """
    failures = [
        part for part in (own, *_select_failed(function, rows, values, parts)) if part is not None and part.rows.any()
    ]
    if len(failures) < 2:
        return failures[0] if failures else None
    return FailedRows(
        np.logical_or.reduce([part.rows for part in failures]),
        lambda row: next(part.message_of(row) for part in failures if part.rows[row]),
    )


def _select_failed(
    function: str, rows: int, values: Sequence[Any], parts: Sequence[FailedRows | None]
) -> Sequence[FailedRows | None]:
    """Returns, for each argument, the rows where it fails and the function depends on it."""
    if function in ("case", "coalesce"):
        return _select_in_order(function == "case", rows, values, parts)
    decides = _DECIDES.get(function, _is_null)
    left = np.ones(rows, np.bool_)
    for value, part in zip(values, parts, strict=True):
        decided = decides(value)
        left = left & ~(decided if part is None else decided & ~part.rows)
    return [None if part is None else FailedRows(left & part.rows, part.message_of) for part in parts]


def _select_in_order(
    is_case: bool, rows: int, values: Sequence[Any], parts: Sequence[FailedRows | None]
) -> Sequence[FailedRows | None]:
    """Returns the same as ``_select_failed``, for arguments that are evaluated from the left."""
    left = chosen = np.ones(rows, np.bool_)  # undecided rows; rows that the last argument decided
    failures: list[FailedRows | None] = []
    for place, (value, part) in enumerate(zip(values, parts, strict=True)):
        is_result = is_case and place % 2 == 1
        failures.append(
            None if part is None else FailedRows((chosen if is_result else left) & part.rows, part.message_of)
        )
        if not is_result and place < len(values) - 1:
            left = left if part is None else left & ~part.rows
            chosen = left & (true_rows(value) if is_case else ~_is_null(value))
            left = left & ~chosen
    return failures


def _is_null(value: Any) -> Rows:
    return true_rows(pc.is_null(value))


def _nothing(value: Any) -> Rows:
    return np.zeros(1, np.bool_)


# Tests whether a value decides a function by itself. NULL decides all other functions.
_DECIDES: dict[str, Callable[[Any], Rows]] = {
    "and": lambda value: true_rows(pc.invert(value)),
    "or": true_rows,
    "same": _nothing,
    "isnull": _nothing,
    "greatest": _nothing,
    "least": _nothing,
    "hash": _nothing,
    "xxhash64": _nothing,
    "is_variant_null": _nothing,
}
