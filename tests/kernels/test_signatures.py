"""The types that kernels declare: what annotations stand for, and that every kernel has them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import defaultdict
from typing import Annotated, NamedTuple, TypeVar

import numpy as np
import pytest
from contract import NO_JIT
from numba import types

import colmatch.kernels
from colmatch.kernels import _disk, _jit
from colmatch.kernels._signatures import numba_type, signatures
from colmatch.kernels.layout import F64, I64, U8, U32, Bools, Fixed, Table, Written
from colmatch.kernels.ranges import list_members

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(colmatch.kernels.__path__, "colmatch.kernels.")
]


def array(dtype: types.Type, dimensions: int, written: bool) -> types.Array:
    return types.Array(dtype, dimensions, "C", readonly=not written)


class Pair(NamedTuple):
    key: I64
    head: Annotated[U32, 3]
    kind: Fixed[U8]
    cells: Table[F64]


class Nest(NamedTuple):
    pair: Pair
    count: int


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, types.int64),
        (float, types.float64),
        (bool, types.boolean),
        (I64, array(types.int64, 1, False)),
        (Written[Bools], array(types.boolean, 1, True)),
        (Table[U32], array(types.uint32, 2, False)),
        (Written[Table[U32]], array(types.uint32, 2, True)),
        (tuple[I64, I64], types.UniTuple(array(types.int64, 1, False), 2)),
        (Written[tuple[U8, I64]], types.Tuple([array(types.uint8, 1, True), array(types.int64, 1, True)])),
    ],
)
def test_annotations(hint: object, expected: types.Type) -> None:
    assert numba_type(hint) == expected


def test_tuples_are_written_but_for_what_is_fixed() -> None:
    for written in (False, True):
        found = numba_type(Written[Nest] if written else Nest)
        assert found.instance_class is Nest and found.types[1] == types.int64
        pair = found.types[0]
        assert pair.instance_class is Pair and pair.types == (
            array(types.int64, 1, written),
            array(types.uint32, 2, written),
            array(types.uint8, 1, False),
            array(types.float64, 2, written),
        )


Item = TypeVar("Item", U8, I64)


def test_a_type_variable_has_a_signature_for_each_constraint() -> None:
    def copied(item: Item, count: int, out: Written[Item]) -> None: ...

    copied.__annotations__ = {"item": Item, "count": int, "out": Written[Item]}
    assert signatures(copied) == [
        (array(types.uint8, 1, False), types.int64, array(types.uint8, 1, True)),
        (array(types.int64, 1, False), types.int64, array(types.int64, 1, True)),
    ]


def test_a_function_without_annotations_declares_nothing() -> None:
    assert signatures(lambda a, b: a) == []


@pytest.mark.skipif(not _jit.kernels(), reason="the JIT is off")
def test_every_kernel_declares_its_types() -> None:
    ours = [kernel for kernel in _jit.kernels() if isinstance(kernel._cache, _disk.DiskCache)]
    assert len(ours) > 150
    assert not [kernel._cache.name for kernel in ours if not signatures(kernel.py_func)]


def test_tuples_of_one_name_have_other_fields() -> None:
    """Names of compiled functions have no more of a NamedTuple than its name and its types, and
    machine code of several processes is linked together.
    """
    found = defaultdict(set)
    for module in MODULES:
        for _, of in inspect.getmembers(module, inspect.isclass):
            if issubclass(of, tuple) and hasattr(of, "_fields") and of.__module__.startswith(f"{_disk.PACKAGE}."):
                try:
                    found[of.__name__, str(numba_type(of)), str(numba_type(of, True))].add(of)
                except (AttributeError, TypeError):  # no argument of a kernel
                    continue
    assert len(found) > 50
    assert not [some for some in found.values() if len(some) > 1]


@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_a_call_with_other_types_than_declared_fails_in_tests() -> None:
    """``colmatch warm`` would not have compiled it; conftest.py looks at each call."""
    start, first, place = np.zeros(1, np.int64), np.array([0, 1]), np.empty(1, np.int64)
    with pytest.raises(AssertionError, match=r"kernel list_members is called with start: .*, first: "):
        list_members(start, first, place)
