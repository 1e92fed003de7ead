"""Columns ``weights`` and ``priority`` of a table of texts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import SchemaError, SubscriptionError, shown
from colmatch.incoming import column_of, doubles_of, exact_doubles_of, plain, refusing
from colmatch.lowering.lower import Reject
from colmatch.lowering.weights import WEIGHT_MOST, AttributeWeights, Name
from colmatch.schema import Schema
from colmatch.subscriptions.operators import attribute_named

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Rejects = dict[int, Reject]


MEANT = {
    "weight": "weights", "weights": "weights", "priority": "priority", "priorities": "priority", "tag": "tags", "tags": "tags",
}  # fmt: skip


class GivenWeights(NamedTuple):
    """What S subscriptions give to attributes: W weights."""

    size: I64  # (S) how many
    names: list[str]
    name: I64  # (W) place among ``names``
    value: F64  # (W)


def check_names(table: pa.Table, where: str) -> None:
    """Checks that a table of texts has no column that is almost called as these, or as tags are.

    Any other column is the caller's own.

    Raises SubscriptionError: it has one.
    """
    for name in table.column_names:
        meant = MEANT.get(name.strip().lower(), name)
        if meant != name:
            raise SubscriptionError(
                f"{where}: a column {name!r} would mean nothing: what attributes weigh is a column 'weights' of maps, what a "
                "subscription weighs a column 'priority' of numbers, its tags are a column 'tags' of lists of strings, and "
                "'weight' is for the rows of a PredicateTable. "
                f"Rename it to {meant!r} if it is meant so, or drop it"
            )


def given_weights(table: pa.Table, where: str) -> GivenWeights | None:
    """Reads the column ``weights`` of a table, None where there is nothing in it.

    Raises SubscriptionError: it is no map from strings to numbers, and no struct of numbers, of
    which NULL gives nothing.
    """
    if "weights" not in table.column_names:
        return None
    column = column_of(table, "weights", SubscriptionError, where)
    what = f"{where}: column 'weights'"
    if column.null_count == len(column):
        return None
    if pa.types.is_struct(column.type):
        return _of_struct(column, what)
    if not pa.types.is_map(column.type):
        raise SubscriptionError(
            f"{what} is {column.type}, a map from names of attributes to doubles is needed: "
            "pyarrow.map_(pyarrow.string(), pyarrow.float64())"
        )
    first = column.offsets.to_numpy()
    count = np.where(column.is_valid().to_numpy(zero_copy_only=False), np.diff(first), 0).astype(np.int64)
    places = members(first[:-1].astype(np.int64), ranges_of(count))
    with refusing(SubscriptionError, f"{what} is {column.type!s:.200} and cannot be read"):
        keys, items = plain(column.keys), plain(column.items)
        there = items.is_valid().to_numpy(zero_copy_only=False)[places]
        sub = np.repeat(np.arange(len(count)), count)[there]
        keys, items = (part.take(pa.array(places[there])) for part in (keys, items))
    if not len(sub):
        return None
    keys = keys if pa.types.is_dictionary(keys.type) else keys.dictionary_encode()
    if not (pa.types.is_string(keys.type.value_type) or pa.types.is_large_string(keys.type.value_type)):
        raise SubscriptionError(f"{what} is {column.type}: its keys must be strings")
    name = keys.indices.to_numpy().astype(np.int64)
    return GivenWeights(
        np.bincount(sub, minlength=len(count)), keys.dictionary.to_pylist(), name, _doubles(items, what)
    )


def _of_struct(column: pa.StructArray, what: str) -> GivenWeights | None:
    names, parts = [field.name for field in column.type], column.flatten()
    there = [np.flatnonzero(part.is_valid().to_numpy(zero_copy_only=False)) for part in parts]
    if not any(map(len, there)):
        return None
    value = [_doubles(part, f"{what}, field {name!r}")[at] for name, part, at in zip(names, parts, there, strict=True)]
    sub, name = np.concatenate(there), np.repeat(np.arange(len(names)), [len(at) for at in there])
    order = np.argsort(sub, kind="stable")
    return GivenWeights(np.bincount(sub, minlength=len(column)), names, name[order], np.concatenate(value)[order])


def given_priority(table: pa.Table, where: str) -> F64 | None:
    """Reads the column ``priority`` of a table; None where it has no values.

    Raises SubscriptionError: it has no numbers, or has one that a double cannot tell from others.
    """
    if "priority" not in table.column_names:
        return None
    column = column_of(table, "priority", SubscriptionError, where)
    if column.null_count == len(column):
        return None
    doubles = exact_doubles_of(column, SubscriptionError, f"{where}: column 'priority'")
    priority: F64 = doubles.fill_null(0).to_numpy(zero_copy_only=False)
    return priority


def _doubles(column: pa.Array, what: str) -> F64:
    doubles: F64 = doubles_of(column, SubscriptionError, what).fill_null(0).to_numpy(zero_copy_only=False)
    return doubles


def checked_priority(priority: F64) -> tuple[F64, Rejects]:
    """Returns priorities that are numbers, and what is wrong with the others."""
    wrong = ~fits(priority)
    said = {sub: Reject(no_weight("the priority", priority[sub]), -1) for sub in np.flatnonzero(wrong).tolist()}
    return (np.where(wrong, 0.0, priority) if said else priority), said


def fits(values: F64) -> NDArray[np.bool_]:
    """Returns which numbers can be weights, or priorities."""
    return np.abs(values) <= WEIGHT_MOST


def no_weight(what: str, value: float) -> str:
    return f"{what} is {value}: a number from -1e100 to 1e100 is needed"


def resolved(given: GivenWeights, schema: Schema) -> tuple[AttributeWeights, Rejects]:
    """Returns the weights by what their names stand for, and what is wrong with some."""
    names: dict[Name, int] = {}
    place = np.full(len(given.names), -1)
    wrong_names: dict[int, str] = {}
    for i, text in enumerate(given.names):
        try:
            name = attribute_named(schema, text)
        except SchemaError as error:
            wrong_names[i] = f"weights: {error}"
        else:
            place[i] = names.setdefault(name, len(names))
    sub, at, value = np.repeat(np.arange(len(given.size)), given.size), place[given.name], given.value
    wrong: dict[int, str] = {}
    for w in np.flatnonzero(at < 0).tolist():
        wrong.setdefault(int(sub[w]), wrong_names[int(given.name[w])])
    for w in np.flatnonzero(~fits(value)).tolist():
        what = f"the weight of {shown(given.names[given.name[w]])}"
        wrong.setdefault(int(sub[w]), no_weight(what, value[w]))
    good = np.flatnonzero(at >= 0)
    key = sub[good] * len(names) + at[good]
    order = np.argsort(key, kind="stable")
    key, good = key[order], good[order]
    for w in good[1:][key[1:] == key[:-1]].tolist():
        wrong.setdefault(int(sub[w]), f"weights: {shown(given.names[given.name[w]])} is given more than once")
    rejects = {sub: Reject(message, -1) for sub, message in wrong.items()}
    return AttributeWeights(list(names), key, value[good]), rejects
