"""A naive reading of record batches, by ``to_pylist``, and arrays in every layout: what the
tests of reading share.
"""

from __future__ import annotations

import bisect
import datetime as dt
import itertools
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from sizes import share

from colmatch.events.reader import Reader
from colmatch.given.schema import INT, Attribute, Attributes, Family, Role, Type
from colmatch.kernels.layout import Batch, Literals

STRING = Type(Family.STRING, name="string")
BINARY = Type(Family.BINARY, name="binary")
FLOAT = Type(Family.FLOAT, name="double")

few = settings(max_examples=share(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


# ---- the naive reading


def literals(sets: Sequence[Sequence[bytes]]) -> Literals:
    flat = [word for words in sets for word in words]
    assert all(list(words) == sorted(set(words)) for words in sets)
    first = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    offset = np.cumsum([0, *map(len, flat)], dtype=np.int64)
    arrays = (first, offset, np.frombuffer(b"".join(flat), np.uint8))
    for array in arrays:
        array.setflags(write=False)
    return Literals(*arrays)


def float_key(value: float) -> int:
    if math.isnan(value):
        return 0x7FF8000000000000
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def label(value: bytes, words: Sequence[bytes]) -> int:
    r = bisect.bisect_left(words, value)
    return 2 * r + (r < len(words) and words[r] == value)


def key(value: Any, wanted: Type, words: Sequence[bytes]) -> int:
    """Key of one Python value; timestamps are integers of the wanted unit already."""
    match wanted.family:
        case Family.BOOL | Family.INT | Family.TIMESTAMP:
            return int(value)
        case Family.UINT64:
            return int(value) - 2**63
        case Family.FLOAT:
            return float_key(float(value))
        case Family.DECIMAL:
            return int(value.scaleb(wanted.scale))
        case Family.DATE:
            return (value - dt.date(1970, 1, 1)).days
        case _:
            return label(value.encode() if isinstance(value, str) else value, words)


def naive(
    batch: pa.RecordBatch, attributes: Sequence[Attribute], words: Sequence[Sequence[bytes]]
) -> list[list[tuple[int, int]]]:
    rows = batch.to_pylist()
    found = []
    for attribute, known in zip(attributes, words):
        entries: list[tuple[int, int]] = []
        for row, event in enumerate(rows):
            value: Any = event
            for part in attribute.path:
                value = None if value is None else value.get(part)
            if value is None:
                continue
            match attribute.role:
                case Role.VALUE:
                    entries.append((row, key(value, attribute.type, known)))
                case Role.ELEMENT:
                    entries += [(row, key(v, attribute.type, known)) for v in value if v is not None]
                case Role.SIZE:
                    entries.append((row, len(value)))
                case Role.HAS_NULL:
                    entries += [(row, 1)] if any(v is None for v in value) else []
                case Role.ENTRY:
                    first = next((v for k, v in value if k == attribute.key), None)
                    entries += [] if first is None else [(row, key(first, attribute.type, known))]
        found.append(entries)
    return found


def entries(batch: Batch) -> list[list[tuple[int, int]]]:
    col = batch.col.tolist()
    pairs = list(zip(batch.row.tolist(), batch.key.tolist()))
    return [pairs[start:stop] for start, stop in itertools.pairwise(col)]


def check(
    batch: pa.RecordBatch, attributes: Sequence[Attribute], words: Sequence[Sequence[bytes]] | None = None
) -> Reader:
    words = [()] * len(attributes) if words is None else words
    reader = Reader(Attributes(list(attributes)), literals(words))
    for _ in range(2):  # the second time with what the first has left in the scratch
        result = reader.read(batch)
        assert result.rows.tolist() == [batch.num_rows]
        assert entries(result) == naive(batch, attributes, words)
    return reader


def value(name: str, type: Type = INT, *path: str) -> Attribute:
    return Attribute((name, *path), Role.VALUE, type)


INTEGERS = {
    **{
        t: (-(2 ** (t.bit_width - 1)), 2 ** (t.bit_width - 1) - 1)
        for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    },
    **{t: (0, 2**t.bit_width - 1) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
}
texts = st.text("abé\0😀", max_size=14) | st.sampled_from(
    ["", "common-prefix-1", "common-prefix-2", "common-prefix", "\0", "\0\0", "é"]
)
days = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: Decimal(n).scaleb(-scale))


VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    **{t: st.integers(low, high) for t, (low, high) in INTEGERS.items()},
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal32(9, 2): decimals(9, 2),
    pa.decimal64(18, 4): decimals(18, 4),
    pa.decimal128(18, 0): decimals(18, 0),
    pa.decimal128(5, 3): decimals(5, 3),
    pa.decimal256(18, 6): decimals(18, 6),
    pa.date32(): days,
    pa.date64(): days,
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), texts),
    **{t: texts.map(str.encode) for t in (pa.binary(), pa.large_binary(), pa.binary_view())},
    pa.binary(3): st.binary(min_size=3, max_size=3),
}


@st.composite
def arrays(draw: st.DrawFn, arrow: pa.DataType, size: int, nullable: bool = True) -> pa.Array:
    """An array of ``size`` in any layout: offsets, bitmaps, dictionaries."""
    values = st.none() | VALUES[arrow] if nullable else VALUES[arrow]
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 2))
    n = before + size + after
    layout = draw(st.sampled_from(["plain", "plain", "dictionary"]))
    if layout == "plain":
        return pa.array(draw(st.lists(values, min_size=n, max_size=n)), arrow).slice(before, size)
    members = draw(st.lists(values, min_size=1, max_size=6))
    cut = draw(st.integers(0, len(members) - 1))
    index = draw(st.sampled_from(sorted(INTEGERS, key=str)))
    numbers = st.integers(0, len(members) - cut - 1)
    indexes = draw(st.lists(st.none() | numbers if nullable else numbers, min_size=n, max_size=n))
    return pa.DictionaryArray.from_arrays(pa.array(indexes, index), pa.array(members, arrow).slice(cut)).slice(
        before, size
    )


some_words = st.lists(texts.map(str.encode), max_size=30, unique=True).map(sorted)
