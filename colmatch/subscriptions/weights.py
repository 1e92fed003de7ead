"""Columns ``weights`` and ``priority`` of a table of texts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import SchemaError, SubscriptionError, show_value
from colmatch.given.incoming import doubles_of, exact_doubles_of, plain, refusing
from colmatch.given.schema import Schema
from colmatch.lowering.lower import Reject
from colmatch.lowering.weights import WEIGHT_MOST, AttributeWeights, Name
from colmatch.subscriptions.operators import attribute_named

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Rejects = dict[int, Reject]


MEANT = {
    "weight": "weights", "weights": "weights", "priority": "priority", "priorities": "priority", "tag": "tags", "tags": "tags",
}  # fmt: skip


class AttributeNumbers(NamedTuple):
    """The weights of attributes in S subscriptions: W weights in all."""

    size: I64  # (S) number of weights
    names: list[str]
    name: I64  # (W) place among ``names``
    value: F64  # (W)


class GivenWeights(NamedTuple):
    """Weights of a table of subscriptions; None for a column that is absent or has no values."""

    attributes: AttributeNumbers | None = None
    priority: F64 | None = None

    @staticmethod
    def join(parts: list[GivenWeights], sizes: list[int]) -> GivenWeights:
        """Returns the weights of several tables, of ``sizes`` subscriptions, as those of one."""
        priority, attributes = None, None
        if any(part.priority is not None for part in parts):
            each = zip(parts, sizes, strict=True)
            priority = np.concatenate(
                [np.zeros(size) if part.priority is None else part.priority for part, size in each]
            )
        given = [part.attributes for part in parts]
        there = [own for own in given if own is not None]
        if there:
            starts = ranges_of([len(own.names) for own in there])[:-1]
            attributes = AttributeNumbers(
                np.concatenate(
                    [np.zeros(n, np.int64) if own is None else own.size for own, n in zip(given, sizes, strict=True)]
                ),
                [name for own in there for name in own.names],
                np.concatenate([own.name + start for own, start in zip(there, starts, strict=True)]),
                np.concatenate([own.value for own in there]),
            )
        return GivenWeights(attributes, priority)

    def filter(self, left: NDArray[np.bool_]) -> GivenWeights:
        """Returns the weights of the subscriptions that are left."""
        own = self.attributes
        if own is not None:
            there = np.repeat(left, own.size)
            own = AttributeNumbers(own.size[left], own.names, own.name[there], own.value[there])
        return GivenWeights(own, None if self.priority is None else self.priority[left])

    def resolve(self, schema: Schema) -> tuple[AttributeWeights | None, F64 | None, Rejects]:
        """Returns weights by attribute, priorities, and rejects for wrong ones."""
        weights, priority, rejects = None, self.priority, Rejects()
        if priority is not None:
            wrong = ~fits(priority)
            if wrong.any():
                rejects = {
                    sub: Reject(no_weight("the priority", priority[sub]), -1) for sub in np.flatnonzero(wrong).tolist()
                }
                priority = np.where(wrong, 0.0, priority)
        if self.attributes is not None:
            weights, others = _resolve_weights(self.attributes, schema)
            rejects |= others
        return weights, priority, rejects


def check_names(names: list[str], where: str) -> None:
    """Checks that no column of a table of texts has nearly the name of weights, priority or tags.

    Other columns may have any name.

    Raises SubscriptionError: a column has such a name.
    """
    for name in names:
        meant = MEANT.get(name.strip().lower(), name)
        if meant != name:
            raise SubscriptionError(
                f"{where}: a column {name!r} would mean nothing: 'weights' has maps with the weights of attributes, "
                "'priority' has the weight of the subscription, 'tags' has lists of strings, and 'weight' is for the rows of "
                f"a PredicateTable. Rename it to {meant!r}, or drop it"
            )


def weights_of_columns(weights: pa.Array | None, priority: pa.Array | None, where: str) -> GivenWeights:
    """Reads the columns ``weights`` and ``priority`` of a table of subscriptions.

    Raises SubscriptionError: weights are no maps from strings to numbers, and no structs of
    numbers; or a priority is no number, or equals no double.
    """
    attributes, numbers = None, None
    if weights is not None and weights.null_count < len(weights):
        attributes = _of_maps(weights, f"{where}: column 'weights'")
    if priority is not None and priority.null_count < len(priority):
        doubles = exact_doubles_of(priority, SubscriptionError, f"{where}: column 'priority'")
        numbers = doubles.fill_null(0).to_numpy(zero_copy_only=False)
    return GivenWeights(attributes, numbers)


def _of_maps(column: pa.Array, what: str) -> AttributeNumbers | None:
    if pa.types.is_struct(column.type):
        return _of_struct(column, what)
    if not pa.types.is_map(column.type):
        raise SubscriptionError(
            f"{what} is {column.type}, a map from names of attributes to doubles is needed: "
            "pyarrow.map_(pyarrow.string(), pyarrow.float64())"
        )
    # Find the entries, without NULL
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
    # Number the names
    keys = keys if pa.types.is_dictionary(keys.type) else keys.dictionary_encode()
    if not (pa.types.is_string(keys.type.value_type) or pa.types.is_large_string(keys.type.value_type)):
        raise SubscriptionError(f"{what} is {column.type}: its keys must be strings")
    name = keys.indices.to_numpy().astype(np.int64)
    return AttributeNumbers(
        np.bincount(sub, minlength=len(count)), keys.dictionary.to_pylist(), name, _doubles(items, what)
    )


def _of_struct(column: pa.StructArray, what: str) -> AttributeNumbers | None:
    names, parts = [field.name for field in column.type], column.flatten()
    there = [np.flatnonzero(part.is_valid().to_numpy(zero_copy_only=False)) for part in parts]
    if not any(map(len, there)):
        return None
    value = [_doubles(part, f"{what}, field {name!r}")[at] for name, part, at in zip(names, parts, there, strict=True)]
    sub, name = np.concatenate(there), np.repeat(np.arange(len(names)), [len(at) for at in there])
    order = np.argsort(sub, kind="stable")
    return AttributeNumbers(np.bincount(sub, minlength=len(column)), names, name[order], np.concatenate(value)[order])


def _doubles(column: pa.Array, what: str) -> F64:
    doubles: F64 = doubles_of(column, SubscriptionError, what).fill_null(0).to_numpy(zero_copy_only=False)
    return doubles


def fits(values: F64) -> NDArray[np.bool_]:
    """Returns whether each number can be a weight or a priority."""
    return np.abs(values) <= WEIGHT_MOST


def no_weight(what: str, value: float) -> str:
    return f"{what} is {value}: a number from -1e100 to 1e100 is needed"


def _resolve_weights(given: AttributeNumbers, schema: Schema) -> tuple[AttributeWeights, Rejects]:
    """Returns the weights by attribute, and rejects for wrong ones."""
    # Resolve the names
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
    # Collect the errors of each subscription
    wrong: dict[int, str] = {}
    for w in np.flatnonzero(at < 0).tolist():
        wrong.setdefault(int(sub[w]), wrong_names[int(given.name[w])])
    for w in np.flatnonzero(~fits(value)).tolist():
        what = f"the weight of {show_value(given.names[given.name[w]])}"
        wrong.setdefault(int(sub[w]), no_weight(what, value[w]))
    # Sort the weights by subscription and attribute, and find repeated ones
    good = np.flatnonzero(at >= 0)
    key = sub[good] * len(names) + at[good]
    order = np.argsort(key, kind="stable")
    key, good = key[order], good[order]
    for w in good[1:][key[1:] == key[:-1]].tolist():
        wrong.setdefault(int(sub[w]), f"weights: {show_value(given.names[given.name[w]])} is given more than once")
    rejects = {sub: Reject(message, -1) for sub, message in wrong.items()}
    return AttributeWeights(list(names), key, value[good]), rejects
