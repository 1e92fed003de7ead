"""Shares by hashes: published values, Spark's, and a computation byte by byte."""

from __future__ import annotations

import hashlib
import struct
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events.computed import hashes
from colmatch.events.computed.hashes import HASHES

M32, M64 = 2**32 - 1, 2**64 - 1


def rotated(x: int, by: int, bits: int) -> int:
    return (x << by | x >> bits - by) & (1 << bits) - 1


def murmur(data: bytes, seed: int, is_spark: bool) -> int:
    """MurmurHash3 as its author writes it, or with Spark's end."""

    def mixed(k: int) -> int:
        return rotated(k * 0xCC9E2D51 & M32, 15, 32) * 0x1B873593 & M32

    h, whole = seed, len(data) & ~3
    for at in range(0, whole, 4):
        h = (rotated(h ^ mixed(int.from_bytes(data[at : at + 4], "little")), 13, 32) * 5 + 0xE6546B64) & M32
    if is_spark:
        for byte in data[whole:]:
            h = (rotated(h ^ mixed((byte - 256 * (byte > 127)) & M32), 13, 32) * 5 + 0xE6546B64) & M32
    else:
        h ^= mixed(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & M32
    h = (h ^ h >> 13) * 0xC2B2AE35 & M32
    return h ^ h >> 16


def xx(data: bytes, seed: int) -> int:
    """XXH64 as its specification writes it."""
    p = [11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261]
    turn = lambda lane, word: rotated((lane + word * p[1]) & M64, 31, 64) * p[0] & M64  # noqa: E731
    at, h = 0, (seed + p[4]) & M64
    if len(data) >= 32:
        lanes = [(seed + p[0] + p[1]) & M64, (seed + p[1]) & M64, seed, (seed - p[0]) & M64]
        while at + 32 <= len(data):
            lanes = [
                turn(lane, word) for lane, word in zip(lanes, struct.unpack("<4Q", data[at : at + 32]), strict=True)
            ]
            at += 32
        h = sum(rotated(lane, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & M64
        for lane in lanes:
            h = ((h ^ turn(0, lane)) * p[0] + p[3]) & M64
    h = (h + len(data)) & M64
    while at + 8 <= len(data):
        h = (rotated(h ^ turn(0, int.from_bytes(data[at : at + 8], "little")), 27, 64) * p[0] + p[3]) & M64
        at += 8
    if at + 4 <= len(data):
        h = (rotated(h ^ int.from_bytes(data[at : at + 4], "little") * p[0] & M64, 23, 64) * p[1] + p[2]) & M64
        at += 4
    for byte in data[at:]:
        h = rotated(h ^ byte * p[4] & M64, 11, 64) * p[0] & M64
    h = (h ^ h >> 33) * p[1] & M64
    h = (h ^ h >> 29) * p[2] & M64
    return h ^ h >> 32


def fnv(data: bytes) -> int:
    h = 0x811C9DC5
    for byte in data:
        h = (h ^ byte) * 0x01000193 & M32
    return h


def some_texts(count: int) -> list[str | None]:
    rng = Random(3)
    texts = [
        "".join(rng.choices("abc 0é€😀\0", k=rng.choice([0, 1, 2, 3, 4, 7, 8, 31, 32, 33, 63, 64, 65, 200])))
        for _ in range(count)
    ]
    return [None if rng.random() < 0.1 else text for text in texts]


def test_published_values() -> None:
    vectors = [
        ("", 0, 0), ("", 1, 0x514E28B7), ("", M32, 0x81F16F39), ("test", 0x9747B28C, 0x704B81DC),
        ("Hello, world!", 0x9747B28C, 0x24884CBA), ("The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ]  # fmt: skip
    for text, seed, value in vectors:
        rule = f"murmur3_32({seed}, s) = {value}"
        assert cm.Matcher.build({1: rule}, {"s": "string"}).match_one({"s": text}) == [1]
    found = HASHES["fnv1a_32"](pa.array(["", "a", "foobar", None])).to_pylist()
    assert found == [0x811C9DC5, 0xE40C292C, 0xBF9CF968, None]


def test_values_of_spark() -> None:
    """As ``SELECT hash(...)`` of Spark 4.3 has them."""
    number = lambda value: pa.array([value], pa.int32())  # noqa: E731
    assert HASHES["hash"](number(1)).to_pylist() == [-559580957]
    assert HASHES["hash"](pa.nulls(1)).to_pylist() == [42]
    assert HASHES["xxhash64"](pa.scalar("a"), number(1), pa.scalar(None)).to_pylist() == [-4810547614043336770]


@pytest.mark.parametrize("few", [0, 64, 10_000])
def test_texts_are_hashed_byte_by_byte(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By NumPy alone, by Python's numbers alone, and by both."""
    monkeypatch.setattr(hashes, "FEW", few)
    texts = some_texts(300)
    data = [None if text is None else text.encode() for text in texts]
    for layout in (pa.array(texts), pa.array(["x", *texts, "y"]).slice(1, len(texts)), pa.array(data, pa.binary())):
        signed = lambda name, *values: HASHES[name](*values).to_numpy()  # noqa: E731
        one = one32 = [42 if d is None else murmur(d, 42, True) for d in data]
        assert signed("hash", layout).view(np.uint32).tolist() == one
        two = [h if d is None else murmur(d, h, True) for d, h in zip(data, one, strict=True)]
        assert signed("hash", layout, layout).view(np.uint32).tolist() == two
        one = [42 if d is None else xx(d, 42) for d in data]
        two = [h if d is None else xx(d, h) for d, h in zip(data, one, strict=True)]
        word = pa.scalar("straße")
        three = [murmur("straße".encode(), h, True) for h in one32]
        assert signed("hash", layout, word).view(np.uint32).tolist() == three
        assert signed("hash", word, layout).view(np.uint32).tolist() == [
            h if d is None else murmur(d, h, True) for d in data for h in [murmur("straße".encode(), 42, True)]
        ]
        assert signed("xxhash64", layout, layout).view(np.uint64).tolist() == two
    assert HASHES["murmur3_32"](pa.array(texts), 7).to_pylist() == [
        None if d is None else murmur(d, 7, False) for d in data
    ]
    assert HASHES["bucket"](pa.array(texts), 7, 100).to_pylist() == [
        None if d is None else murmur(d, 7, False) % 100 for d in data
    ]
    assert HASHES["fnv1a_32"](pa.array(texts)).to_pylist() == [None if d is None else fnv(d) for d in data]


def test_large_decimals_are_hashed_by_their_bytes() -> None:
    numbers = [
        0,
        1,
        -1,
        127,
        128,
        -128,
        -129,
        255,
        256,
        -256,
        2**63,
        -(2**63),
        10**37,
        -(10**37),
        10**38 - 1,
        1 - 10**38,
    ]
    column = pa.array([None, *[Decimal(n) for n in numbers]], pa.decimal128(38, 0))
    expected = []
    for number in numbers:
        size = next(size for size in range(1, 17) if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1)
        expected.append(murmur(number.to_bytes(size, "big", signed=True), 42, True))
    assert HASHES["hash"](column).to_numpy().view(np.uint32).tolist() == [42, *expected]
    assert HASHES["hash"](column[5:9]).to_numpy().view(np.uint32).tolist() == expected[4:8]


def test_no_row_and_constants_alone() -> None:
    for name, constants in (("hash", ()), ("xxhash64", ()), ("murmur3_32", (0,)), ("fnv1a_32", ()), ("bucket", (0, 5))):
        assert HASHES[name](pa.array([], pa.string()), *constants).to_pylist() == []
        assert HASHES[name](pa.array([None], pa.string()), *constants).null_count == (name not in ("hash", "xxhash64"))
    assert cm.Matcher.build({1: "hash(NULL) = 42 AND i > 0", 2: "hash(1, i) > 0 AND i > 5"}, {"i": "int"}).match_one(
        {"i": 1}
    ) == [1]


def test_shares_of_flag_products() -> None:
    """Unleash, GrowthBook and LaunchDarkly, each computed here as it says."""
    share = "CAST(conv(substring(sha1(concat('flag.salt.', id)), 1, 15), 16, 10) AS BIGINT) / 1152921504606846975"
    rules = {
        1: "bucket(0, concat('group:', id), 100) < 25",
        2: "fnv1a_32(CAST(fnv1a_32(concat('seed', id)) AS STRING)) % 10000 < 2500",
        3: "fnv1a_32(concat(id, 'seed')) % 1000 < 250",
        4: f"{share} < 0.25",
    }
    matcher = cm.Matcher.build(rules, {"id": "string"})
    ids = [f"user-{i}" for i in range(200)]
    expected = []
    for id in ids:
        digits = hashlib.sha1(f"flag.salt.{id}".encode()).hexdigest()[:15]
        holds = [
            murmur(f"group:{id}".encode(), 0, False) % 100 + 1 <= 25,
            fnv(str(fnv(f"seed{id}".encode())).encode()) % 10000 / 10000 < 0.25,
            fnv(f"{id}seed".encode()) % 1000 / 1000 < 0.25,
            int(digits, 16) / 0xFFFFFFFFFFFFFFF < 0.25,
        ]
        expected.append([i for i, one in enumerate(holds, 1) if one])
    assert matcher.match_lists(pa.table({"id": ids})).to_pylist() == expected
    assert [matcher.match_one({"id": id}) for id in ids] == expected


ALL = {"i": "int", "x": "double", "s": "string", "b": "boolean", "d": "date32", "at": "timestamp", "n": "decimal(20,2)"}


def test_single_events_have_the_same_hashes() -> None:
    rules: dict[int, str] = {i: f"hash(s, i, x, b, d, at, n) % 8 = {i}" for i in range(-7, 8)}
    rules |= {
        20: "xxhash64(s, NULL, i) > 0",
        21: "murmur3_32(4294967295, s) > 2147483648",
        22: "hash(s) = hash(s, NULL)",
    }
    matcher = cm.Matcher.build(rules, ALL)
    rng = Random(5)
    events: list[dict[str, Any]] = [{}]
    events += [{"s": text} | ({"i": 3, "x": -0.0} if rng.random() < 0.5 else {}) for text in some_texts(40)]
    found = matcher.match_lists(pa.Table.from_pylist(events, schema=cm.Schema(ALL).arrow)).to_pylist()
    assert [sorted(matcher.match_one(event)) for event in events] == list(map(sorted, found))
    assert all(22 in one for one in found)


def test_a_part_that_fails_is_an_error_beside_a_null() -> None:
    matcher = cm.Matcher.build({1: "hash(s, i + 2147483647) = 0"}, ALL, options=cm.Options(ansi=True))
    with pytest.raises(cm.EventError, match="the result is too large"):
        matcher.match(pa.table({"s": pa.array([None], pa.string()), "i": pa.array([1], pa.int32())}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("murmur3_32(s, 0) = 1", r"murmur3_32 takes a literal whole number here, as in murmur3_32\(0, id\)"),
        ("murmur3_32(4294967296, s) = 1", "a seed has 32 bits"),
        ("bucket(0, s, 0) = 1", "the number of shares is 1 or more"),
        ("bucket(0, i, 100) = 1", "bucket needs a string, not int"),
        ("hash() = 1", "hash has too few or too many arguments here"),
        ("hash(semver(s)) = 1", "hash needs a value of a column, not version"),
    ],
)
def test_wrong_calls(text: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, ALL)


def test_conv_of_more_than_64_bits_is_an_error_in_ansi_mode() -> None:
    events = pa.table({"s": ["ffffffffffffffff", "10000000000000000"]})
    rules = {1: "conv(s, 16, 10) = '18446744073709551615'"}
    assert cm.Matcher.build(rules, events.schema).match_lists(events).to_pylist() == [[1], [1]]
    matcher = cm.Matcher.build(rules, events.schema, options=cm.Options(ansi=True))
    assert matcher.match_lists(events[:1]).to_pylist() == [[1]] == [matcher.match_one({"s": "f" * 16})]
    with pytest.raises(cm.EventError, match="event 1: .*'10000000000000000' has more than 64 bits"):
        matcher.match(events)
