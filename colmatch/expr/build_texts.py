"""Methods of texts under their names in polars: ``col("s").str.starts_with("a")``."""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

from colmatch.errors import ExpressionError, show_value
from colmatch.expr.ast import Expr
from colmatch.given.arguments import whole_number


class _Handle(Protocol):
    def _node(self, function: str, *arguments: object) -> Self: ...

    def rlike(self, pattern: str) -> Expr: ...

    def contains(self, part: str) -> Expr: ...

    def startswith(self, prefix: str) -> Expr: ...

    def endswith(self, suffix: str) -> Expr: ...


H = TypeVar("H", bound=_Handle)


class TextNames(Generic[H]):
    """Conditions and values of a column of texts."""

    __slots__ = ("_of",)

    def __init__(self, of: H) -> None:
        self._of = of

    def contains(self, pattern: str, *, literal: bool = False) -> Expr:
        """Makes a condition: the text matches a regular expression somewhere, or has ``pattern``.

        literal : the pattern is a plain text
        """
        return self._of.contains(pattern) if literal else self._of.rlike(pattern)

    def starts_with(self, prefix: str) -> Expr:
        """Makes a condition: the text begins with ``prefix``."""
        return self._of.startswith(prefix)

    def ends_with(self, suffix: str) -> Expr:
        """Makes a condition: the text ends with ``suffix``."""
        return self._of.endswith(suffix)

    def to_lowercase(self) -> H:
        """Returns the text in small letters."""
        return self._of._node("lower", self._of)

    def to_uppercase(self) -> H:
        """Returns the text in capitals."""
        return self._of._node("upper", self._of)

    def len_chars(self) -> H:
        """Returns the number of characters."""
        return self._of._node("length", self._of)

    def len_bytes(self) -> H:
        """Returns the number of bytes in UTF-8."""
        return self._of._node("octet_length", self._of)

    def slice(self, offset: int, length: int) -> H:
        """Returns so many characters from a place on, which counts from 0."""
        place, count = whole_number(offset), whole_number(length)
        if place is None or place < 0 or count is None or count < 0:
            raise ExpressionError(
                f"slice({show_value(offset)}, {show_value(length)}): two whole numbers from 0 on are needed"
            )
        return self._of._node("substring", self._of, place + 1, count)
