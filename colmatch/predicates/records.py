"""Records of sections of different types, laid out as in ``kernels/segments/records``."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import members, put_rows, ranges_of, sizes_of
from colmatch.kernels.layout import I64, U32
from colmatch.kernels.segments.records import HEAD, check_records, find_section, write_records

MOST_BYTES = 2**32 - 1  # bytes of a section
_HEAD = struct.Struct("<IQ")


Sections = dict[str, tuple[NDArray[Any], I64]]  # rows of N records, and their starts (N + 1)


class Section(NamedTuple):
    """The type of a section's rows.

    A record leaves out a section if all rows of it are ``fill``. So a record does not depend on the
    others that are written with it.
    """

    type: np.dtype[Any]
    columns: int = 1
    fill: int | None = None


class RecordLayout:
    """The sections that records may have, in their order."""

    def __init__(self, sections: Mapping[str, Section]) -> None:
        self.sections = sections
        self.places = {name: place for place, name in enumerate(sections)}

    def pack(self, sections: Mapping[str, NDArray[Any]]) -> bytes:
        """Returns one record.

        Raises OverflowError: a section has more bytes than the record's head can hold.
        """
        there = sorted([
            (self.places[name], rows.astype(self.sections[name].type, copy=False).tobytes())
            for name, rows in sections.items() if len(rows) and not self._is_filled(name, rows)
        ])  # fmt: skip
        sizes = [len(data) for _, data in there]
        if sizes and max(sizes) > MOST_BYTES:
            raise OverflowError
        length = HEAD + len(sizes) + sum([(size + 3) // 4 for size in sizes])
        head = [_HEAD.pack(length, sum([1 << place for place, _ in there])), struct.pack(f"<{len(sizes)}I", *sizes)]
        return b"".join(head + [data + bytes(-len(data) % 4) for _, data in there])

    def _is_filled(self, name: str, rows: NDArray[Any]) -> bool:
        fill = self.sections[name].fill
        return fill is not None and not (rows != fill).any()

    def _drop_fill(self, name: str, rows: NDArray[Any], first: I64) -> tuple[NDArray[Any], I64]:
        """Returns the rows of a section without the records that have only ``fill``."""
        fill, sizes = self.sections[name].fill, sizes_of(first)
        if fill is None:
            return rows, first
        other = ranges_of((rows != fill).reshape(len(rows), -1).any(axis=1))
        has = other[first[1:]] > other[first[:-1]]
        return rows[np.repeat(has, sizes)], ranges_of(sizes * has)

    def names(self, record: bytes) -> set[str]:
        """Returns the names of the sections in a record.

        Raises struct.error: the record is too short for its head.
        """
        bits = _HEAD.unpack_from(record)[1]
        return {name for name, place in self.places.items() if bits >> place & 1}

    def pack_all(self, sections: Sections, count: int) -> tuple[U32, I64]:
        """Returns the words of ``count`` records, and the start of each (N + 1).

        Raises OverflowError: a section has more bytes than the record's head can hold.
        """
        if count == 1:
            words = np.frombuffer(self.pack({name: rows for name, (rows, _) in sections.items()}), np.uint32)
            return words, np.array([0, len(words)])
        # Leave out the records with ``fill`` alone, and empty sections
        there = {name: self._drop_fill(name, *section) for name, section in sections.items() if len(section[0])}
        names = sorted([name for name, (rows, _) in there.items() if len(rows)], key=self.places.__getitem__)
        # Compute the size in bytes of each section in each record
        sizes, data = np.zeros((len(names), count), np.int64), []
        for i, name in enumerate(names):
            rows, first = there[name]
            data.append(np.ascontiguousarray(rows, self.sections[name].type).reshape(-1).view(np.uint8))
            np.multiply(first[1:] - first[:-1], len(data[-1]) // len(rows), out=sizes[i])
        if sizes.max(initial=0) > MOST_BYTES:
            raise OverflowError
        # Lay out the records and write them
        first = contiguous(ranges_of(HEAD + (((sizes + 3) >> 2) + (sizes > 0)).sum(axis=0)))
        words = np.zeros(first[-1], np.uint32)
        places = contiguous(np.array([self.places[name] for name in names], np.int64))
        begin = ranges_of(sizes.sum(axis=1))[:-1].copy()
        whole = contiguous(np.concatenate([*data, np.empty(0, np.uint8)]))
        write_records(whole, begin, places, contiguous(sizes), first, words, words.view(np.uint8))
        return words, first


class RecordReader:
    """A reader of several records: the rows of a section are one array, record after record.

    Raises ValueError: a record is not as long as its parts are.
    """

    def __init__(self, form: RecordLayout, words: U32, first: I64) -> None:
        self._form, self._words, self._first = form, contiguous(words), contiguous(first)
        self.count = len(first) - 1
        self._bits = int(check_records(self._words, self._first, len(form.places)))
        check(self._bits >= 0)
        self._known: dict[str, tuple[NDArray[Any], I64, I64]] = {}  # rows; start and size in each record, in bytes

    def __contains__(self, name: str) -> bool:
        return bool(self._bits >> self._form.places[name] & 1)

    def _section(self, name: str) -> tuple[NDArray[Any], I64, I64]:
        if name not in self._known:
            start, size = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
            type, columns, _ = self._form.sections[name]
            rows = np.empty((0, columns), type)
            if name in self:
                find_section(self._words, self._first, self._form.places[name], start, size)
                check(not (size % (columns * type.itemsize)).any())
                first = ranges_of(size)
                data = np.empty(int(first[-1]), np.uint8)
                put_rows(self._words.view(np.uint8), start, size, first[:-1], data)
                rows = data.view(type).reshape(-1, columns)
            self._known[name] = (rows if columns > 1 else rows.ravel()), start, size
        return self._known[name]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._section(name)[0]

    def counts(self, name: str) -> I64:
        """Returns the number of rows in each record."""
        type, columns, _ = self._form.sections[name]
        return self._section(name)[2] // (type.itemsize * columns)

    def fill_rows(self, name: str, counts: I64) -> NDArray[Any]:
        """Returns ``counts`` rows of each record, all ``fill`` if the record lacks the section."""
        rows, own = self[name], self.counts(name)
        check(((own == counts) | (own == 0)).all())
        if len(rows) == counts.sum():
            return rows
        fill = self._form.sections[name].fill or 0
        whole = np.full((int(counts.sum()), *rows.shape[1:]), fill, rows.dtype)
        whole[members(ranges_of(counts)[:-1], ranges_of(own))] = rows
        return whole

    def texts(self, name: str) -> list[bytes]:
        """Returns the bytes of a section in each record that has it."""
        _, start, size = self._section(name)
        data = self._words.view(np.uint8)
        return [data[at : at + many].tobytes() for at, many in zip(start.tolist(), size.tolist(), strict=True) if many]


def check(is_right: bool | np.bool_) -> None:
    """Raises ValueError unless a condition on the records holds."""
    if not is_right:
        raise ValueError("a record is not as long as its parts are")


def sums(values: NDArray[Any], counts: I64) -> I64:
    """Returns sums of neighbouring values; ``counts`` says how many make each sum."""
    first = ranges_of(values)[ranges_of(counts)]
    return first[1:] - first[:-1]
