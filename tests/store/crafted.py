"""Saved matchers with right checksums, not written by colmatch, and a process that uses them.

``python crafted.py FILE ...`` opens each file, calls all methods, and prints how that ended.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import colmatch as cm
from colmatch.given.session import ZONE
from colmatch.store.file import read_arrays, write_arrays

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.string()), ("l", pa.list_(pa.int64()))])
EVENTS = pa.table(
    {"a": [1, 5, 7, None], "b": [3, 1, 9, 4], "c": ["x", "xy", "y", None], "l": [[3], [], [1, 3], None]}, schema=SCHEMA
)
VALUES: list[Any] = [0, 1, -1, 7, 2**31, 2**63, -(2**63), 1.5, None, "", "x", [], [1], {}, {"a": 1}, True, "\ud800"]
DTYPES = ["|b1", "|i1", "|u1", "<i4", "<u4", "<i8", "<u8", "<f8", "<u2"]


def saved(path: Path, kind: str, ids: str) -> Path:
    """Saves a matcher with all that one can have, of some kind."""
    texts = [
        "a = 1 AND b > 2 OR c IN ('x', 'y')", "NOT (a IN (1, 2, 5)) AND c LIKE 'x%'", "a BETWEEN 3 AND 9",
        "array_contains(l, 3) AND (b < 3 OR a > 9) AND (c = 'x' OR b > 7)", "a > 2 AND b > 2 AND a < 90 AND b < 91",
        "lower(c) = 'x' AND a + b > 3", "size(l) = 1 OR c = 'zz'", "b IN (1, 3, 9) AND a <> 4 AND c IS NOT NULL",
    ]  # fmt: skip
    there = {number if ids == "number" else f"id {number}": text for number, text in enumerate(texts * 4)}
    weights = {"a": 2.0, "b": 1.5}
    table = pa.table(
        {
            "id": list(there),
            "expression": list(there.values()),
            "weights": pa.array([list(weights.items())] * len(there), pa.map_(pa.string(), pa.float64())),
            "tags": [["one", "two"][: number % 3] for number in range(len(there))],
        }
    )
    with cm.Matcher.build(table, SCHEMA, index=kind, sample=EVENTS) as matcher:
        more = {number + 100 if ids == "number" else f"more {number}": text for number, text in enumerate(texts[:5])}
        matcher.insert(more)
        matcher.delete([next(iter(there)), next(iter(more))])
        matcher.insert({next(iter(there)): "a <"}, errors="collect")
        matcher.save(path)
    return path


def mutated(header: dict[str, Any], arrays: dict[str, Any], random: Random) -> str:
    """Changes one thing, or two. Returns what was changed."""
    if random.random() < 0.3:
        return _in_header(header, random)
    name = random.choice(sorted(arrays))
    array = arrays[name].copy()
    how = random.choice(
        ["value", "value", "value", "value", "shorter", "longer", "type", "empty", "all", "order", "gone"]
    )
    if how in ("value", "all") and array.size:
        flat = array.reshape(-1)
        kind = array.dtype
        some = [
            0,
            1,
            2,
            -1,
            random.randrange(64),
            2**15,
            2**31 - 1,
            2**31,
            2**32 - 1,
            2**63 - 1,
            random.getrandbits(64),
        ]
        value = np.array([random.choice(some) & (2**64 - 1)], np.uint64).view(np.int64)
        with np.errstate(all="ignore"):
            value = value.view(np.float64) if kind.kind == "f" and random.random() < 0.5 else value.astype(kind)
        if how == "all":
            flat[:] = value[0]
        elif random.random() < 0.3 and kind.kind in "iu":
            at = random.randrange(len(flat))
            with np.errstate(all="ignore"):
                flat[at] = (flat[at : at + 1] + np.ones(1, kind) * kind.type(random.choice([1, 2, 9])))[0]
        else:
            flat[random.randrange(len(flat))] = value[0]
    elif how == "shorter":
        array = array[: random.randrange(len(array) + 1)]
    elif how == "longer":
        array = np.concatenate(
            [
                array,
                array[: random.randrange(1, len(array) + 1)]
                if len(array)
                else np.zeros((3, *array.shape[1:]), array.dtype),
            ]
        )
    elif how == "type":
        array = array.reshape(-1).view(np.uint8).copy().view(np.uint8)
        dtype = np.dtype(random.choice(DTYPES))
        array = array[: len(array) // dtype.itemsize * dtype.itemsize].view(dtype)
    elif how == "empty":
        array = array[:0]
    elif how == "order":
        array = array[::-1].copy()
    arrays[name] = array
    if how == "gone":
        del arrays[name]
    return f"{name}: {how}"


def _in_header(header: Any, random: Random) -> str:
    """Changes a value somewhere in the header."""
    place, way = header, []
    while True:
        key = random.choice(sorted(place)) if isinstance(place, dict) else random.randrange(len(place))
        way.append(key)
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.8:
            place = place[key]
            continue
        if isinstance(place[key], str) and way[0] == "schema":
            text = bytearray(place[key], "ascii")
            text[random.randrange(len(text))] = random.choice(b"ABCDabcd0123")
            place[key] = text.decode()
        elif random.random() < 0.1:
            del place[key]
        elif type(place[key]) is int and random.random() < 0.5:
            place[key] += random.choice([-1, 1])
        else:
            place[key] = random.choice(VALUES)
        return f"header {way}"


def craft(source: Path, target: Path, seed: int) -> str:
    """Writes a changed save whose checksums are right. Returns what was changed."""
    random = Random(seed)
    header, arrays = read_arrays(source)
    header, arrays = json.loads(json.dumps(header)), dict(arrays)
    said = [mutated(header, arrays, random) for _ in range(random.choice([1, 1, 1, 2]))]
    write_arrays(target, header, arrays)
    return f"seed {seed}: {', '.join(said)}"


def use(path: str) -> None:
    """Calls all methods of a matcher, updates included."""
    with cm.Matcher.open(path) as matcher:
        str(matcher.stats()), matcher.rejected, matcher.spark_settings.get(ZONE), matcher.columns, matcher.tags
        list(matcher.match_lists(EVENTS).to_pylist())
        matcher.match(EVENTS, tags=["one"])
        for score in ("dot", "priority"):
            matcher.match_topk(EVENTS, 2, score=score)
        ids = matcher.ids.to_pylist()
        for id in ids[:3] + ids[-2:]:
            str(matcher.explain(EVENTS.slice(0, 1), id))
        matcher.reasons(EVENTS)
        new = 7777 if pa.types.is_integer(matcher.ids.type) else "7777"
        matcher.insert({new: "a = 5 AND b < 4 AND c = 'n'"})
        matcher.match(EVENTS)
        if ids:
            matcher.delete(ids[:1])
        matcher.compact()
        matcher.match(EVENTS)


def main(paths: list[str]) -> None:
    for path in paths:
        print(f"begin {path}", flush=True)
        try:
            use(path)
        except cm.ColmatchError as error:
            print("refused", type(error).__name__, str(error).replace("\n", " ")[:300], flush=True)
        except Exception as error:
            print(
                "foreign",
                type(error).__name__,
                str(error).replace("\n", " ")[:200],
                traceback.format_exc().splitlines()[-3:],
                flush=True,
            )
        else:
            print("used", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
