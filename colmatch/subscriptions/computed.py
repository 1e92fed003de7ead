"""Computed attributes of predicate tables: ``lower(dest)``, ``price * qty``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from colmatch.errors import ExpressionError, show_value
from colmatch.given.options import Options
from colmatch.given.schema import Attribute, Role, Schema, value_type
from colmatch.given.session import SessionParts
from colmatch.kernels._forks import cached_property

if TYPE_CHECKING:
    from colmatch.expr.computed_types import Typing
    from colmatch.sql.parse import Parser

_SIGNS = re.compile(r"[-+*/%(<=>]")
_COMPARISONS = ("<", "<=", "=", "<=>")


class ComputedNames:
    """Attributes that a table computes of columns, named by SQL expressions.

    The parser is imported for the first name that looks like an expression.
    """

    def __init__(self, schema: Schema, options: Options) -> None:
        self._schema = schema
        self._options = options
        self.session_parts = SessionParts()  # values that depend on the session

    @cached_property
    def _parser(self) -> Parser:
        from colmatch.sql.parse import Parser
        from colmatch.sql.quotes import Quotes

        return Parser(self._options.max_depth, quotes=Quotes(self._schema, self._options.double_quotes))

    @cached_property
    def _typing(self) -> Typing:
        from colmatch.expr.computed_types import Typing

        return Typing(self._schema, self._options)

    def find(self, name: str) -> Attribute | None:
        """Returns the attribute of an expression, None where the text does not look like one.

        Raises ExpressionError, without a place: the attribute cannot be computed.
        """
        if not _SIGNS.search(name):
            return None
        from colmatch.events.computed.nodes import arrow_type
        from colmatch.expr.ast import Predicate, Refusal, Verb

        try:
            tree = self._parser.parse(self._parser.read(self._parser.quotes.written(f"({name}) IS NULL")))
            if not isinstance(tree, Predicate) or tree.verb is not Verb.NULL or tree.subject.computed is None:
                return None
            if tree.subject.computed.function in _COMPARISONS:
                raise ExpressionError(f"attribute {show_value(name)} is a comparison: write it as an expression")
            text, node = self._typing.of(tree.subject.computed)
        except Refusal as refusal:
            if "(" not in name:
                return None  # more likely a column with an odd name
            raise ExpressionError(f"attribute {show_value(name)}: {refusal}") from None
        self.session_parts = self._typing.session_parts
        type = value_type(arrow_type(node.type))
        assert type is not None
        return Attribute((text,), Role.COMPUTED, type, node.key)
