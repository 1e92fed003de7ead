"""Subscriptions in the forms of callers: mappings, pairs, Arrow tables, predicate tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.errors import OptionError, SubscriptionError, show_value
from colmatch.given.arguments import is_listed
from colmatch.given.incoming import ArrowArray, ArrowStream, check_only, columns_of, is_table, table_of
from colmatch.given.language import SQL, Language
from colmatch.given.scans import Scannable
from colmatch.subscriptions import change_feed
from colmatch.subscriptions.constants import constants_of_column, with_constants
from colmatch.subscriptions.definitions import COLUMN as DEFINE
from colmatch.subscriptions.definitions import split_table
from colmatch.subscriptions.ids import Ids, ids_of_values, unique_ids
from colmatch.subscriptions.table import PredicateTable
from colmatch.subscriptions.tags import GivenTags, read_tags, tags_of, tags_of_column
from colmatch.subscriptions.weights import GivenWeights, check_names, weights_of_columns

# Words in the names that others give to a column.
_LIKELY = {
    "id": ("id", "key", "name"),
    "expression": ("expr", "where", "condition", "predicate", "filter", "criteri", "clause", "rule", "sql", "query"),
}
PART = 1024  # texts of a column that become Python strings together


Subscriptions = (
    Mapping[Any, Any] | Iterable[tuple[Any, Any] | list[Any]] | ArrowStream | ArrowArray | Scannable | PredicateTable
)  # fmt: skip
Tags = str | Mapping[Any, Iterable[str] | None] | ArrowStream | ArrowArray | Scannable


class ArrowTexts(Sequence[Any]):
    """A column of texts, which become Python strings one piece at a time."""

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, which: Any) -> Any:
        part = self._texts[which]
        return part.to_pylist() if isinstance(which, slice) else part.as_py()

    def slice(self, start: int, stop: int) -> pa.StringArray:
        """Returns the texts ``start:stop`` as strings."""
        texts = self._texts.slice(start, stop - start)
        if pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_decode()
        return texts.cast(pa.string())

    def large(self) -> pa.LargeStringArray:
        """Returns all texts as large strings."""
        texts = self._texts
        return (texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts).cast(pa.large_string())

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), PART):
            yield from self[start : start + PART]

    def filter(self, left: NDArray[np.bool_]) -> ArrowTexts:
        """Returns the texts where ``left`` is true."""
        return ArrowTexts(self._texts.filter(pa.array(left)))

    @staticmethod
    def join(parts: Sequence[Any]) -> ArrowTexts:
        """Returns the texts of several columns."""
        return ArrowTexts(pa.concat_arrays([part.large() for part in parts]))


class GivenSubscriptions(NamedTuple):
    """Subscriptions of a caller: as many texts or builder expressions as ids."""

    ids: Ids
    expressions: Sequence[Any]
    weights: GivenWeights = GivenWeights()
    tags: GivenTags | None = None
    definitions: Mapping[str, str | None] = MappingProxyType({})  # of the table, by name
    deleted: Ids | None = None  # ids that a change feed has deleted; None for any other table

    def filter(self, left: NDArray[np.bool_]) -> GivenSubscriptions:
        """Returns the subscriptions that are left, with tags that are in their order."""
        texts = self.expressions
        if isinstance(texts, ArrowTexts):
            chosen: Sequence[Any] = texts.filter(left)
        else:
            chosen = [texts[i] for i in np.flatnonzero(left).tolist()]
        tags = self.tags
        if tags is not None and tags.ids is None:
            tags = tags._replace(lists=tags.lists.filter(pa.array(left)))
        return self._replace(
            ids=self.ids.filter(left), expressions=chosen, weights=self.weights.filter(left), tags=tags
        )

    def in_order(self) -> GivenSubscriptions:
        """Returns these subscriptions with their tags in the order of the ids."""
        if self.tags is None or self.tags.ids is None:
            return self
        lists = tags_of(self.tags, self.ids).lists(np.ones(len(self.ids), bool))
        return self.with_tags(GivenTags(None, lists.cast(pa.large_list(pa.string()))))

    def with_tags(self, tags: GivenTags) -> GivenSubscriptions:
        """Returns these subscriptions with tags."""
        return self._replace(tags=tags)


def read(
    subscriptions: Any, language: Language = SQL, constants: Any = None, tags: Any = None, feed: bool = False
) -> PredicateTable | GivenSubscriptions:
    """Reads a caller's subscriptions. This may take time, or call the matcher again.

    constants : by id, for a language that has constants
    tags : by id
    feed : whether the subscriptions may be a change feed

    Raises SubscriptionError: the subscriptions cannot be read, an id is invalid or repeated, or
    tags are given twice. Raises OptionError: constants do not fit.
    """
    result = _read(subscriptions, language)
    if not feed and isinstance(result, GivenSubscriptions) and result.deleted is not None:
        raise SubscriptionError(change_feed.REMEDY)
    return add_arguments(result, language, constants, tags)


def add_arguments(
    result: PredicateTable | GivenSubscriptions, language: Language, constants: Any, tags: Any
) -> PredicateTable | GivenSubscriptions:
    """Returns subscriptions with the arguments ``constants`` and ``tags`` of a call."""
    if tags is not None:
        if result.tags is not None:
            raise SubscriptionError(
                "tags= is given, and the subscriptions have tags of their own: one of both is needed"
            )
        result = result.with_tags(read_tags(tags))
    if constants is None:
        return result
    if isinstance(result, PredicateTable):
        raise OptionError("constants= goes with expressions, not with a PredicateTable")
    return result._replace(expressions=with_constants(result.ids, result.expressions, constants, language))


class NamedColumns(NamedTuple):
    """A table of subscriptions, and the names of its columns."""

    table: Any
    id: str = "id"
    expression: str = "expression"
    tags: str = "tags"


def name_columns(subscriptions: Any, id: object, expression: object, tags: object) -> Any:
    """Returns subscriptions with the names of their columns, as ``Matcher.build`` takes them.

    tags : a text is the name of a column; ``tags_apart`` returns anything else

    Raises OptionError: a name is no text, or the subscriptions are no table.
    """
    names = {"id": id, "expression": expression, "tags": tags if isinstance(tags, str) else None}
    given = {argument: name for argument, name in names.items() if name is not None}
    if subscriptions is None or not given:
        return subscriptions
    for argument, name in given.items():
        if not isinstance(name, str):
            raise OptionError(f"{argument}={show_value(name)}: the name of a column is needed")
    if not is_table(subscriptions):
        said = " and ".join(f"{argument}={name!r}" for argument, name in given.items())
        raise OptionError(f"{said}: these are names of columns of a table, and the subscriptions are none")
    return NamedColumns(subscriptions, **{argument: str(name) for argument, name in given.items()})


def tags_apart(tags: Any) -> Any:
    """Returns the tags that a call gives apart from a table; None for the name of its column."""
    return None if isinstance(tags, str) else tags


def _read(subscriptions: Any, language: Language) -> PredicateTable | GivenSubscriptions:
    if isinstance(subscriptions, (PredicateTable, GivenSubscriptions)):
        return subscriptions
    if isinstance(subscriptions, NamedColumns):
        return _read_table(subscriptions, language)
    is_list = type(subscriptions) is list  # as usual, and quicker
    package = type(subscriptions).__module__.partition(".")[0]
    if not is_list and isinstance(subscriptions, Mapping):
        ids, expressions = list(subscriptions), list(subscriptions.values())
    elif package == "pandas" and hasattr(subscriptions, "to_list"):  # a Series, since Arrow drops its index
        ids, expressions = subscriptions.index.to_list(), subscriptions.to_list()
    elif not is_list and is_table(subscriptions):
        return _read_table(NamedColumns(subscriptions), language)
    elif is_list or is_listed(subscriptions):
        ids, expressions = [], []
        for i, pair in enumerate(subscriptions):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                table = "; pyarrow.Table.from_pylist makes a table" if isinstance(pair, Mapping) else ""
                message = f"subscription number {i} is {show_value(pair)}: a pair (id, expression) is needed{table}"
                raise SubscriptionError(message)
            ids.append(pair[0])
            expressions.append(pair[1])
    else:
        raise SubscriptionError(
            f"subscriptions cannot be read from {type(subscriptions).__name__}: a dict {{id: text}}, pairs (id, text), an Arrow "
            "table with the columns id and expression, or a PredicateTable is needed"
        )
    return GivenSubscriptions(ids_of_values(ids), expressions)


def _read_table(named: NamedColumns, language: Language) -> GivenSubscriptions:
    where = "the table of subscriptions"
    needed = [named.id, named.expression, *([named.tags] if named.tags != "tags" else [])]
    optional = ["weights", "priority", named.tags, *(["constants"] if language.is_betree else [])]
    optional = [name for name in optional if name not in needed]
    more = (*optional, DEFINE, *change_feed.OF_FEED)

    def choose(names: list[str]) -> list[str]:
        check_names([name for name in names if name not in needed], where)
        for argument, name in zip(("id", "expression", "tags"), needed):
            check_only(names, name, SubscriptionError, where, _remedy(argument, names) if name == argument else "")
        return list(dict.fromkeys([*needed, *(name for name in names if name in more)]))

    table, deleted, undefined = table_of(named.table, SubscriptionError, where, choose), None, list[str]()
    columns = columns_of(table, needed, more, SubscriptionError, where)
    if set(change_feed.OF_FEED) <= columns.keys():
        columns, gone, undefined = change_feed.split_feed(columns, where, named.id)
        deleted = unique_ids(gone, where, named.id)
    columns, definitions = split_table(columns, where, named.expression)
    texts = columns[named.expression]
    text_type = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
    if not (pa.types.is_string(text_type) or pa.types.is_large_string(text_type)):
        raise SubscriptionError(f"{where}: column {named.expression!r} is {texts.type}, a string is needed")
    ids = unique_ids(columns[named.id], where, named.id)
    expressions: Sequence[Any] = ArrowTexts(texts)
    beside = {name: column for name, column in columns.items() if name in optional}
    if "constants" in beside:
        expressions = with_constants(ids, expressions, constants_of_column(beside["constants"], ids), language)
    weights = weights_of_columns(beside.get("weights"), beside.get("priority"), where)
    listed = tags_of_column(columns.get(named.tags), where, named.tags)
    definitions = {**dict.fromkeys(undefined), **definitions}
    return GivenSubscriptions(ids, expressions, weights, listed, definitions, deleted)


def _remedy(argument: str, names: list[str]) -> str:
    """Returns the advice of an error about a table without ids or expressions."""
    likely = (name for word in _LIKELY[argument] for name in names if word in name.lower())
    name = next(likely, "...")
    return f"; {argument}={name!r} names another column for it"
