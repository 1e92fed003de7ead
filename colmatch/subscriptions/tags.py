"""Tags of subscriptions: names such as that of a tenant, to which a match can be restricted.

A subscription has any number of tags. They do not change its meaning.

Pairs of a number and a tag are kept in the order of arrival. A copy that is sorted by tag finds the
numbers of a tag. The copy is made again when more than a fifth of all pairs is missing there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import NO_I32, NO_I64, contiguous, seal
from colmatch.arrays.growing import Growing
from colmatch.arrays.ranges import distinct, ranges_of
from colmatch.arrays.ranges import members as members_of
from colmatch.errors import OptionError, SubscriptionError, show_value
from colmatch.events.reader import texts_of
from colmatch.given.arguments import members, text
from colmatch.given.incoming import columns_of, is_arrow, is_table, is_text, refusing, table_of, values_of
from colmatch.kernels.layout import I32, I64, U8
from colmatch.subscriptions.ids import Ids, ids_of_values, unique_ids

RECENT_LEAST = 4096  # pairs that are scanned, not sorted


class GivenTags(NamedTuple):
    """Tags of a caller: a list of strings for each id.

    ``ids`` is None where the lists are for all subscriptions, in their order.
    """

    ids: Ids | None
    lists: pa.LargeListArray


class _SortedPairs(NamedTuple):
    """The first pairs of some tags, ordered by tag."""

    pairs: int  # number of pairs
    first: I64  # (tags + 1)
    number: I64  # ascends within each tag


class Tags:
    """The tags of numbers: T pairs of a number and a tag, each once. It does not change.

    Parameters
    ----------
    number (T) : ascending
    tag (T) : place among ``names``
    names : place of each tag; others may be added behind them

    Attributes
    ----------
    number, tag, names : the same
    """

    __slots__ = ("_sorted", "_store", "names", "number", "tag")

    def __init__(
        self,
        number: I64 = NO_I64,
        tag: I32 = NO_I32,
        names: dict[str, int] | None = None,
        store: tuple[Growing, Growing] | None = None,
        ordered: _SortedPairs | None = None,
    ) -> None:
        self.number = number
        self.tag = tag
        self.names = {} if names is None else names
        self._store = store
        self._sorted = ordered

    @staticmethod
    def of_lists(lists: pa.LargeListArray, number: NDArray[np.int64] | None = None) -> Tags:
        """Returns the tags of ascending numbers, or of all from 0 on: a list for each number."""
        count = lists.value_lengths().fill_null(0).to_numpy()
        each = lists.flatten().dictionary_encode()
        number = np.arange(len(lists)) if number is None else number
        pairs = np.stack([np.repeat(number, count), each.indices.to_numpy().astype(np.int64)])
        pairs = np.unique(pairs, axis=1)
        names = {name: i for i, name in enumerate(each.dictionary.to_pylist())}
        return Tags(seal(pairs[0].copy()), seal(pairs[1].astype(np.int32)), names)

    @staticmethod
    def of_sections(count: NDArray[Any], size: NDArray[Any], data: NDArray[Any]) -> Tags:
        """Returns the tags that ``sections`` has split; ``NO_TAGS`` if there are none."""
        offset = ranges_of(size)
        buffers = [None, pa.py_buffer(offset), pa.py_buffer(data)]
        texts = pa.Array.from_buffers(pa.large_string(), len(size), buffers).cast(pa.string())
        return Tags.of_lists(pa.LargeListArray.from_arrays(pa.array(ranges_of(count)), texts)) if len(size) else NO_TAGS

    def sections(self, numbers: int) -> dict[str, NDArray[Any]]:
        """Returns the number of tags of each number, the size of each tag, and the bytes of all."""
        offset, data = texts_of(self.texts())
        return {"tags": np.bincount(self.number, minlength=numbers), "tag_size": np.diff(offset), "tag_data": data}

    def __len__(self) -> int:
        return len(self.number)

    def numbers(self, wanted: Iterable[str]) -> I64:
        """Returns the numbers that have any of the wanted tags, ascending."""
        places = [place for place in map(self.names.get, set(wanted)) if place is not None]
        if not places or not len(self):
            return NO_I64
        pairs, first, number = self._sort()
        parts = [number[first[place] : first[place + 1]] for place in places if place + 1 < len(first)]
        matches = np.concatenate([*parts, self.number[pairs:][np.isin(self.tag[pairs:], places)]])
        return matches if len(places) == 1 else distinct(matches)

    def _sort(self) -> _SortedPairs:
        ordered = self._sorted
        if ordered is None or len(self) - ordered.pairs > max(RECENT_LEAST, ordered.pairs // 4):
            first = ranges_of(np.bincount(self.tag, minlength=len(self.names)))
            ordered = _SortedPairs(len(self), first, self.number[np.argsort(self.tag, kind="stable")])
            self._sorted = ordered
        return ordered

    def lists(self, left: NDArray[np.bool_]) -> pa.ListArray:
        """Returns the tags of each number that is left, as lists of strings.

        left : whether each number is left
        """
        of = self.filter(left)
        count = np.bincount(of.number, minlength=int(np.count_nonzero(left)))
        return pa.ListArray.from_arrays(pa.array(ranges_of(count), pa.int32()), of.texts())

    def lists_of(self, numbers: NDArray[np.int64]) -> pa.ListArray:
        """Returns the tags of some numbers, as lists of strings."""
        first, end = np.searchsorted(self.number, numbers), np.searchsorted(self.number, numbers, "right")
        pairs = members_of(first, ranges_of(end - first))
        names = pa.array(list(self.names), pa.string()).take(pa.array(self.tag[pairs]))
        return pa.ListArray.from_arrays(pa.array(ranges_of(end - first), pa.int32()), names)

    def texts(self) -> pa.StringArray:
        """Returns the tag of each pair."""
        return pa.array(list(self.names), pa.string()).take(pa.array(self.tag))

    def filter(self, left: NDArray[np.bool_]) -> Tags:
        """Returns the tags of the numbers that are left, renumbered without gaps.

        left : whether each of the first numbers is left; all others are not
        """
        stop = int(np.searchsorted(self.number, len(left)))
        kept = left[self.number[:stop]]
        number, tag = self.number[:stop][kept], self.tag[:stop][kept]
        return self._drop_names((np.cumsum(left) - 1)[number], tag)

    def extended(self, more: Tags, base: int) -> Tags:
        """Returns these tags and others. The numbers of the others count from ``base`` on.

        The result is in the same memory if there is room.
        """
        if not len(more):
            return self
        if not len(self):
            return Tags(seal(more.number + base), more.tag, dict(more.names))
        names = self.names
        place = np.array([names.setdefault(name, len(names)) for name in more.names], np.int32)
        store = self._store or (Growing(self.number), Growing(self.tag))
        for column in store:
            column.size = len(self)  # forgets the pairs of an update that failed
        store[0].append(more.number + base)
        store[1].append(place[more.tag])
        return Tags(store[0].view(), store[1].view(), names, store, self._sorted)

    def apart(self) -> Tags:
        """Returns these tags, with which additions to the others share no memory."""
        return Tags(self.number, self.tag, dict(self.names), None, self._sorted)

    def from_number(self, begin: int) -> Tags:
        """Returns the tags of all numbers from ``begin`` on, which then count from 0."""
        start = int(np.searchsorted(self.number, begin))
        return self._drop_names(self.number[start:] - begin, self.tag[start:])

    def _drop_names(self, number: NDArray[np.int64], tag: NDArray[np.int32]) -> Tags:
        """Returns the tags of some pairs, without unused names."""
        used, place = np.unique(tag, return_inverse=True)
        names = list(self.names)
        return Tags(seal(number), seal(place.astype(np.int32)), {names[i]: n for n, i in enumerate(used.tolist())})


NO_TAGS = Tags()


def tags_to_arrays(tags: Tags) -> dict[str, NDArray[Any]]:
    """Returns the arrays of tags in a saved matcher, by name."""
    offset, data = texts_of(pa.array(list(tags.names), pa.string()))
    return {"tags.number": tags.number, "tags.tag": tags.tag, "tags.offset": offset, "tags.names": data}


def tags_of_arrays(number: I64, tag: I32, offset: I32, data: U8) -> Tags:
    """Makes tags of the arrays of ``tags_to_arrays``."""
    names = pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), pa.py_buffer(data))
    return Tags(number, tag, {name: i for i, name in enumerate(names.to_pylist())})


def tags_of_column(column: pa.Array | None, where: str, name: str) -> GivenTags | None:
    """Reads the column of tags in a table of expressions. Returns None if it has no values.

    name : of the column, for errors

    Raises SubscriptionError: the column has neither lists of strings nor strings.
    """
    return None if column is None or column.null_count == len(column) else GivenTags(None, _lists(column, where, name))


def read_tags(given: object) -> GivenTags:
    """Reads tags apart from subscriptions: ``{id: ["tag"]}``, or a table (id, tags).

    Raises SubscriptionError: the tags have another form, or an id is repeated.
    """
    where = "tags="
    if isinstance(given, Mapping):
        return GivenTags(ids_of_values(list(given)), _of_mapping(given))
    if not is_table(given):
        raise SubscriptionError(
            f"{where}{show_value(given)}: a mapping {{id: ['tag']}} or a table (id, tags) is needed"
        )
    columns = columns_of(table_of(given, SubscriptionError, where), ("id", "tags"), (), SubscriptionError, where)
    return GivenTags(unique_ids(columns["id"], where), _lists(columns["tags"], where))


def _of_mapping(given: Mapping[Any, Any]) -> pa.LargeListArray:
    lists: list[list[Any]] = []
    for id, tags in given.items():
        values = [] if tags is None else [tags] if isinstance(tags, str) else members(tags)
        names = None if values is None or isinstance(tags, Mapping) else list(map(text, values))
        if names is None or not all(name is not None and is_text(name) for name in names):
            raise SubscriptionError(
                f"tags=: those of {show_value(id)} are {show_value(tags)}: a list of strings is needed"
            )
        lists.append(names)
    return pa.array(lists, pa.large_list(pa.string()))


def _lists(column: pa.Array, where: str, name: str = "tags") -> pa.LargeListArray:
    """Returns a column of tags as lists. NULL stays NULL, or becomes an empty list."""
    types, what = pa.types, f"{where}: column {name!r}"
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_null(column.type):
        return pa.nulls(len(column), pa.large_list(pa.string()))
    if types.is_string(column.type) or types.is_large_string(column.type):
        with refusing(SubscriptionError, f"{what} cannot be read"):
            there = column.is_valid().to_numpy(zero_copy_only=False)
            offset = pa.array(ranges_of(there.astype(np.int64)))
            return pa.LargeListArray.from_arrays(offset, column.drop_null().cast(pa.string()))
    if not types.is_large_list(column.type):
        raise SubscriptionError(f"{what} is {column.type}: lists of strings are needed, or a string for a single one")
    of = column.type.value_type
    if not (types.is_string(of) or types.is_large_string(of) or types.is_null(of)):
        raise SubscriptionError(f"{what} is {column.type}: lists of strings are needed, or a string for a single one")
    with refusing(SubscriptionError, f"{what} cannot be read"):
        lists = column.cast(pa.large_list(pa.string()))
    within = lists.flatten()
    if within.null_count:
        row = int(lists.value_parent_indices()[int(np.argmax(np.asarray(within.is_null())))].as_py())
        raise SubscriptionError(f"{what} has NULL within the list of row {row}")
    return lists


def join_lists(parts: list[pa.LargeListArray | None], sizes: list[int]) -> pa.LargeListArray:
    """Returns the lists of several groups of subscriptions; None for a group without tags."""
    type = pa.large_list(pa.string())
    return pa.concat_arrays(
        [pa.nulls(size, type) if part is None else part.cast(type) for part, size in zip(parts, sizes, strict=True)]
    )


def tags_of(given: GivenTags | None, ids: Ids) -> Tags:
    """Returns the tags of subscriptions. The number of a subscription is the place of its id.

    Raises SubscriptionError: there are tags for an id that has no subscription.
    """
    if given is None:
        return NO_TAGS
    if given.ids is None:
        return Tags.of_lists(given.lists)
    if not len(given.ids):
        return NO_TAGS
    numbers = ids.find(given.ids) if given.ids.type == ids.type else np.full(len(given.ids), -1)
    if numbers.min() < 0:
        raise SubscriptionError(
            f"tags are given for {show_value(given.ids[int(numbers.argmin())])}, which is none of the subscriptions"
        )
    order = np.argsort(numbers)
    return Tags.of_lists(given.lists.take(pa.array(order)), contiguous(numbers[order]))


def tags_asked(given: Any) -> frozenset[str]:
    """Returns the tags that a caller restricts a match to.

    Raises OptionError: they are no list of strings.
    """
    if is_arrow(given):
        given = values_of(given, OptionError, "tags=")
    listed = None if isinstance(given, Mapping) else members(given)
    if listed is None:
        raise OptionError(f"tags={show_value(given)}: a list of strings is needed, put a single one into a list")
    tags = list(map(text, listed))
    for value, tag in zip(listed, tags, strict=True):
        if tag is None or not is_text(tag):
            raise OptionError(f"tags= has {show_value(value)}, which is no tag: strings are needed")
    return frozenset(tag for tag in tags if tag is not None)
