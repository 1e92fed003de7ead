"""Results come in parts of bounded bytes, whatever is long in them."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.matching import pieces
from colmatch.matching.kept import bytes_of

SCHEMA = {"a": "int64"}
ROWS = 300


def events(rng: Random) -> pa.Table:
    def text() -> str | None:
        return None if rng.random() < 0.1 else "x" * rng.choice([0, 1, 5, 3000 if rng.random() < 0.1 else 2])

    rows = [
        {
            "a": rng.randrange(10),
            "t": text(),
            "l": [text(), text()],
            "m": [("k", text())],
            "s": {"x": text(), "y": i},
            "i": i,
        }
        for i in range(ROWS)
    ]
    types = {
        "a": pa.int64(), "t": pa.string(), "l": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.string()),
        "s": pa.struct({"x": pa.string(), "y": pa.int64()}), "i": pa.int32(),
    }  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(types))


def matcher(strings: bool) -> cm.Matcher:
    rng = Random(5)
    ids: list[Any] = [f"{i}" * rng.choice([1, 1, 200]) + "." for i in range(40)] if strings else list(range(40))
    return cm.Matcher.build({id: f"a >= {i % 12}" for i, id in enumerate(ids)}, SCHEMA)


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("keep", [(), ("t",), ("l", "i"), ("m", "s", "a")])
@pytest.mark.parametrize("most", [1, 500, 20_000])
def test_parts_are_bounded_and_together_the_whole(
    strings: bool, keep: tuple[str, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, given = matcher(strings), events(Random(3))
    whole = of.match(given, keep=keep)
    lists, best = of.match_lists(given), of.match_topk(given, 2, keep=keep)
    monkeypatch.setattr(pieces, "BYTES_MOST", most)
    monkeypatch.setattr(pieces, "IDS_MOST", most)
    assert of.match(given, keep=keep).equals(whole)
    assert of.match_lists(given).equals(lists)
    assert of.match_topk(given, 2, keep=keep).equals(best)
    parts = list(of.match_batches(given, keep=keep))
    assert pa.Table.from_batches(parts).equals(whole)
    if keep or strings:
        assert all(part.num_rows == 1 or part.nbytes < 3 * most + 60 * part.num_rows for part in parts)
        assert len(parts) > 1


def test_lists_come_in_parts_of_whole_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    of, given = matcher(strings=True), events(Random(3))
    assert len(of.match_lists(given).chunks) == 1
    monkeypatch.setattr(pieces, "IDS_MOST", 2000)
    parts = of.match_lists(given).chunks
    assert len(parts) > 5 and all(len(part) == 1 or part.values.nbytes < 6000 for part in parts)


def test_rows_that_match_nothing_are_in_a_list_each(monkeypatch: pytest.MonkeyPatch) -> None:
    of = matcher(strings=True)
    given = pa.table({"a": [-1, 5, -1, -1, 9, None, -1]})
    wanted = of.match_lists(given).to_pylist()
    for most in (1, 300, 10**9):
        monkeypatch.setattr(pieces, "IDS_MOST", most)
        assert of.match_lists(given).to_pylist() == wanted
    assert [len(one) for one in wanted] == [
        sum(i % 12 <= value for i in range(40)) for value in (-1, 5, -1, -1, 9, -1, -1)
    ]


def test_bytes_of_rows() -> None:
    assert bytes_of(pa.array(["ab", None, "abc"])).tolist() == [2, 0, 3]
    assert bytes_of(pa.array([["ab", "c"], None, []])).tolist() == [3, 0, 0]
    assert bytes_of(pa.array([["zz"], ["ab", "c"]]).slice(1)).tolist() == [3]
    assert bytes_of(pa.array([{"x": "ab", "y": "c"}])).tolist() == [3]
    assert bytes_of(pa.array([[("k", "ab")], None], pa.map_(pa.string(), pa.string()))).tolist() == [3, 0]
    assert bytes_of(pa.array([1, 2])).tolist() == [9, 9]
    fixed = pa.array([["ab", "c"], None, ["", "abcd"]], pa.list_(pa.string(), 2))
    assert bytes_of(fixed).tolist() == [3, 0, 4] and bytes_of(fixed.slice(2)).tolist() == [4]
