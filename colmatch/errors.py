"""The errors of colmatch, one family. Each message has the fault, its place and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

LISTED_MOST = 8  # names that an error lists
NAME_MOST = 1000  # characters; a longer name is not compared with others


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """Returns the line and the column of a character of a text, from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


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
    column : description of the place, such as a column; None if ``message`` is complete
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
        """Adds the number of the batch's first event to an event number counted within the batch.

        first : number of the first event within the whole input
        """
        if self.event is not None:
            self.event += first


class StoreError(ColmatchError, ValueError):
    """A saved matcher or its journal is damaged, foreign, of another version, or in use."""


class KernelError(ColmatchError, RuntimeError):
    """A kernel is not compiled, and must not or cannot be compiled here."""


class DependencyError(ColmatchError, ImportError):
    """An optional package, or Java, is needed and not installed.

    The message has the remedy.
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
        """Returns this error with the id of a subscription."""
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


def parse_rejected(entry: Sequence[Any]) -> Rejected:
    """Converts the fields of a rejected subscription, which JSON has as a list.

    Raises ValueError, TypeError: the list has other values.
    """
    id, position, message = entry
    line, column = position or (0, 0)
    if not (isinstance(id, int | str) and isinstance(line, int) and isinstance(column, int)):
        raise ValueError("what was left out has a value of another type than it should")
    if not isinstance(message, str):
        raise ValueError("what was left out has a message that is no text")
    return Rejected(id, (line, column) if position else None, message)


@lru_cache(128)  # a missing name is often missing from many expressions
def _find_similar(name: str, known: tuple[str, ...]) -> list[str]:
    """Returns up to three names similar to ``name``."""
    matches = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if not matches:
        folded = {other.lower(): other for other in known}
        matches = [folded[other] for other in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.6)]
    return matches


def suggest_names(name: str, names: Iterable[str], owner: str) -> str:
    """Returns the similar names as a question, or else the names that ``owner`` has."""
    candidates = tuple(names)
    matches = _find_similar(name, candidates) if len(name) <= NAME_MOST else []
    if matches:
        return f"did you mean {' or '.join(map(repr, matches))}?"
    listed = ", ".join(map(repr, candidates[:LISTED_MOST])) or "no columns"
    return f"{owner} has {listed}" + (
        f" and {len(candidates) - LISTED_MOST} more" if len(candidates) > LISTED_MOST else ""
    )


def show_value(value: object) -> str:
    """Returns a value as text for a message: its ``repr``, or its type if there is no ``repr``.

    An int of thousands of digits has none, nor has an object with a ``__repr__`` that raises.
    """
    try:
        return f"{value!r:.80}"
    except Exception:
        return f"<{type(value).__name__}>"
