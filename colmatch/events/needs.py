"""What a matcher needs of every batch, whatever its schema is.

These are the attributes by how they are read, and literals and map keys in the form that kernels
search.

All that does not depend on the schema of a batch; ``colmatch/events/binding.py`` does the rest when
one arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, frozen
from colmatch.arrays.ranges import ranges_of
from colmatch.events.vocabulary import NONE, Vocabulary
from colmatch.given.schema import Attribute, Family, Role, Type
from colmatch.kernels.arrow.maps import BLOCK, Keys, fill_tables
from colmatch.kernels.arrow.words import Words
from colmatch.kernels.layout import Literals

HINTED = 8  # sets of fewer strings are searched faster than a hint is checked
HINTS_MOST = 1 << 22  # hints of one Reader (4 bytes each)

Path = tuple[str, ...]


def words(vocabulary: Vocabulary) -> tuple[Words, list[NDArray[Any]]]:
    """``Words`` over a vocabulary, and the arrays whose addresses it has: keep them alive.

    Another thread may make a prefix at the same time, and the vocabulary then keeps only one.
    """
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
    counts = np.diff(first)
    sizes = np.zeros(len(counts), np.int64)
    large = counts >= HINTED
    sizes[large] = np.clip(2 ** np.ceil(np.log2(8.0 * counts[large])).astype(np.int64), 1024, 1 << 17)
    if sizes.sum() > HINTS_MOST:
        sizes[large] = 2 ** int(np.log2(max(HINTS_MOST / large.sum(), 1)))
    found = Words(contiguous(first), contiguous(recent), frozen(np.array(place, np.int64)), frozen(ranges_of(sizes)))
    return found, held


def _runs(ids: Sequence[int], first: int) -> Iterator[tuple[int, int, int]]:
    """Yields attribute, end, first entry: of each run of consecutive ids."""
    breaks = (np.flatnonzero(np.diff(np.array(ids, np.int64)) != 1) + 1).tolist()
    for start, stop in zip([0, *breaks], [*breaks, len(ids)]) if ids else ():
        yield ids[start], ids[stop - 1] + 1, first + start


@dataclass(slots=True)
class MapKeys:
    """The attributes of one map column: numbers of its entries ascend with the attribute's id."""

    type: Type
    key: Type
    first: int = 0
    ids: list[int] = field(default_factory=list)
    keys: list[str | int] = field(default_factory=list)

    def runs(self) -> Iterator[tuple[int, int, int]]:
        return _runs(self.ids, self.first)


class Needs:
    """Attributes by id, as far as they can be prepared before a batch is seen.

    Parameters
    ----------
    members : attribute of each id; those with a pattern are read from ``Work.pattern_first``, in
        the order of their ids
    literals : for the labels of strings; or None to number distinct strings instead, group g for
        attribute g
    """

    def __init__(self, members: Sequence[Attribute], literals: Vocabulary | Literals | None) -> None:
        self.total = len(members)
        self.distinct = literals is None
        self.plain: list[tuple[int, Attribute]] = []
        self.maps: dict[Path, MapKeys] = {}
        patterns: list[int] = []
        for id, attribute in enumerate(members):
            if attribute.pattern is not None:
                patterns.append(id)
            elif attribute.is_free:
                continue
            elif attribute.role is not Role.ENTRY:
                self.plain.append((id, attribute))
            else:
                assert attribute.key is not None
                known = self.maps.get(attribute.path)
                if known is None:
                    family, name = (
                        (Family.STRING, "string") if isinstance(attribute.key, str) else (Family.INT, "int64")
                    )
                    known = self.maps[attribute.path] = MapKeys(attribute.type, Type(family, name=name))
                known.ids.append(id)
                known.keys.append(attribute.key)
        self.pattern_runs = list(_runs(patterns, 0))
        if not isinstance(literals, Vocabulary):
            literals = Vocabulary.among(NONE if literals is None else literals)
        self.literals, self._held = words(literals.of(self.total))
        self._bind_keys()

    def literal_set(self, id: int) -> int:
        """Returns the set of literals that strings of an attribute are looked up in; -1 - id:
        numbered.
        """
        return -1 - id if self.distinct else id

    def _bind_keys(self) -> None:
        """Numbers the entries of all maps, and fills the hash tables of their keys.

        The kernel reads these by address.
        """
        first: list[int] = []
        last: list[int] = []
        sets: list[int] = []
        sizes = [0]
        pieces: list[bytes] = []
        numbers: list[int] = []
        for known in self.maps.values():
            known.first = len(sets)
            spare = -len(known.ids) % BLOCK  # entries that are nobody's
            textual = known.key.textual
            pieces += [str(key).encode() if textual else b"" for key in known.keys] + [b""] * spare
            numbers += [0 if textual else int(key) for key in known.keys] + [0] * spare
            sets += [self.literal_set(id) for id in known.ids] + [0] * spare
            first.append(known.first)
            last.append(known.first + len(known.ids))
            sizes.append(2 ** (2 * len(known.ids) - 1).bit_length())  # at most half full
        offset = ranges_of(list(map(len, pieces)))
        data = np.frombuffer(b"".join(pieces), np.uint8)
        table = np.full(2 * sum(sizes), -1, np.int64)
        self._keys = (table, offset, data)
        place = frozen(np.array([array.ctypes.data for array in self._keys], np.int64))
        self.keys = Keys(frozen(np.cumsum(sizes, dtype=np.int64)), place)
        self.entry_set = frozen(np.array(sets, np.int64))
        if first:
            texts = [int(known.key.textual) for known in self.maps.values()]
            columns = [frozen(np.array(column, np.int64)) for column in (texts, first, last, numbers)]
            fill_tables(columns[0], columns[1], columns[2], columns[3], self.keys, table)
