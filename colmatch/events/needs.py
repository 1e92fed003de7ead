"""The values that a matcher reads from batches of any schema.

They are the attributes by the way they are read, and literals and map keys in the form that kernels
search. ``colmatch/events/binding.py`` does all that depends on the schema of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze_view
from colmatch.arrays.ranges import ranges_of
from colmatch.events.vocabulary import NONE, Vocabulary
from colmatch.given.schema import Attribute, Family, Role, Type
from colmatch.kernels.arrow.maps import BLOCK, MapKeyTable, fill_tables
from colmatch.kernels.arrow.words import Words
from colmatch.kernels.layout import Literals

HINTED = 8  # sets of fewer strings are searched faster than a hint is checked
HINTS_MOST = 1 << 22  # hints of one Reader (4 bytes each)

Path = tuple[str, ...]


def words(vocabulary: Vocabulary) -> tuple[Words, list[NDArray[Any]]]:
    """Returns ``Words`` over a vocabulary, and the arrays at its addresses: keep them alive.

    Another thread may make a prefix at the same time, and the vocabulary then keeps only one.
    """
    # Collect the addresses of both parts
    held: list[NDArray[Any]] = []
    place: list[int] = []
    for part in (vocabulary.old, vocabulary.recent):
        _, offset, data, label = part.literals
        arrays = (part.prefix, offset, data, label)
        assert arrays[0].dtype == offset.dtype == np.int64
        assert all(array.flags.c_contiguous for array in arrays)
        place += (array.ctypes.data for array in arrays[:3])
        place.append(label.ctypes.data if len(label) else 0)
        held += arrays
    first, recent = vocabulary.old.literals.first, vocabulary.recent.literals.first
    # Size the hints of large sets
    counts = np.diff(first)
    sizes = np.zeros(len(counts), np.int64)
    large = counts >= HINTED
    sizes[large] = np.clip(2 ** np.ceil(np.log2(8.0 * counts[large])).astype(np.int64), 1024, 1 << 17)
    if sizes.sum() > HINTS_MOST:
        sizes[large] = 2 ** int(np.log2(max(HINTS_MOST / large.sum(), 1)))
    pointers = Words(
        contiguous(first), contiguous(recent), freeze_view(np.array(place, np.int64)), freeze_view(ranges_of(sizes))
    )
    return pointers, held


def _runs(ids: Sequence[int], first: int) -> Iterator[tuple[int, int, int]]:
    """Yields first id, end and first entry of each run of consecutive ids."""
    breaks = (np.flatnonzero(np.diff(np.array(ids, np.int64)) != 1) + 1).tolist()
    for start, stop in zip([0, *breaks], [*breaks, len(ids)]) if ids else ():
        yield ids[start], ids[stop - 1] + 1, first + start


@dataclass(slots=True)
class MapKeys:
    """The attributes of one map column. Numbers of its entries ascend with the attribute's id."""

    type: Type
    key: Type
    first: int = 0
    ids: list[int] = field(default_factory=list)
    keys: list[str | int] = field(default_factory=list)

    def runs(self) -> Iterator[tuple[int, int, int]]:
        return _runs(self.ids, self.first)


class Needs:
    """The attributes by id, prepared as far as possible before the first batch.

    Parameters
    ----------
    members : attributes with their ids, ascending. Attributes with a pattern are read from
        ``ReadBuffers.pattern_first``, in the order of their ids
    total : number of ids
    literals : have the labels of strings; None numbers distinct strings instead, group g for
        attribute g
    of_templates : ids of members of templates, ascending, which are read from
        ``ReadBuffers.member_first``
    """

    def __init__(
        self,
        members: Iterable[tuple[int, Attribute]],
        total: int,
        literals: Vocabulary | Literals | None,
        of_templates: Sequence[int] = (),
    ) -> None:
        self.total = total
        self.distinct = literals is None
        self.plain: list[tuple[int, Attribute]] = []
        self.maps: dict[Path, MapKeys] = {}
        patterns, apart = list[int](), set(of_templates)
        for id, attribute in members:
            if attribute.pattern is not None:
                patterns.append(id)
            elif attribute.is_free or id in apart:
                continue
            elif attribute.role is not Role.ENTRY:
                self.plain.append((id, attribute))
            else:
                assert attribute.key is not None
                map_keys = self.maps.get(attribute.path)
                if map_keys is None:
                    family, name = (
                        (Family.STRING, "string") if isinstance(attribute.key, str) else (Family.INT, "int64")
                    )
                    map_keys = self.maps[attribute.path] = MapKeys(attribute.type, Type(family, name=name))
                map_keys.ids.append(id)
                map_keys.keys.append(attribute.key)
        self.pattern_runs = list(_runs(patterns, 0))
        self.member_runs = list(_runs(of_templates, 0))
        if not isinstance(literals, Vocabulary):
            literals = Vocabulary.among(NONE if literals is None else literals)
        self.literals, self._held = words(literals.of(self.total))
        self._bind_keys()

    def literal_set(self, id: int) -> int:
        """Returns the set of literals for an attribute's strings; -1 - id if they are numbered."""
        return -1 - id if self.distinct else id

    def _bind_keys(self) -> None:
        """Numbers the entries of all maps, and fills the hash tables of their keys.

        The kernel reads the tables by address.
        """
        first: list[int] = []
        last: list[int] = []
        sets: list[int] = []
        sizes = [0]
        pieces: list[bytes] = []
        numbers: list[int] = []
        # Collect the entries of all maps, in whole blocks for each
        for map_keys in self.maps.values():
            map_keys.first = len(sets)
            spare = -len(map_keys.ids) % BLOCK  # entries without an attribute
            textual = map_keys.key.textual
            pieces += [str(key).encode() if textual else b"" for key in map_keys.keys] + [b""] * spare
            numbers += [0 if textual else int(key) for key in map_keys.keys] + [0] * spare
            sets += [self.literal_set(id) for id in map_keys.ids] + [0] * spare
            first.append(map_keys.first)
            last.append(map_keys.first + len(map_keys.ids))
            sizes.append(2 ** (2 * len(map_keys.ids) - 1).bit_length())  # at most half full
        # Join the keys, and fill the tables
        offset = ranges_of(list(map(len, pieces)))
        data = np.frombuffer(b"".join(pieces), np.uint8)
        table = np.full(2 * sum(sizes), -1, np.int64)
        self._keys = (table, offset, data)
        place = freeze_view(np.array([array.ctypes.data for array in self._keys], np.int64))
        self.keys = MapKeyTable(freeze_view(np.cumsum(sizes, dtype=np.int64)), place)
        self.entry_set = freeze_view(np.array(sets, np.int64))
        if first:
            texts = [int(map_keys.key.textual) for map_keys in self.maps.values()]
            columns = [freeze_view(np.array(column, np.int64)) for column in (texts, first, last, numbers)]
            fill_tables(columns[0], columns[1], columns[2], columns[3], self.keys, table)
