"""Constants of expressions in the be-tree library's language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from colmatch.betree.compile import WithConstants
from colmatch.errors import OptionError, SubscriptionError, show_value
from colmatch.given.arguments import python_value, text, whole_number
from colmatch.given.language import Language
from colmatch.subscriptions.ids import Ids


def with_constants(ids: Ids, expressions: Sequence[Any], constants: object, language: Language) -> Sequence[Any]:
    """Returns expressions with the constants of their ids, ``{id: {name: number}}``.

    Raises
    ------
    OptionError : the language has no constants, ``constants`` is no mapping, or expressions
        have constants already
    SubscriptionError : an id has no subscription, or its constants are not ``{name: int}``
    """
    if constants is None:
        return expressions
    if not language.is_betree:
        raise OptionError("constants= goes with language='betree': SQL has no constants of an expression")
    if not isinstance(constants, Mapping):
        raise OptionError(f"constants={show_value(constants)}: a mapping {{id: {{name: number}}}} is needed")
    left = {python_value(id): numbers for id, numbers in constants.items()}
    bound: list[Any] = []
    for i, expression in enumerate(expressions):
        if isinstance(expression, WithConstants):
            raise OptionError("constants= is given, and the subscriptions have constants, too: give one of the two")
        numbers = left.pop(ids[i], None)
        bound.append(expression if numbers is None else WithConstants(expression, _check_constants(ids[i], numbers)))
    if left:
        raise SubscriptionError(
            f"constants are given for {show_value(next(iter(left)))}, which is none of the subscriptions"
        )
    return bound


def constants_of_column(column: pa.Array, ids: Ids) -> dict[int | str, Any]:
    """Returns constants by id, from maps, structs or objects of JSON.

    Raises SubscriptionError: a text is not JSON.
    """
    constants: dict[int | str, Any] = {}
    for i, value in enumerate(column.to_pylist()):
        if isinstance(value, str):
            value = _parse_json(ids[i], value)
        if isinstance(value, list) and pa.types.is_map(column.type):
            value = dict(value)
        if isinstance(value, dict):
            value = {name: number for name, number in value.items() if number is not None}
        if value:
            constants[ids[i]] = value
    return constants


def _parse_json(id: int | str, text: str) -> Any:
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SubscriptionError(f"the constants of {show_value(id)} are not JSON: {error}") from None


def _check_constants(id: int | str, given: object) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise SubscriptionError(
            f"the constants of {show_value(id)} are {show_value(given)}: {{name: number}} is needed"
        )
    constants: dict[str, int] = {}
    for key, number in given.items():
        name, whole = text(key), whole_number(number)
        if name is None or whole is None:
            raise SubscriptionError(
                f"the constant {show_value(key)} of {show_value(id)} is {show_value(number)}: an int is needed"
            )
        constants[name] = whole
    return constants
