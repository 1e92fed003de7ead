"""Subscriptions by id: what a look-up finds against a dictionary, and what it shares with longer
ones.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from contract import NO_JIT
from hypothesis import given
from hypothesis import strategies as st
from sizes import SMALL

from colmatch.kernels import ids as kernels
from colmatch.subscriptions import lookup as module
from colmatch.subscriptions.lookup import IdLookup

MANY = 300 if SMALL else 3000
INT64 = st.integers(-(2**63), 2**63 - 1)
LOW = 2**32 - 1
UNMIXED = pow(0x9E3779B97F4A7C15, -1, 2**64)  # its multiples have neighbouring products in bits.mix


class Blind(module._Table):
    """A table whose slots have no bits of hashes, so that every id on the way is compared."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.mask = LOW
        self.search = (*self.search[:-1], LOW)


@pytest.fixture(params=[module._Table, Blind], ids=["hashes", "no hashes"])
def tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Makes look-ups use tables of a kind, and lists those that are made."""
    made: list[Any] = []

    def make(length: int) -> Any:
        made.append(request.param(length))
        return made[-1]

    monkeypatch.setattr(module, "_Table", make)
    return made


def typed(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.string() if values and isinstance(values[0], str) else pa.int64())


def sliced(ids: pa.Array) -> pa.Array:
    """The ids in the middle of a longer array."""
    other = pa.array(["before", "x"] if pa.types.is_string(ids.type) else [7, 8])
    return pa.concat_arrays([other, ids, other]).slice(2, len(ids))


def check(found: IdLookup, values: Sequence[Any], others: Iterable[Any] = ()) -> None:
    """Compares with a dictionary all that a look-up can be asked."""
    assert len(found) == len(values)
    expected = {value: number for number, value in enumerate(values)}
    wanted = [*reversed(values), *others]
    numbers = [expected.get(value, -1) for value in wanted]
    assert found.find(typed(wanted)).tolist() == numbers
    assert [found.find_one(value) for value in wanted[-200:]] == numbers[-200:]


def numbers_of(seed: int, size: int) -> list[int]:
    """Random numbers, each there twice or so."""
    rng = np.random.default_rng(seed)
    values: list[int] = (rng.integers(0, max(size // 2, 1), size) * 0x123456789ABCDEF % 2**62).tolist()
    return values


def texts_of(seed: int, size: int) -> list[str]:
    return [f"{'subscription ' * (n % 3)}{n}" for n in numbers_of(seed, size)]


@given(
    st.one_of(
        st.tuples(st.lists(INT64 | st.integers(-3, 3)), st.lists(INT64 | st.integers(-3, 3))),
        st.tuples(st.lists(st.text(), min_size=1), st.lists(st.text())),
    )
)
def test_ids_are_found_where_a_dictionary_has_them(given: tuple[list[Any], list[Any]]) -> None:
    values, others = given
    for ids in (typed(values), sliced(typed(values))):
        found = IdLookup(ids)
        check(found, values, others)
        wanted = typed(values)
        assert found.find(sliced(wanted)).tolist() == found.find(wanted).tolist()


@pytest.mark.parametrize("values_of", [numbers_of, texts_of])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, MANY])
@pytest.mark.usefixtures("tables")
def test_many_ids_with_duplicates(values_of: Any, size: int) -> None:
    values = values_of(size, size)
    check(IdLookup(typed(values) if values else typed(values_of(0, 1)).slice(0, 0)), values, values_of(99, MANY))


def test_an_empty_look_up_finds_nothing() -> None:
    for type, one in ((pa.int64(), 0), (pa.string(), "")):
        empty = IdLookup(pa.array([], type))
        assert empty.find(pa.array([one, one], type)).tolist() == [-1, -1]
        assert empty.find(pa.array([], type)).tolist() == [] and empty.find_one(one) == -1
        for other in (typed([0]), typed([""])):  # of whatever type: it has none yet
            assert empty.extended(other).find(other).tolist() == [0]


def test_arrays_with_empty_buffers() -> None:
    nothing = pa.StringArray.from_buffers(0, pa.py_buffer(b""), pa.py_buffer(b""))
    assert IdLookup(nothing).find(nothing).tolist() == [] and IdLookup(nothing).find_one("") == -1
    found = IdLookup(typed([""]))
    assert found.find(nothing).tolist() == [] and found.find_one("") == 0 and found.find_one("a") == -1


def test_null_is_no_id() -> None:
    for ids, one in ((typed([1]), pa.array([None], pa.int64())), (typed([""]), pa.array([None], pa.string()))):
        with pytest.raises((pa.ArrowInvalid, AssertionError)):
            IdLookup(ids).find(one)


@pytest.mark.usefixtures("tables")
def test_the_outermost_numbers_are_found() -> None:
    check(IdLookup(typed([-(2**63), 2**63 - 1, -1, 0])), [-(2**63), 2**63 - 1, -1, 0], [1, -2, 2**62, 2**63 - 2])


@pytest.mark.usefixtures("tables")
def test_strings_that_differ_in_one_byte_or_by_length() -> None:
    base = "abcdefghijklmnopqrstuvwxyz"
    cut = [base[:n] for n in range(27)] + [base[:n] + "\0" for n in range(27)]
    changed = [base[:k] + "#" + base[k + 1 : n] for n in range(1, 27) for k in range(n)]
    check(IdLookup(typed(cut)), cut, changed)
    check(IdLookup(typed(changed)), changed, cut)
    odd = ["é", "e\u0301", "日本語", "日本", "𝄞", "\0", "", "ÿ" * 9, "ÿ" * 8]
    check(IdLookup(typed(odd)), odd, [text + "é" for text in odd])


@pytest.mark.parametrize("shift", [0, 1, 8, 20, 32, 40, 51])
@pytest.mark.parametrize("factor", [1, 1000, UNMIXED], ids=["one", "thousand", "unmixed"])
def test_slots_of_regular_numbers_do_not_cluster(tables: list[Any], shift: int, factor: int) -> None:
    """At half of the slots taken, as far as by chance."""
    values = (np.arange(MANY, dtype=np.uint64) * np.uint64(factor) << np.uint64(shift)).view(np.int64)
    values = np.unique(values)
    IdLookup(pa.array(values))
    assert longest_run(tables[0].slot) < 80


@pytest.mark.parametrize(
    "form", ["{:07d}", "{:x}", "subscription-{:07d}", "{:04d}-subscription", "a\0{:012d}b", "first{:020d}and last"]
)
def test_slots_of_regular_strings_do_not_cluster(tables: list[Any], form: str) -> None:
    IdLookup(typed([form.format(i) for i in range(MANY)]))
    assert longest_run(tables[0].slot) < 80


def longest_run(slot: Any) -> int:
    free = np.flatnonzero(slot == 0)
    assert len(free)
    return int(np.diff(free, append=free[0] + len(slot)).max())


@pytest.mark.parametrize("values", [range(MANY), ["a" * n for n in range(300)]], ids=["numbers", "lengths"])
def test_slots_have_bits_of_hashes(values: Sequence[Any]) -> None:
    """So hardly any other id is compared."""
    table = IdLookup(typed(values))._table
    others = table.slot[table.slot != 0] & np.uint32(LOW ^ table.mask)
    assert len(np.unique(others)) > len(values) * 9 // 10


@pytest.mark.parametrize("values_of", [numbers_of, texts_of])
def test_extended_by_few_again_and_again(values_of: Any, tables: list[Any]) -> None:
    """All look-ups of a chain stay as they are; few make a table."""
    rng = np.random.default_rng(5)
    values = values_of(1, MANY)
    ids = typed(values)
    ends = np.unique(rng.integers(1, MANY, MANY // 3)).tolist()
    chain = [IdLookup(ids.slice(0, ends[0]))]
    for end in ends[1:]:
        chain.append(chain[-1].extended(ids.slice(0, end)))
    assert len(tables) < 20
    for end, found in [*zip(ends, chain)][::13]:
        check(found, values[:end], values[end:])


def test_a_look_up_is_extended_by_nothing() -> None:
    first = IdLookup(typed([5, 6]))
    second = first.extended(typed([5, 6])).extended(typed([5, 6, 5]))
    check(second, [5, 6, 5])
    check(first.extended(typed([5, 6, 6])), [5, 6, 6])
    check(first, [5, 6])


@pytest.mark.parametrize("values_of", [numbers_of, texts_of])
@pytest.mark.usefixtures("tables")
def test_what_was_thrown_away_is_not_found(values_of: Any) -> None:
    """Places of an abandoned look-up get other ids, and ids of it other places."""
    values = values_of(2, 60)
    old = IdLookup(typed(values[:20]))
    first = old.extended(typed(values[:24]))
    thrown = [*values[:24], *values[40:50], *values[:9]]
    abandoned = first.extended(typed(thrown))
    kept = [*values[:24], *values[45:60], *values[4:12], *values[40:45]]
    longer = first.extended(typed(kept))
    longest = longer.extended(typed([*kept, *values[:30]]))
    for found, mine in (
        (old, values[:20]),
        (first, values[:24]),
        (abandoned, thrown),
        (longer, kept),
        (longest, [*kept, *values[:30]]),
    ):
        check(found, mine, values)


def test_an_extension_that_failed_half_way_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    old = IdLookup(typed(list(range(10))))

    def half(number: Any, *rest: Any) -> None:
        kernels.enter(number[:13], *rest)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(module, "kernels", type("Half", (), {"BLOCK": 0, "enter": staticmethod(half)}))
        with pytest.raises(MemoryError):
            old.extended(typed([*range(10), 1, 2, 3, 4]))
    check(old, list(range(10)), range(20))
    values = [*range(10), 9, 1, 12]
    check(old.extended(typed(values)), values, range(20))
    check(old, list(range(10)), range(20))


@pytest.mark.usefixtures("tables")
def test_an_id_that_is_exchanged_again_and_again_has_one_slot() -> None:
    """Or each exchange would look at all before it."""
    values = [f"id {i}" for i in range(200)] + ["id 7"] * 60
    ids = typed(values)
    chain = [IdLookup(ids.slice(0, 200))]
    for end in range(201, 261):
        chain.append(chain[-1].extended(ids.slice(0, end)))
    assert np.count_nonzero(chain[0]._table.slot) == 200
    for number, found in enumerate(chain, 199):
        assert found.find_one("id 7") == (number if number > 199 else 7)
        assert found.find(typed(["id 7", "id 8"])).tolist() == [number if number > 199 else 7, 8]
    check(IdLookup(ids), values)
    assert np.count_nonzero(IdLookup(ids)._table.slot) == 200


def test_a_table_has_ten_bytes_an_id() -> None:
    table = IdLookup(typed(list(range(5000 if SMALL else 100_000))))._table
    assert table.slot.nbytes + table.earlier.nbytes < 10 * table.used


def test_others_search_while_one_extends() -> None:
    values = texts_of(3, 400 if SMALL else 20_000)
    ids = typed(values)
    old = IdLookup(ids.slice(0, len(ids) * 4 // 5))
    expected = old.find(ids).tolist()
    done, wrong = threading.Event(), []

    def search() -> None:
        while not done.is_set():
            if old.find(ids).tolist() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    longer = old
    for end in range(len(old) + 1, len(ids) + 1, 7):
        longer = longer.extended(ids.slice(0, end))
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong and longer._table is old._table


@pytest.mark.skipif(NO_JIT, reason="there are no signatures")
def test_each_kernel_has_one_signature() -> None:
    """However the arrays came about."""
    for one in (typed([1, 2]), typed(["a", "b"])):
        for ids in (one, sliced(one), one.slice(0, 0), one.take(pa.array([1]))):
            found = IdLookup(ids).extended(ids)
            found.find(ids)
            for value in ids.to_pylist():
                found.find_one(value)
    IdLookup(typed([1])).find_one(np.int64(1))  # type: ignore[arg-type]
    assert [len(kernel.signatures) for kernel in (kernels.find, kernels.find_one, kernels.enter)] == [1, 1, 1]
