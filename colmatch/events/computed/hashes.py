"""Hashes of whole columns by NumPy: Spark's ``hash`` and ``xxhash64``, and those of flag products.

Spark hashes the columns of a row in turn: the hash of one is the seed of the next, and NULL leaves
the seed as it is. So a text behind another column has a seed for each row. Loops run over the words
of texts, and each step is for all rows with such a word. Where fewer than ``FEW`` rows have one,
Python's numbers are faster: a step of NumPy takes 50 us, and a word of Python 0.4 us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.events.computed.failed import array_of
from colmatch.events.computed.functions import Value
from colmatch.events.exact import unscaled_words
from colmatch.kernels.layout import I64, U8
from colmatch.text.literal_index import texts_of

Words = Any  # an array of uint32 or uint64
SEED = 42  # of Spark
FEW = 64
_LONG_DIGITS = 18  # of decimals that Spark hashes as a long
_MOST = 2**64 - 1
_PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)


class _Bytes(NamedTuple):
    """Bytes of rows: row ``r`` has ``size[r]`` of ``data`` from ``start[r]``; more bytes follow."""

    data: U8
    start: I64
    size: I64

    def words(self, width: int) -> Any:
        """Returns the little-endian word that begins with each byte."""
        return np.ndarray((len(self.data) - width + 1,), f"<u{width}", self.data.data, strides=(1,))

    def over(self, rows: int) -> _Bytes:
        """Returns one row as many, or many as they are."""
        rows = max(rows, len(self.size))
        return self._replace(start=np.broadcast_to(self.start, rows), size=np.broadcast_to(self.size, rows))

    def by_size(self) -> tuple[_Bytes, I64]:
        """Returns the rows with longer ones first, and their numbers."""
        order = np.argsort(-self.size, kind="stable")
        return self._replace(start=self.start[order], size=self.size[order]), order

    def having(self, size: int) -> int:
        """Returns how many rows have ``size`` bytes or more; the longest come first."""
        return int(np.searchsorted(-self.size, -size, "right"))

    def behind(self, at: int, width: int, count: int) -> list[list[int]]:
        """Returns the whole words behind ``at`` bytes of each of the first ``count`` rows."""
        starts, sizes = self.start[:count].tolist(), self.size[:count].tolist()
        return [
            np.frombuffer(self.data, f"<u{width}", (size - at) // width, start + at).tolist()
            for start, size in zip(starts, sizes, strict=True)
        ]


class _Hash(NamedTuple):
    """A hash of Spark. Each function takes values and seeds, and returns hashes."""

    dtype: Any
    of_int: Callable[[Words, Words], Words]
    of_long: Callable[[Words, Words], Words]
    of_bytes: Callable[[_Bytes, Words], Words]


# MurmurHash3 of 32 bits


def _rotate(values: Any, by: int) -> Any:
    return values << by | values >> (8 * values.dtype.itemsize - by)


def _mix_word(word: Words) -> Words:
    return _rotate(word * 0xCC9E2D51, 15) * 0x1B873593


def _mix(hash: Words, word: Words) -> Words:
    return _rotate(hash ^ _mix_word(word), 13) * 5 + 0xE6546B64


def _mix_all(hash: int, words: list[int]) -> int:
    for word in words:
        word = word * 0xCC9E2D51 & 0xFFFFFFFF
        hash ^= ((word << 15 | word >> 17) * 0x1B873593) & 0xFFFFFFFF
        hash = ((hash << 13 | hash >> 19) * 5 + 0xE6546B64) & 0xFFFFFFFF
    return hash


def _finish(hash: Words, size: Any) -> Words:
    hash = hash ^ np.asarray(size).astype(np.uint32)
    hash = (hash ^ hash >> 16) * 0x85EBCA6B
    hash = (hash ^ hash >> 13) * 0xC2B2AE35
    return hash ^ hash >> 16


def _murmur_long(values: Words, seed: Words) -> Words:
    low, high = values.astype(np.uint32), (values >> 32).astype(np.uint32)
    return _finish(_mix(_mix(seed, low), high), 8)


def _murmur(rows: _Bytes, seed: Words, end: Callable[[_Bytes, Words], Words]) -> Words:
    """Hashes bytes; ``end`` mixes in those behind the last whole word."""
    rows, order = rows.by_size()
    hash, words = np.broadcast_to(seed, len(order))[order].copy(), rows.words(4)
    for at in range(0, int(rows.size[0] if len(order) else 0) - 3, 4):
        count = rows.having(at + 4)
        if count < FEW:
            hash[:count] = [
                _mix_all(h, behind) for h, behind in zip(hash.tolist(), rows.behind(at, 4, count), strict=False)
            ]
            break
        hash[:count] = _mix(hash[:count], words[rows.start[:count] + at])
    found = np.empty_like(hash)
    found[order] = _finish(end(rows, hash), rows.size)
    return found


def _end_of_spark(rows: _Bytes, hash: Words) -> Words:
    """Mixes in each byte as a word with its sign, as Spark does."""
    rest = rows.size & 3
    for i in range(3):
        byte = rows.data[rows.start + rows.size - rest + i].view(np.int8).astype(np.int32).view(np.uint32)
        hash = np.where(rest > i, _mix(hash, byte), hash)
    return hash


def _end_of_murmur(rows: _Bytes, hash: Words) -> Words:
    """Mixes in the bytes as one word, as the author of the hash does."""
    rest = (rows.size & 3).astype(np.uint32)
    word = rows.words(4)[rows.start + rows.size - rest] & ((np.uint32(1) << 8 * rest) - np.uint32(1))
    return hash ^ _mix_word(word)


# xxHash of 64 bits


def _spread(hash: Words) -> Words:
    hash = (hash ^ hash >> 33) * _PRIMES[1]
    hash = (hash ^ hash >> 29) * _PRIMES[2]
    return hash ^ hash >> 32


def _round(lane: Any, word: Words) -> Any:
    return _rotate(lane + word * _PRIMES[1], 31) * _PRIMES[0]


def _take_long(hash: Words, word: Words) -> Words:
    return _rotate(hash ^ _round(np.uint64(0), word), 27) * _PRIMES[0] + _PRIMES[3]


def _take_int(hash: Words, word: Words) -> Words:
    return _rotate(hash ^ word.astype(np.uint64) * _PRIMES[0], 23) * _PRIMES[1] + _PRIMES[2]


def _round_all(lane: int, words: list[int]) -> int:
    for word in words:
        lane = (lane + word * _PRIMES[1]) & _MOST
        lane = ((lane << 31 | lane >> 33) * _PRIMES[0]) & _MOST
    return lane


def _xx_stripes(rows: _Bytes, seed: Words) -> Words:
    """Hashes the stripes of four words at the beginning of the first rows, which have one."""
    words = rows.words(8)
    starts = (_PRIMES[0] + _PRIMES[1], _PRIMES[1], 0, -_PRIMES[0])
    lanes = [seed + np.uint64(start & _MOST) for start in starts]
    for at in range(0, int(rows.size[0]) - 31, 32):
        count = rows.having(at + 32)
        if count < FEW:
            behind = [row[: len(row) & ~3] for row in rows.behind(at, 8, count)]
            for i, lane in enumerate(lanes):
                lane[:count] = [_round_all(start, row[i::4]) for start, row in zip(lane.tolist(), behind, strict=False)]
            break
        for i, lane in enumerate(lanes):
            lane[:count] = _round(lane[:count], words[rows.start[:count] + (at + 8 * i)])
    hash: Words = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        hash = (hash ^ _round(np.uint64(0), lane)) * _PRIMES[0] + _PRIMES[3]
    return hash


def _xx_bytes(rows: _Bytes, seed: Words) -> Words:
    rows, order = rows.by_size()
    seed = np.broadcast_to(seed, len(order))[order]
    hash, long = seed + _PRIMES[4], rows.having(32)
    if long:
        hash[:long] = _xx_stripes(rows, seed[:long])
    hash = hash + rows.size.astype(np.uint64)
    # Words, half a word and bytes behind them
    at: Any = rows.start + (rows.size & ~31)
    left: Any = rows.size & 31
    for i in range(3):
        hash = np.where(left >= 8 * (i + 1), _take_long(hash, rows.words(8)[at + 8 * i]), hash)
    at, left = at + (left & ~7), left & 7
    hash = np.where(left >= 4, _take_int(hash, rows.words(4)[at]), hash)
    at, left = at + (left & 4), left & 3
    for i in range(3):
        byte = rows.data[at + i].astype(np.uint64)
        hash = np.where(left > i, _rotate(hash ^ byte * _PRIMES[4], 11) * _PRIMES[0], hash)
    found = np.empty_like(hash)
    found[order] = _spread(hash)
    return found


_MURMUR = _Hash(
    np.uint32,
    lambda values, seed: _finish(_mix(seed, values), 4),
    _murmur_long,
    lambda rows, seed: _murmur(rows, seed, _end_of_spark),
)
_XX = _Hash(
    np.uint64,
    lambda values, seed: _spread(_take_int(seed + np.uint64(_PRIMES[4] + 4), values)),
    lambda values, seed: _spread(_take_long(seed + np.uint64(_PRIMES[4] + 8), values)),
    _xx_bytes,
)


def _of_rows(hash: _Hash) -> Callable[..., Value]:
    """Returns a function of any number of columns of any types, which is never NULL."""

    def run(*values: Value) -> Value:
        rows = max(len(value) for value in values if isinstance(value, pa.Array))
        found = np.full(1, SEED, hash.dtype)
        for value in values:
            array = array_of(value)
            null = array.is_null().to_numpy(zero_copy_only=False)
            if not null.all():
                found = np.where(null, found, _hash_column(hash, array, found))
        return pa.array(np.broadcast_to(found, rows).view(f"i{found.dtype.itemsize}"))

    return run


def _hash_column(hash: _Hash, array: pa.Array, seed: Any) -> Any:
    """Returns the hashes of a column; those of NULL are of no meaning."""
    type, types = array.type, pa.types
    if types.is_string(type) or types.is_binary(type):
        return hash.of_bytes(_bytes_of(array).over(len(seed)), seed)
    if types.is_decimal(type):
        words = unscaled_words(array)
        return (
            hash.of_long(words[:, 0], seed)
            if type.precision <= _LONG_DIGITS
            else hash.of_bytes(_digits(words).over(len(seed)), seed)
        )
    if types.is_date(type):
        array = array.cast(pa.int32())
    elif types.is_timestamp(type):
        array = array.cast(pa.int64())
    numbers = pc.fill_null(array, pa.scalar(False if types.is_boolean(type) else 0, array.type)).to_numpy(
        zero_copy_only=False
    )
    if types.is_floating(type):
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0).astype(numbers.dtype)  # one NaN, and no -0
        return (hash.of_int if numbers.itemsize == 4 else hash.of_long)(numbers.view(f"u{numbers.itemsize}"), seed)
    if numbers.dtype.itemsize == 8:
        return hash.of_long(numbers.view(np.uint64), seed)
    return hash.of_int(numbers.astype(np.int32).view(np.uint32), seed)


def _bytes_of(array: pa.Array) -> _Bytes:
    """Returns the bytes of texts, of none for NULL."""
    texts = texts_of(pc.fill_null(array, pa.scalar(b"", pa.binary()).cast(array.type)).cast(pa.large_binary()))
    start = texts.offset[:-1].astype(np.int64)
    return _Bytes(np.concatenate([texts.data, np.zeros(32, np.uint8)]), start, np.diff(texts.offset).astype(np.int64))


def _digits(words: Words) -> _Bytes:
    """Returns unscaled decimals as Java's bytes: the highest first, as few as needed."""
    bytes = words[:, ::-1].astype(">u8").view(np.uint8).reshape(-1, 16)
    sign = (bytes[:, 0] >> 7) * np.uint8(255)
    leading = np.cumprod(bytes == sign[:, None], axis=1, dtype=np.int64).sum(axis=1)
    first = np.take_along_axis(bytes, np.minimum(leading, 15)[:, None], 1)[:, 0]
    leading = np.minimum(np.where(first >> 7 == sign >> 7, leading, leading - 1), 15)
    start = np.arange(len(words), dtype=np.int64) * 16 + leading
    return _Bytes(np.concatenate([bytes.reshape(-1), np.zeros(32, np.uint8)]), start, 16 - leading)


def _of_texts(function: Callable[..., Any], type: pa.DataType) -> Callable[..., Value]:
    """Returns a function of texts and constants, which is NULL where the text is."""

    def run(values: Value, *constants: Any) -> Value:
        null = values.is_null().to_numpy(zero_copy_only=False)
        return pa.array(function(_bytes_of(values), *constants), mask=null).cast(type)

    return run


def _murmur3_32(rows: _Bytes, seed: int) -> Words:
    if not -(2**31) <= seed < 2**32:
        raise ValueError("a seed has 32 bits")
    return _murmur(rows, np.full(1, seed % 2**32, np.uint32), _end_of_murmur)


def _bucket(rows: _Bytes, seed: int, count: int) -> Words:
    if not 1 <= count < 2**31:
        raise ValueError("the number of shares is 1 or more")
    return _murmur3_32(rows, seed) % np.uint32(count)


def _fnv1a_32(rows: _Bytes) -> Words:
    rows, order = rows.by_size()
    hash = np.full(len(order), 0x811C9DC5, np.uint32)
    for at in range(int(rows.size[0] if len(order) else 0)):
        count = rows.having(at + 1)
        if count < FEW:
            hash[:count] = [
                _fnv_all(h, behind) for h, behind in zip(hash.tolist(), rows.behind(at, 1, count), strict=False)
            ]
            break
        hash[:count] = (hash[:count] ^ rows.data[rows.start[:count] + at]) * np.uint32(0x01000193)
    found = np.empty_like(hash)
    found[order] = hash
    return found


def _fnv_all(hash: int, bytes: list[int]) -> int:
    for byte in bytes:
        hash = (hash ^ byte) * 0x01000193 & 0xFFFFFFFF
    return hash


HASHES: dict[str, Callable[..., Value]] = {
    "hash": _of_rows(_MURMUR),
    "xxhash64": _of_rows(_XX),
    "murmur3_32": _of_texts(_murmur3_32, pa.int64()),
    "fnv1a_32": _of_texts(_fnv1a_32, pa.int64()),
    "bucket": _of_texts(_bucket, pa.int32()),
}
