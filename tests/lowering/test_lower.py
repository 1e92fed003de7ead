"""Lowering against a plain model: boundaries are the distinct ends of intervals, codes count
them, the narrowest predicate is first.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.kernels.layout import ATTR_MASK, KEY_MAX, KEY_MIN
from colmatch.kernels.lowering.operators import ABOVE, BELOW, EXACT
from colmatch.kinds.settings import Budget
from colmatch.lowering import conjunctions
from colmatch.lowering.floors import intervals
from colmatch.lowering.forms import Op
from colmatch.predicates import columns
from colmatch.subscriptions import rows as table_rows
from colmatch.subscriptions import table
from colmatch.subscriptions.intake import Errors, NewSubscriptions, SubscriptionReader

ENDS = {  # of attributes: values close to each other are marked in bytes, others are sorted
    "near": range(-3, 4),
    "one": [5],
    "far": [-(10**12), -7, 0, 1, 2, 10**15],
    "all": [KEY_MIN, KEY_MIN + 1, -1, 0, KEY_MAX - 1, KEY_MAX],
    "edge": [-(2**31) - 1, -(2**31), 1 - 2**31, 2**31 - 2, 2**31 - 1, 2**31],
    "low": range(KEY_MIN, KEY_MIN + 4),
    "high": range(KEY_MAX - 3, KEY_MAX + 1),
}


def table_of(rows: list[tuple[int, str, str, list[int]]]) -> pa.Table:
    """Rows as a table, with dictionaries of its own."""
    id, attribute, op, operands = zip(*rows, strict=True)
    words = {"attribute": pa.array(attribute).dictionary_encode(), "op": pa.array(op).dictionary_encode()}
    return pa.table({"id": id, **words, "operands": pa.array(operands, pa.list_(pa.int64()))})


def lowered(rows: list[tuple[int, str, str, list[int]]]) -> NewSubscriptions:
    return taken_in(table_of(rows))


def taken_in(rows: pa.Table, errors: Errors = "raise") -> NewSubscriptions:
    schema = Schema(dict.fromkeys(ENDS, pa.int64()))
    return SubscriptionReader(schema, Options(), Attributes(), Budget(64, 64)).take_in(cm.PredicateTable(rows), errors)


@pytest.mark.parametrize("seed", range(5))
def test_ranges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = list(ENDS)
    wanted: list[dict[int, tuple[int, int]]] = []  # of each conjunction: attribute -> interval
    rows: list[tuple[int, str, str, list[int]]] = []
    for sub in range(40):
        some = rng.permutation(len(names))[: rng.integers(1, len(names) + 1)].tolist()
        wanted.append({})
        for a in some:
            low, high = sorted(int(x) for x in rng.choice(np.array(ENDS[names[a]]), 2))
            rows.append((sub, names[a], "between", [low, high]))
            wanted[-1][a] = (low, high)
    got = lowered(rows)
    name = [attribute.path[0] for attribute in got.attributes]
    p, codes = got.lowered.predicates, got.lowered.codes
    bounds: dict[str, list[int]] = {}
    for a, of in enumerate(names):
        ends = [c[a] for c in wanted if a in c]
        bounds[of] = sorted(
            {low for low, _ in ends if low != KEY_MIN} | {high + 1 for _, high in ends if high != KEY_MAX}
        )
    for number, of in enumerate(name):
        assert codes.bound[codes.first[number] : codes.first[number + 1]].tolist() == bounds[of]
    for sub, intervals_of in enumerate(wanted):
        expected = []
        for a, (low, high) in intervals_of.items():
            first, last = (1 + sum(b <= key for b in bounds[names[a]]) for key in (low, high))
            number = name.index(names[a])
            expected.append(((last - first + 1) / (len(bounds[names[a]]) + 1), number, first, last))
        found = p.pred[p.first[sub] : p.first[sub + 1]].tolist()
        # of equal shares: by attribute
        assert found == [list(row[1:]) for row in sorted(expected, key=lambda row: row[:2])]


def test_a_predicate_of_several_intervals() -> None:
    got = lowered([(0, "far", "in", [7, -7, 8, 10**15]), (0, "near", "=", [1]), (1, "near", "in", [])])
    p, codes = got.lowered.predicates, got.lowered.codes
    assert p.first.tolist() == [0, 2]  # what can never be true is dropped
    assert [int(word) & ATTR_MASK for word in p.pred[:, 0]] == [1, 0]
    assert codes.bound[codes.first[0] : codes.first[1]].tolist() == [-7, -6, 7, 9, 10**15, 10**15 + 1]
    low, high = p.pred[1, 1:]
    assert list(zip(p.run_lo[low:high].tolist(), p.run_hi[low:high].tolist(), strict=True)) == [(2, 2), (4, 4), (6, 6)]


def test_weights_go_with_their_predicates() -> None:
    weighted = pa.table(
        {
            "id": [0, 0, 0],
            "attribute": ["near", "far", "all"],
            "op": ["<", "=", "<"],
            "operands": [[3], [2], [0]],
            "weight": [1.0, 2.0, 4.0],
        }
    )
    got = taken_in(weighted)
    p = got.lowered.predicates
    name = [attribute.path[0] for attribute in got.attributes]
    of = {name[int(word) & ATTR_MASK]: weight for word, weight in zip(p.pred[:, 0], p.weight.tolist(), strict=True)}
    assert [name[int(word) & ATTR_MASK] for word in p.pred[:, 0]] == ["far", "near", "all"]
    assert of == {"near": [1.0, 1.0], "far": [2.0, 2.0], "all": [4.0, 4.0]}


KEYS = (KEY_MIN, KEY_MIN + 1, -1, 0, 1, KEY_MAX - 1, KEY_MAX)
PLACED = [(key, place) for key in KEYS for place in (BELOW, EXACT, ABOVE)]


def least(key: int, place: int, strict: bool) -> int:
    """The least key that is at or above, or strictly above, a literal; beyond all keys when
    there is none.
    """
    return key + (place == ABOVE or (strict and place == EXACT))


def most(key: int, place: int, strict: bool) -> int:
    if place == BELOW:
        return KEY_MIN - 1
    return key - (strict and place == EXACT)


@pytest.mark.parametrize("op", [Op.EQ, Op.IN, Op.LT, Op.LE, Op.GT, Op.GE])
def test_intervals(op: Op) -> None:
    floor, place = (np.array(column) for column in zip(*PLACED, strict=True))
    lo, hi = intervals(op, [(floor, place.astype(np.int8))])
    for (key, where), low, high in zip(PLACED, lo.tolist(), hi.tolist(), strict=True):
        bottom, top = KEY_MIN, KEY_MAX
        if op in (Op.EQ, Op.IN):
            bottom, top = (key, key) if where == EXACT else (KEY_MAX, KEY_MIN)
        elif op in (Op.LT, Op.LE):
            top = most(key, where, op is Op.LT)
        else:
            bottom = least(key, where, op is Op.GT)
        assert (low, high) == ((bottom, top) if KEY_MIN <= bottom <= top <= KEY_MAX else (KEY_MAX, KEY_MIN))


def test_intervals_between() -> None:
    pairs = [(a, b) for a in PLACED for b in PLACED]
    parts = [
        (np.array([pair[k][0] for pair in pairs]), np.array([pair[k][1] for pair in pairs], np.int8)) for k in range(2)
    ]
    lo, hi = intervals(Op.BETWEEN, parts)
    for (a, b), low, high in zip(pairs, lo.tolist(), hi.tolist(), strict=True):
        bottom, top = least(*a, False), most(*b, False)
        assert (low, high) == ((bottom, top) if bottom <= top and bottom <= KEY_MAX else (KEY_MAX, KEY_MIN))


@pytest.mark.parametrize("names", [["near", "one"], ["near", "edge"], list(ENDS)])
def test_pieces_are_the_whole(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows: list[tuple[int, str, str, list[int]]] = []
    for sub in range(60):
        for _ in range(rng.integers(1, 6)):
            op = str(rng.choice(["=", "<", "between", "in", "not in", "<>", "is null"]))
            name = str(rng.choice(names))
            count = {"is null": 0, "between": 2, "in": 3, "not in": 3}.get(op, 1)
            rows.append((sub, name, op, [int(x) for x in rng.choice(np.array(ENDS[name]), count)]))
    arrays = []
    monkeypatch.setattr(table, "FEW_ROWS", 1)
    for chunk, piece, coded in ((1000, 1 << 17, 1 << 18), (11, 7, 30), (1, 1, 8), (50, 1, 1)):
        monkeypatch.setattr(table_rows, "PIECE", piece)
        monkeypatch.setattr(conjunctions, "PIECE", coded)
        monkeypatch.setattr(columns, "PIECE", coded)
        chunks = [table_of(rows[begin : begin + chunk]) for begin in range(0, len(rows), chunk)]
        got = taken_in(pa.concat_tables(chunks))
        arrays.append(
            [(x.dtype, x.tolist()) for part in got.lowered[:3] for x in part]
            + [got.ids.array.to_pylist(), list(got.attributes)]
        )
    assert arrays[0] == arrays[1] == arrays[2] == arrays[3]


def test_a_row_of_a_later_piece_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "PIECE", 2)
    part = {
        "id": [1, 2, 3, 4, 5],
        "attribute": ["one"] * 5,
        "op": ["=", "=", "=", "nope", "between"],
        "operands": [[1]] * 5,
    }
    got = taken_in(pa.table(part), "collect")
    assert got.ids.array.to_pylist() == [1, 2, 3]
    assert got.lowered.predicates.owner.tolist() == [0, 1, 2]
    assert [(x.id, x.message.partition("(")[2]) for x in got.rejected] == [
        (4, "row 3 of the predicate table)"),
        (5, "row 4 of the predicate table)"),
    ]
