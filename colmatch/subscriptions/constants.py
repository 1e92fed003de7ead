"""Constants that are given with expressions of the be-tree library's language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from colmatch.betree.compile import WithConstants
from colmatch.errors import OptionError, SubscriptionError, shown
from colmatch.given.arguments import python_value, text, whole_number
from colmatch.given.language import Language
from colmatch.subscriptions.ids import Ids


def with_constants(ids: Ids, expressions: Sequence[Any], constants: object, language: Language) -> Sequence[Any]:
    """Returns expressions with the constants of their ids, ``{id: {name: number}}``.

    Raises
    ------
    OptionError : constants are given, and the language has none; or they are no such mapping
    SubscriptionError : some are given for what is no subscription, or are no numbers
    """
    if constants is None:
        return expressions
    if not language.is_betree:
        raise OptionError("constants= goes with language='betree': SQL has no constants of an expression")
    if not isinstance(constants, Mapping):
        raise OptionError(f"constants={shown(constants)}: a mapping {{id: {{name: number}}}} is needed")
    left = {python_value(id): given for id, given in constants.items()}
    found: list[Any] = []
    for i, expression in enumerate(expressions):
        given = left.pop(ids[i], None)
        found.append(expression if given is None else WithConstants(expression, _checked(ids[i], given)))
    if left:
        raise SubscriptionError(
            f"constants are given for {shown(next(iter(left)))}, which is none of the subscriptions"
        )
    return found


def constants_of_column(column: pa.Array, ids: Ids) -> dict[int | str, Any]:
    """Returns constants by id, from maps, structs or objects of JSON.

    Raises SubscriptionError: the column has something else.
    """
    found: dict[int | str, Any] = {}
    for i, value in enumerate(column.to_pylist()):
        if isinstance(value, str):
            value = _parsed(ids[i], value)
        if isinstance(value, list) and pa.types.is_map(column.type):
            value = dict(value)
        if isinstance(value, dict):
            value = {name: number for name, number in value.items() if number is not None}
        if value:
            found[ids[i]] = value
    return found


def _parsed(id: int | str, text: str) -> Any:
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SubscriptionError(f"the constants of {shown(id)} are not JSON: {error}") from None


def _checked(id: int | str, given: object) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise SubscriptionError(f"the constants of {shown(id)} are {shown(given)}: {{name: number}} is needed")
    found: dict[str, int] = {}
    for said, number in given.items():
        name, whole = text(said), whole_number(number)
        if name is None or whole is None:
            raise SubscriptionError(f"the constant {shown(said)} of {shown(id)} is {shown(number)}: an int is needed")
        found[name] = whole
    return found
