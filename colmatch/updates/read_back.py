"""Subscriptions of a version as they were given: texts, weights, priorities, tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import OptionError, SubscriptionError, show_value
from colmatch.subscriptions.change import Change, Deletion
from colmatch.subscriptions.given import GivenSubscriptions
from colmatch.subscriptions.ids import Ids, check_known, check_type, convert_ids
from colmatch.subscriptions.tags import NO_TAGS, tags_of
from colmatch.subscriptions.texts_kept import TYPE, Kept, texts_of
from colmatch.updates.versions import Version

WEIGHTS = pa.map_(pa.string(), pa.float64())
CONSTANTS = pa.map_(pa.string(), pa.int64())


class Subscription(NamedTuple):
    """A subscription, as ``Matcher`` returns it by its id.

    Attributes
    ----------
    id : its id
    expression : its text as it was given; of the builder, the text that means the same
    tags : its tags, in the order of their first use in the matcher
    weights : weights of attributes by name, as they were given
    priority : as it was given, or 0
    constants : of an expression in the language of be-tree
    """

    id: int | str
    expression: str
    tags: list[str]
    weights: dict[str, float]
    priority: float
    constants: dict[str, int]


class Changes(NamedTuple):
    """The changes of a ``Matcher.sync``: arrays of ids, int64 or string.

    Attributes
    ----------
    added : ids that were new, in the order of the table
    changed : ids with another expression, weights, priority or tags, in the order of the table; and
        ids whose expressions name a definition that has changed
    removed : ids that the table does not have, in the order of ``Matcher.ids``
    """

    added: pa.Array
    changed: pa.Array
    removed: pa.Array


def read_subscription(version: Version, id: int | str) -> Subscription:
    """Returns the subscription of an id.

    Raises SubscriptionError: there is none, or its text was not kept.
    """
    number = version.find(id)
    if number is None:
        raise SubscriptionError(f"there is no subscription {show_value(id)}")
    text = version.texts.take(np.array([number]))[0].as_py()
    if text is None:
        raise _no_text(version.ids[number])
    kept = Kept.of(text)
    tags = version.tags.lists_of(np.array([number]))[0].as_py()
    return Subscription(version.ids[number], kept.expression, tags, kept.weights, kept.priority, kept.constants)


def read_table(version: Version) -> pa.Table:
    """Returns the table of ``Matcher.to_table``.

    Raises SubscriptionError: the text of a subscription was not kept.
    """
    table = table_of_numbers(version, np.flatnonzero(version.live()))
    definitions = version.definitions
    if not definitions:
        return table
    texts = pa.array(list(definitions.values()), TYPE)
    defined = {"define": pa.array(list(definitions), pa.string()), "expression": texts}
    defined |= {field.name: pa.nulls(len(texts), field.type) for field in table.schema if field.name not in defined} | (
        {"priority": pa.repeat(0.0, len(texts))} if "priority" in table.column_names else {}
    )
    table = table.append_column("define", pa.nulls(table.num_rows, pa.string()))
    return pa.concat_tables([pa.table(defined).select(table.column_names), table])


def table_of_numbers(version: Version, numbers: NDArray[np.int64]) -> pa.Table:
    """Returns the table of ``read_table`` for some numbers, which ascend."""
    left = np.zeros(len(version.ids), bool)
    left[numbers] = True
    texts = version.texts.take(numbers)
    if texts.null_count:
        raise _no_text(version.ids[int(numbers[int(pc.index(texts.is_null(), True).as_py())])])
    columns = {"id": version.ids.array.filter(pa.array(left)), "expression": texts}
    marked = np.flatnonzero(pc.match_substring(texts, "\0").to_numpy(zero_copy_only=False))
    if len(marked):
        columns |= _columns_of_marked(texts, marked)
    if len(version.tags):
        columns["tags"] = version.tags.lists(left)
    return pa.table(columns)


def _columns_of_marked(texts: pa.LargeStringArray, marked: NDArray[np.int64]) -> dict[str, pa.Array]:
    """Returns the columns of subscriptions, some of which have weights, a priority or constants."""
    kept = [Kept.of(text) for text in texts.take(pa.array(marked)).to_pylist()]
    place = np.full(len(texts), len(kept))
    place[marked] = np.arange(len(kept))

    def spread(values: list[object], type: pa.DataType) -> pa.Array:
        return pa.array([*values, None], type).take(pa.array(place))

    columns = {"expression": pc.coalesce(spread([one.expression for one in kept], TYPE), texts)}
    if any(one.weights for one in kept):
        columns["weights"] = spread([list(one.weights.items()) for one in kept], WEIGHTS)
    if any(one.priority for one in kept):
        columns["priority"] = pc.fill_null(spread([one.priority for one in kept], pa.float64()), 0.0)
    if any(one.constants for one in kept):
        columns["constants"] = spread([list(one.constants.items()) or None for one in kept], CONSTANTS)
    return columns


def find_targets(version: Version, deletion: Deletion) -> tuple[Ids, NDArray[np.int64]]:
    """Returns the ids of subscriptions to delete, and their numbers, which ascend.

    Raises SubscriptionError: a listed id has no subscription.
    """
    ids = deletion.ids
    if deletion.listed is not None:
        ids = convert_ids(deletion.listed, version.ids.type)
        numbers, there = version.numbers_of(ids)
        if there < len(numbers):
            check_known(ids, numbers)
        if not deletion.tags:
            return ids, numbers if len(numbers) == 1 else np.unique(numbers)
    numbers = version.numbers_with(ids, deletion.tags)
    return Ids(version.ids.take(numbers)), numbers


def _no_text(id: int | str) -> SubscriptionError:
    return SubscriptionError(
        f"subscription {show_value(id)} has no text: it came in a PredicateTable, or the matcher was built with "
        "Options(keep_texts=False)"
    )


def without(changes: Changes, rejected: set[int | str]) -> Changes:
    """Returns the changes without the subscriptions that were left out."""
    out = pa.array(list(rejected), changes.added.type)
    added, changed = (ids.filter(pc.invert(pc.is_in(ids, out))) for ids in changes[:2])
    return Changes(added, changed, changes.removed)


class Sync:
    """An update that makes the subscriptions those of a table, as ``Matcher.sync`` does.

    Parameters
    ----------
    given : the subscriptions of the table. Of a change feed, those that are new or changed; its
        ``deleted`` ids go, and all others stay

    Attributes
    ----------
    given : the same
    changes : what is changed, once the update has its turn
    """

    def __init__(self, given: GivenSubscriptions) -> None:
        self._deleted = given.deleted
        self.given = given = given.in_order()._replace(deleted=None)
        self.changes = Changes(*[given.ids.array.slice(0, 0)] * 3)

    def redefine(self, changes: Mapping[str, str | None], before: Mapping[str, str]) -> Mapping[str, str | None]:
        """Returns all changes of definitions, for those of a version.

        A table has all definitions. A change feed may delete one that is gone already.
        """
        if self._deleted is None:
            return {**dict.fromkeys(before), **changes}
        return {name: text for name, text in changes.items() if text is not None or name in before}

    def add_changed(self, ids: Ids) -> None:
        """Notes further subscriptions that are changed."""
        self.changes = self.changes._replace(changed=pa.concat_arrays([self.changes.changed, ids.array]))

    def on(self, version: Version) -> Change:
        """Returns the update for a version.

        Raises OptionError: the version has a subscription without a text.
        """
        given, live = self.given, np.flatnonzero(version.live())
        if not len(live):
            self.changes = self.changes._replace(added=given.ids.array)
            return Change(None, given)
        texts = version.texts.take(live)
        if texts.null_count:
            raise OptionError(
                "sync() compares texts, and some subscriptions have none (PredicateTable, keep_texts=False)"
            )
        ids = given.ids.array if len(given.ids) else version.ids.array.slice(0, 0)  # an empty table has no type
        check_type(version.id_type, ids.type)
        # Compare the subscriptions that are in both
        numbers, _ = version.numbers_of(given.ids)
        is_new = numbers < 0
        differs, places = is_new.copy(), np.flatnonzero(~is_new)
        old, new = texts.take(pa.array(np.searchsorted(live, numbers[places]))), texts_of(given, ~is_new)
        tags = NO_TAGS if given.tags is None else tags_of(given.tags, given.ids)
        other_tags = _differ(version.tags.lists_of(numbers[places]), tags.lists_of(places))
        other_texts = pc.fill_null(pc.not_equal(old, new), True)  # NULL is no expression, and the reader says so
        differs[places] = other_tags | other_texts.to_numpy(zero_copy_only=False)
        # Delete the subscriptions that the table lacks, or that a change feed has deleted
        if self._deleted is None:
            lost = np.setdiff1d(live, numbers[places], assume_unique=True)
        else:
            check_type(version.id_type, self._deleted.type if len(self._deleted) else version.id_type)
            lost = version.numbers_of(self._deleted)[0] if len(self._deleted) else live[:0]
            lost = lost[lost >= 0]
        gone = version.ids.take(lost)
        self.changes = Changes(ids.filter(pa.array(is_new)), ids.filter(pa.array(differs & ~is_new)), gone)
        deletion = Deletion(ids=Ids(gone)) if len(gone) else None
        return Change(deletion, given.filter(differs) if differs.any() else None)


def _differ(some: pa.ListArray, others: pa.ListArray) -> NDArray[np.bool_]:
    """Returns whether the lists of strings in each row differ, whatever their order."""
    names = pa.concat_arrays([some.flatten(), others.flatten()]).dictionary_encode()
    row = np.concatenate([lists.value_parent_indices().to_numpy() for lists in (some, others)])
    pairs, count = row * max(len(names.dictionary), 1) + names.indices.to_numpy(), len(some.flatten())
    out = np.zeros(len(some), bool)
    out[np.setxor1d(np.unique(pairs[:count]), np.unique(pairs[count:])) // max(len(names.dictionary), 1)] = True
    return out
