"""PS-Trees as tables that grow: the common code of PSTBloom and PSTHash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.growing import extend_array
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.arrays import PSTree
from colmatch.kernels.kinds.pstree.build import (
    count_ends,
    count_predicates,
    make_cells,
    make_spaces,
    place_cells,
    reorder_probes,
)
from colmatch.kernels.kinds.pstree.tables import MOST_DIGITS
from colmatch.kernels.layout import FLAG_MULTI, U8, U32, U64, Codes, Predicates
from colmatch.kinds.base import highest_codes
from colmatch.kinds.statistics import window_of
from colmatch.predicates.columns import take

Tables = TypeVar("Tables", bound=Any)  # ``PSTree``, or a kind's arrays that have all of its


def empty_tables(highest: U64, lowest: int) -> PSTree:
    """Returns PS-Trees without predicates.

    highest (A) : the highest key of each attribute
    """
    state = np.zeros(ps.STATE_WORDS, np.int64)
    state[[ps.FREE_INNER, ps.FREE_CUT, ps.FREE_SPACE, ps.FREE_CELLS]] = state[ps.FREE_BLOCK :] = ps.NONE
    state[ps.LOWEST] = lowest
    space = np.zeros((4, ps.SPACE_WORDS), np.uint32)
    space[:, [ps.NEXT, ps.START, ps.LIST, ps.SIZE]] = ps.NONE
    return PSTree(
        _without_spaces(len(highest)), top_bits(highest), highest, np.zeros((4, ps.INNER_WORDS), np.uint32),
        np.zeros((4, ps.CUT_WORDS), np.uint32), np.zeros(4, np.uint64), space, state,
    )  # fmt: skip


def top_bits(highest: U64) -> U8:
    """Returns the number of bits below the highest digit of each attribute's keys."""
    bits = np.searchsorted(np.uint64(1) << np.arange(64, dtype=np.uint64), highest, "right")
    return np.maximum(bits - ps.DIGIT_BITS, 0).astype(np.uint8)


def _without_spaces(attributes: int) -> Any:
    tree = np.zeros((attributes, ps.TREE_WORDS), np.uint32)
    tree[:, [ps.ROOT, ps.FIRST, ps.LAST, ps.CELLS]] = ps.NONE
    return tree


def add_attributes(tables: Tables, codes: Codes) -> Tables:
    """Returns tables with room for the attributes of ``codes``, perhaps more than before."""
    more = len(codes.multi) - len(tables.multi)
    if more <= 0:
        return tables
    highest = highest_codes(codes)[-more:].astype(np.uint64)
    return tables._replace(  # type: ignore[no-any-return]
        tree=np.concatenate([tables.tree, _without_spaces(more)]),
        top=np.append(tables.top, top_bits(highest)),
        highest=np.append(tables.highest, highest),
        multi=np.append(tables.multi, codes.multi[-more:]),
        common=np.append(tables.common, np.zeros(more, np.uint32)),
    )


def add_rows(tables: Tables, inners: int, cuts: int, spaces: int) -> Tables:
    """Returns tables with room for so many more rows of each."""
    used = {"inner": (ps.INNERS, inners), "cut": (ps.CUTS, cuts), "key": (ps.CUTS, cuts), "space": (ps.SPACES, spaces)}
    grown = {
        name: extend_array(getattr(tables, name), int(tables.state[at]), int(tables.state[at]) + more)
        for name, (at, more) in used.items()
    }
    return tables._replace(**grown)  # type: ignore[no-any-return]


def add_conjunctions(index: Tables, preds: Predicates, codes: Codes, begin: int, end: int) -> Tables:
    """Returns an index with room for the conjunctions ``begin:end``, and for their attributes."""
    index = add_attributes(index, codes)
    place_cells(index.tree, contiguous(codes.first), contiguous(codes.label))
    probes, at = len(index.probe), len(index.at)
    size = int(preds.first[end])
    index = index._replace(
        probe=np.append(index.probe, np.zeros(max(size - probes, 0), np.uint32)),
        at=np.append(index.at, np.zeros(max(end - at, 0), np.uint8)),
    )
    count_predicates(preds.pred, int(preds.first[begin]), size, index.common)
    word = preds.pred[preds.first[begin] : size, 0]
    index.state[ps.SEVERAL] |= (preds.owner[begin + 1 : end] == preds.owner[begin : end - 1]).any()
    index.state[ps.SEVERAL] |= (word & np.uint32(FLAG_MULTI)).any()
    return index


def order_conjunctions(
    index: Tables, preds: Predicates, codes: Codes, work: Any, choose_all: Callable[..., None]
) -> tuple[Tables, Predicates, Any]:
    """Chooses access predicates, and sorts the conjunctions by them.

    Conjunctions of a growing segment keep their order, by subscription.

    choose_all : the kind's kernel
    """
    key = np.empty(len(preds.owner), np.int64)
    choose_all(index, preds, codes, work, key)
    if not len(codes.label):
        order, probe = np.argsort(key, kind="stable").astype(np.uint32), np.empty_like(index.probe)
        reorder_probes(preds.first, order, index.probe, probe)
        preds, index, work = take(preds, order), index._replace(probe=probe), work._replace(next=work.next[order])
    return index, freeze(preds), work


def tables_of(index: Any) -> PSTree:
    """Returns the tables that both kinds share, the first ones of their arrays."""
    return PSTree(*index[: len(PSTree._fields)])


def add_spaces(index: Tables, preds: Predicates, codes: Codes) -> tuple[Tables, U32]:
    """Makes the spaces and cells of all predicates that have them by ``probe``.

    Also returns the space that has each boundary.
    """
    attributes, boundaries = len(codes.multi), len(codes.bound)
    uses, ends = np.zeros((attributes, 2), np.int64), np.zeros(boundaries, np.int64)
    row, progress = np.empty(boundaries, np.uint32), np.zeros(2, np.int64)
    count_ends(preds, codes, index.probe, uses, ends)
    while not make_spaces(tables_of(index), codes, uses, ends, row, progress):
        index = add_rows(index, MOST_DIGITS, 1, 2)
    while not make_cells(tables_of(index), uses):
        index = add_rows(index, 0, 0, ps.FANOUT)
    return index, row


def trim_tables(index: Tables, codes: Codes, **used: int) -> Tables:
    """Drops unused rows, and the window: no access predicate is chosen any more.

    used : rows to keep of further arrays
    """
    tables = {"inner": ps.INNERS, "cut": ps.CUTS, "key": ps.CUTS, "space": ps.SPACES, "entry": ps.ENTRIES}
    used |= {name: int(index.state[at]) for name, at in tables.items()}
    longer = {name: size for name, size in used.items() if size < len(getattr(index, name))}
    shorter = {name: getattr(index, name)[:size].copy() for name, size in longer.items()}
    return index._replace(**shorter, **window_of(None, codes))  # type: ignore[no-any-return]
