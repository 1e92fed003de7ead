"""One family of errors. Each says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

LISTED_MOST = 8  # names that an error lists
NAME_MOST = 1000  # characters of a name to which others may be alike


class ColmatchError(Exception):
    """Base of every error that colmatch raises on purpose."""


class SchemaError(ColmatchError, ValueError):
    """The schema, or a type in it, cannot be used."""


class OptionError(ColmatchError, ValueError):
    """An option has a value that is not allowed."""


class SubscriptionError(ColmatchError, ValueError):
    """The subscriptions as a whole cannot be read: a missing column, a NULL or repeated id."""


class EventError(ColmatchError, ValueError):
    """A batch of events does not fit the schema that the matcher was built with.

    Attributes
    ----------
    message : the fault and the remedy, without the place
    column : description of the place, such as a column; None if ``message`` tells all
    event : number of the event at fault, or None
    """

    def __init__(self, message: str, *, column: str | None = None, event: int | None = None) -> None:
        self.message = message
        self.column = column
        self.event = event
        super().__init__(message)

    def __str__(self) -> str:
        if self.event is None:
            return self.message
        return f"{'' if self.column is None else f'{self.column}, '}event {self.event}: {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(EventError, column=self.column, event=self.event), (self.message,)

    def count_from(self, first: int) -> None:
        """Numbers the event anew: it was counted within a batch whose first event is ``first``."""
        if self.event is not None:
            self.event += first


class StoreError(ColmatchError, ValueError):
    """A saved matcher or its journal is damaged, foreign, of another version, or in use."""


class KernelError(ColmatchError, RuntimeError):
    """A kernel is not compiled, and must not or cannot be compiled here."""


class DependencyError(ColmatchError, ImportError):
    """An optional package, or Java, is needed and not installed.

    The message says what to install.
    """


class ExpressionError(ColmatchError, ValueError):
    """One expression is invalid.

    Attributes
    ----------
    message : the fault and the remedy, without the place
    id : id of the subscription, or None if it has none yet
    line, column : place in the text, from 1; None for expressions that were not written as text
    """

    def __init__(
        self, message: str, *, id: int | str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.message = message
        self.id = id
        self.line = line
        self.column = column
        super().__init__(message, id, line, column)

    def __str__(self) -> str:
        where = [] if self.id is None else [f"subscription {self.id!r}"]
        if self.line is not None:
            where.append(f"line {self.line}, column {self.column}")
        return f"{self.message} ({', '.join(where)})" if where else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return partial(ExpressionError, id=self.id, line=self.line, column=self.column), (self.message,)

    def at(self, id: int | str) -> ExpressionError:
        """This error, said of subscription ``id``."""
        return ExpressionError(self.message, id=id, line=self.line, column=self.column)


class Rejected(NamedTuple):
    """A subscription that was left out, with ``errors="collect"``.

    Attributes
    ----------
    id : id of the subscription
    position : line and column in its text, from 1; None if no place is at fault
    message : the fault, without id and place
    """

    id: int | str
    position: tuple[int, int] | None
    message: str


def rejected_of(entry: Sequence[Any]) -> Rejected:
    """Returns a rejected subscription that JSON has as a list of its fields.

    Raises ValueError, TypeError: the list has other values.
    """
    id, position, message = entry
    line, column = position or (0, 0)
    if not (isinstance(id, int | str) and isinstance(line, int) and isinstance(column, int)):
        raise ValueError("what was left out has a value of another type than it should")
    if not isinstance(message, str):
        raise ValueError("what was left out has a message that is no text")
    return Rejected(id, (line, column) if position else None, message)


@lru_cache(128)  # a name that is missing is missing from many expressions
def _alike(name: str, known: tuple[str, ...]) -> list[str]:
    """Returns the names that are like ``name``."""
    found = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if not found:
        folded = {other.lower(): other for other in known}
        found = [folded[other] for other in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.6)]
    return found


def near(name: str, names: Iterable[str], owner: str) -> str:
    """Returns the names that are like ``name``, as a question, or else the names that ``owner``
    has.
    """
    known = tuple(names)
    found = _alike(name, known) if len(name) <= NAME_MOST else []
    if found:
        return f"did you mean {' or '.join(map(repr, found))}?"
    listed = ", ".join(map(repr, known[:LISTED_MOST])) or "no columns"
    return f"{owner} has {listed}" + (f" and {len(known) - LISTED_MOST} more" if len(known) > LISTED_MOST else "")


def shown(value: object) -> str:
    """Returns a value as a message shows it: its ``repr``, or its type where that cannot be had.

    An int of thousands of digits has no ``repr``, nor has an object whose ``__repr__`` raises.
    """
    try:
        return f"{value!r:.80}"
    except Exception:
        return f"<{type(value).__name__}>"
