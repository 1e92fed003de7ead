"""Named parameters of texts: ``:limit`` and its value, as ``spark.sql(text, args=...)`` has them.

The value is written into the text as a literal, before anything else reads the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colmatch.errors import ExpressionError, OptionError, line_and_column, show_value, suggest_names
from colmatch.expr.build_literals import literal
from colmatch.expr.spelling import operand_sql
from colmatch.given.arguments import text
from colmatch.given.language import Language
from colmatch.subscriptions.given import read
from colmatch.subscriptions.table import PredicateTable

_LISTS = (list, tuple, set, frozenset)


def fill(subscriptions: Any, parameters: object, language: Language) -> Any:
    """Returns subscriptions with the values of parameters in their texts.

    A text with an unknown parameter becomes the error for it.

    parameters : ``{name: value}``; None leaves the subscriptions as they are

    Raises OptionError: a value cannot be a literal, no text has a parameter, or there are no texts.
    Raises SubscriptionError: as ``read`` does.
    """
    if parameters is None:
        return subscriptions
    if language.is_betree:
        raise OptionError("parameters= goes with language='sql': be-tree has constants= for its expressions")
    values = _literals(parameters)
    given = read(subscriptions, feed=True)
    if isinstance(given, PredicateTable):
        raise OptionError("parameters= goes with texts, not with a PredicateTable")
    used: set[str] = set()
    filled = [_fill(one, values, used) if isinstance(one, str) and ":" in one else one for one in given.expressions]
    unused = next((name for name in values if name not in used), None)
    is_feed = given.deleted is not None  # its rows may be others than those with parameters
    if unused is not None and not is_feed and not any(isinstance(one, ExpressionError) for one in filled):
        raise OptionError(f"parameters= has {show_value(unused)}, and no expression has :{unused:.40}: leave it out")
    return given._replace(expressions=filled)


def _literals(parameters: object) -> dict[str, tuple[str, bool]]:
    """Returns the literal of each parameter, and whether it is a list, of literals with commas."""
    if not isinstance(parameters, Mapping):
        raise OptionError(
            f"parameters={show_value(parameters)}: a mapping {{name: value}} is needed, as in {{'limit': 5}}"
        )
    values: dict[str, tuple[str, bool]] = {}
    for name, value in parameters.items():
        plain = text(name)
        if plain is None or not plain.isidentifier():
            raise OptionError(
                f"parameters= has the name {show_value(name)}: letters, digits and _ are needed, as in 'limit'"
            )
        try:
            is_list = isinstance(value, _LISTS)
            members = list(value) if is_list else [value]
            if not members:
                raise OptionError(f"parameters= has an empty list for {plain!r}: IN needs a member")
            values[plain] = ", ".join([operand_sql(literal(member)) for member in members]), is_list
        except ExpressionError as error:
            raise OptionError(f"parameters= has {show_value(value)} for {plain!r}: {error.message}") from None
    return values


def _fill(expression: str, values: dict[str, tuple[str, bool]], used: set[str]) -> str | ExpressionError:
    """Returns a text with values for its parameters, or the error for one that has none."""
    from colmatch.sql.tokens import find_parameters

    pieces, end = [], 0
    for start, stop, name, is_member in find_parameters(expression):
        if name not in values:
            line, column = line_and_column(expression, start)
            message = f"parameter :{name} has no value: {suggest_names(name, values, 'parameters=')}"
            return ExpressionError(message, line=line, column=column)
        used.add(name)
        written, is_list = values[name]
        # A blank keeps the minus of a number from a sign before it
        pieces += [expression[end:start], " ", f"ARRAY[{written}]" if is_list and not is_member else written]
        end = stop
    return "".join([*pieces, expression[end:]])
