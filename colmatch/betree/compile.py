"""Compilation of expressions in the be-tree library's language to forms and literals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from colmatch.betree.domains import domains_of
from colmatch.betree.parse import parse_betree
from colmatch.errors import ExpressionError, line_and_column
from colmatch.expr.ast import Expr, Refusal
from colmatch.expr.normalise import Normaliser
from colmatch.expr.shared import SharedNodes, TreeForms
from colmatch.expr.size import check_size
from colmatch.given.arguments import python_value
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.given.session import SessionParts
from colmatch.kinds.settings import Budget
from colmatch.lowering.forms import Form


class WithConstants(NamedTuple):
    """A text, and the constants of the expression."""

    text: Any
    constants: Mapping[str, int]


class BetreeCompiler:
    """A compiler of expressions to forms, like ``FormCompiler`` for SQL. One thread at a time.

    Parameters are as for ``FormCompiler``; the schema's columns are the domains.
    """

    session_parts = SessionParts()  # nothing in the language depends on a session

    def __init__(
        self,
        schema: Schema,
        attributes: Attributes,
        options: Options,
        budget: Budget,
        by_attribute: bool = False,
        two_valued: bool = True,
    ) -> None:
        self._domains = domains_of(schema.arrow)
        self._max_depth = options.max_depth
        self._most = options.max_text_bytes
        self._trees = TreeForms(
            Normaliser(schema, attributes, budget, by_attribute, two_valued), SharedNodes(), options.max_depth
        )

    def form(self, expression: Any) -> tuple[Form, list[Any]]:
        """Returns the form of an expression, and its literals by slot, like ``FormCompiler.form``.

        Raises ExpressionError: without id; with line and column if the expression is a text.
        """
        constants = None
        if isinstance(expression, WithConstants):
            expression, constants = expression
        if expression is None:
            raise ExpressionError("the expression is NULL: write a condition, or true")
        if not isinstance(expression, (str, Expr)):
            raise ExpressionError(f"an expression is a text or is built with col(...), not {type(expression).__name__}")
        expression = python_value(expression)
        text = expression if isinstance(expression, str) else None
        try:
            if text is None:
                return self._trees.form(expression.node())
            check_size(text, self._most)
            return self._trees.form(parse_betree(expression, self._domains, self._max_depth, constants))
        except Refusal as refusal:
            message = " ".join(refusal.message.splitlines())
            if text is None:
                raise ExpressionError(message) from None
            line, column = line_and_column(text, refusal.at or 0)
            raise ExpressionError(message, line=line, column=column) from None

    def place(self, expression: Any, slot: int) -> tuple[int, int] | None:
        """Returns no place, since every fault of a literal is found when the text is read."""
        return None
