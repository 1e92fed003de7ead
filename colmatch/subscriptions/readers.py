"""Readers of expressions, tried in order: each leaves some expressions to the next.

The reader of a few expressions and the reader of single ones are here. The third one reads columns
of texts by kernels (``texts.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from colmatch.errors import ExpressionError
from colmatch.lowering.few import FewExpressions
from colmatch.lowering.forms import Form
from colmatch.lowering.lower import Lowering

if TYPE_CHECKING:
    from colmatch.betree.compile import BetreeCompiler
    from colmatch.sql.compile import FormCompiler

Unread = tuple[Sequence[int], dict[int, ExpressionError]]


class ExpressionReader(Protocol):
    """A reader of expressions, which passes them to a lowering."""

    def read(self, expressions: Sequence[Any], numbers: Sequence[int], lowering: Lowering, stop: bool) -> Unread:
        """Reads the expressions of ascending numbers.

        stop : whether to stop at the first error

        Returns the numbers that are left to the next reader, and errors by number.
        """


class SingleReader:
    """A reader of single expressions, which reads all of them.

    Attributes
    ----------
    forms : ids of the forms that it has met
    """

    def __init__(self, compiler: FormCompiler | BetreeCompiler) -> None:
        self.compiler = compiler
        self.forms: set[int] = set()

    def read(self, expressions: Sequence[Any], numbers: Sequence[int], lowering: Lowering, stop: bool) -> Unread:
        """Reads as ``ExpressionReader.read`` does, and leaves no expressions."""
        forms: dict[int, tuple[Form, list[int], list[Any]]] = {}
        errors: dict[int, ExpressionError] = {}
        texts = expressions[numbers[0] : numbers[-1] + 1] if isinstance(numbers, range) else None
        for sub, expression in zip(numbers, texts or map(expressions.__getitem__, numbers), strict=True):
            try:
                form, literals = self.compiler.form(expression)
            except ExpressionError as error:
                errors[sub] = _without_frames(error)
                if stop:
                    return (), errors
                continue
            group = forms.get(id(form))  # the form is held here, so that its id stays unique
            if group is None:
                group = forms[id(form)] = (form, [], [])
            group[1].append(sub)
            group[2].append(literals)
        self.forms.update(forms)
        for form, subs, literals in forms.values():
            lowering.add(form, subs, literals)
        return (), errors


class FewReader:
    """A reader of a few expressions together, if none has weights or an error."""

    def __init__(self, single: SingleReader, few: FewExpressions) -> None:
        self._single = single
        self._few = few

    def read(self, expressions: Sequence[Any], numbers: Sequence[int], lowering: Lowering, stop: bool) -> Unread:
        """Reads as ``ExpressionReader.read`` does. Leaves no expressions, or all without errors."""
        if lowering.rejected:
            return numbers, {}
        forms: list[tuple[Form, list[Any]]] = []
        errors: dict[int, ExpressionError] = {}
        for number in numbers:
            try:
                forms.append(self._single.compiler.form(expressions[number]))
            except ExpressionError as error:
                errors[number] = _without_frames(error)
                if stop:
                    return (), errors
        if errors:
            return [number for number in numbers if number not in errors], errors
        self._single.forms.update([id(form) for form, _ in forms])
        lowered = self._few.lower(forms)
        if lowered is None:
            return numbers, {}
        lowering.session.literal = self._few.session.literal
        lowering.take(lowered)
        return (), {}


def _without_frames(error: ExpressionError) -> ExpressionError:
    """Returns an error without frames, since they hold tokens and trees."""
    return ExpressionError(error.message, line=error.line, column=error.column)
