"""Definitions of callers: conditions with names, in a mapping or in rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa

from colmatch.errors import OptionError, SchemaError, SubscriptionError, show_value
from colmatch.expr.ast import Expr, Predicate, walk
from colmatch.expr.times import WORDS
from colmatch.expr.tree import COUNTLESS
from colmatch.given.arguments import text
from colmatch.given.language import Language
from colmatch.given.schema import Schema

COLUMN = "define"  # of a table of subscriptions: the name that the expression of the row defines
Columns = dict[str, pa.Array]  # of a table of subscriptions, by name
LONGEST = 200  # characters of a name
# Every text with such a name has it as a word, in some case: updates/redefinition.py finds it so
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{LONGEST - 1}}}")


def read_definitions(define: object) -> dict[str, str | None]:
    """Returns the texts of definitions by name; None for one that is to go.

    define : ``{name: text or condition of the builder}``; None for no definitions

    Raises OptionError: it is something else.
    """
    if define is None:
        return {}
    if not isinstance(define, Mapping):
        raise OptionError(f"define={show_value(define)}: a mapping is needed, as in {{'staff': \"team = 'ops'\"}}")
    return {_name(name): _text(name, condition) for name, condition in define.items()}


def _name(name: object) -> str:
    plain = text(name)
    if plain is None or not _NAME.fullmatch(plain) or plain.lower() in WORDS:
        raise OptionError(
            f"define= has the name {show_value(name)}: up to {LONGEST} letters (a to z), digits and _ are needed, and no "
            "word with another meaning, as in 'staff'"
        )
    return plain


def _text(name: object, condition: object) -> str | None:
    if isinstance(condition, Expr):
        tree = condition.node()
        if any(isinstance(node, Predicate) and node.weighs is not None for node, _ in walk(tree, COUNTLESS)):
            raise OptionError(f"define= has a weight within {show_value(name)}: a definition has no weights")
        return str(tree)
    plain = text(condition)
    if plain is None and condition is not None:
        raise OptionError(f"define= has {show_value(condition)} for {show_value(name)}: a condition is needed")
    return plain


def split_table(columns: Columns, where: str, expression: str) -> tuple[Columns, dict[str, str | None]]:
    """Returns the subscriptions of a table, and the definitions in its rows with a name for one.

    expression : the column of expressions

    Raises SubscriptionError: a row has no name or expression that can be used.
    """
    if COLUMN not in columns or pa.types.is_null(columns[COLUMN].type):
        return columns, {}
    names = columns[COLUMN]
    if pa.types.is_dictionary(names.type):
        names = names.dictionary_decode()
    if not (pa.types.is_string(names.type) or pa.types.is_large_string(names.type)):
        raise SubscriptionError(f"{where}: column {COLUMN!r} is {names.type}, a string is needed")
    is_one = names.is_valid()
    rest = {name: column.filter(names.is_null()) for name, column in columns.items()}
    definitions: dict[str, str | None] = {}
    for name, condition in zip(
        names.filter(is_one).to_pylist(), columns[expression].filter(is_one).to_pylist(), strict=True
    ):
        if condition is None:
            raise SubscriptionError(f"{where}: definition {name!r} has no expression")
        if name in definitions:
            raise SubscriptionError(f"{where}: {name!r} is defined more than once")
        try:
            definitions[_name(name)] = _text(name, condition)
        except OptionError as error:
            raise SubscriptionError(f"{where}: {error}".replace("define= has", "there is")) from None
    return rest, definitions


def join_definitions(some: Mapping[str, str | None], others: Mapping[str, str | None]) -> dict[str, str | None]:
    """Returns the definitions of a table and those of an argument.

    Raises OptionError: both have a name, with different conditions.
    """
    for name in some.keys() & others.keys():
        if some[name] != others[name]:
            raise OptionError(f"{name!r} is defined in the table and by define=: one of both is needed")
    return {**some, **others}


def change_definitions(
    before: Mapping[str, str], changes: Mapping[str, str | None], schema: Schema, language: Language
) -> Mapping[str, str]:
    """Returns definitions after changes, and the same object where nothing changes.

    Raises
    ------
    SchemaError : a name is that of a column, or of two definitions
    OptionError : a definition is to go, and there is none; or the language has no definitions
    """
    if not changes:
        return before
    if language.is_betree:
        raise OptionError("define= goes with language='sql': be-tree's language has no definitions")
    after = dict(before)
    for name, condition in changes.items():
        if condition is not None:
            after[name] = condition
        elif after.pop(name, None) is None:
            raise OptionError(f"define= has None for {name!r}, which is not defined: {_list(before)}")
    _check_names(after, schema)
    return before if after == before else after


def _check_names(names: Iterable[str], schema: Schema) -> None:
    """Raises SchemaError: a name is that of a column, or of two definitions."""
    known: dict[str, str] = {}
    for name in names:
        folded = name if schema.case_sensitive else name.lower()
        if folded in known:
            raise SchemaError(f"the definitions {known[folded]!r} and {name!r} differ in case alone: rename one")
        known[folded] = name
    for column in schema.arrow.names:
        folded = column if schema.case_sensitive else column.lower()
        if folded in known:
            raise SchemaError(f"the definition {known[folded]!r} has the name of a column: rename it")


def _list(names: Iterable[str]) -> str:
    return f"there are {', '.join(map(repr, names)):.200}" if names else "there are none"
