"""Equal normal forms: subscriptions with the same conjunctions of the same predicates.

Hashes find candidates, in one pass over all predicates. Candidates are then compared exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of, sizes_of
from colmatch.kernels.layout import I64, U64, Bools
from colmatch.matching.checks.states import States

_ODD = np.uint64(0x9E3779B97F4A7C15)


def _mix(*columns: NDArray[Any]) -> U64:
    """Returns a hash of each row."""
    out = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        out = (out ^ column.astype(np.uint64)) * _ODD
        out ^= out >> np.uint64(29)
        out *= np.uint64(0xBF58476D1CE4E5B9)
        out ^= out >> np.uint64(32)
    return out


def _sums(values: U64, first: I64) -> U64:
    """Returns the sum of the values in each range."""
    total = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=total[1:])
    return total[first[1:]] - total[first[:-1]]


class Forms(NamedTuple):
    """Normal forms of subscriptions, in an order that is the same for equal ones."""

    owner: I64  # (N) number of each subscription that has conjunctions
    first: I64  # (N + 1) subscription -> conjunctions
    conjunction: I64  # of each subscription, each once
    predicate: U64  # (P) hash of each predicate
    hash: U64  # (N)


def normal_forms(states: States) -> Forms:
    """Returns the normal forms of all subscriptions that have conjunctions."""
    preds, runs = states.predicates, states.runs
    place = np.arange(len(runs.low)) - np.repeat(runs.first[:-1], sizes_of(runs.first))
    kind = 2 * states.attr + (states.multi & states.none)
    hashes = _mix(kind, sizes_of(runs.first), _sums(_mix(place, runs.low, runs.high), runs.first))
    programs = states.programs
    if programs.any():  # the predicates of a program have places, those of others have none
        of = np.repeat(np.arange(len(preds.owner)), sizes_of(preds.first))
        within = np.where(programs[of], np.arange(len(of)) - preds.first[:-1][of] + 1, 0)
        hashes = _mix(hashes, within)
    whole = _mix(sizes_of(preds.first), programs, _sums(hashes, preds.first))
    if len(preds.tree_first):
        token = np.arange(len(preds.tree)) - np.repeat(preds.tree_first[:-1], sizes_of(preds.tree_first))
        whole = _mix(whole, _sums(_mix(token, preds.tree), preds.tree_first))
    # Conjunctions of a subscription, each once, in the order of their hashes
    kept = np.lexsort((whole, preds.owner))
    owner = preds.owner[kept].astype(np.int64)
    new = np.ones(len(kept), bool)
    new[1:] = (owner[1:] != owner[:-1]) | (whole[kept][1:] != whole[kept][:-1])
    kept, owner = kept[new], owner[new]
    starts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else np.empty(0, np.int64)
    first = np.append(starts, len(owner))
    hash = _mix(sizes_of(first), _sums(_mix(whole[kept]), first))
    return Forms(owner[starts], first, kept, hashes, hash)


def duplicates(states: States, forms: Forms) -> tuple[I64, I64]:
    """Returns numbers of subscriptions with the normal form of an earlier one, and that one."""
    order = np.argsort(forms.hash, kind="stable")
    same = np.append(False, forms.hash[order][1:] == forms.hash[order][:-1])[: len(order)]
    lead = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
    id, other = order[same], order[lead[same]]
    equal = _equal(states, forms, id, other)
    id, other = forms.owner[id[equal]], forms.owner[other[equal]]
    ascending = np.argsort(id)
    return id[ascending], other[ascending]


def _equal(states: States, forms: Forms, some: I64, others: I64) -> Bools:
    """Returns whether pairs of normal forms are equal."""
    preds, runs, left = states.predicates, states.runs, np.ones(len(some), bool)
    kind = 2 * states.attr + (states.multi & states.none)

    def descend(pair: I64, a: I64, b: I64, first: I64) -> tuple[I64, I64, I64]:
        """Returns the members of ranges that are of one size, and the place of each range."""
        size = first[a + 1] - first[a]
        alike = size == first[b + 1] - first[b]
        left[pair[~alike]] = False
        at = ranges_of(size[alike])
        return np.repeat(np.flatnonzero(alike), size[alike]), members(first[a[alike]], at), members(first[b[alike]], at)

    # Conjunctions in the order of their hashes
    pair, a, b = descend(np.arange(len(some)), some, others, forms.first)
    a, b = forms.conjunction[a], forms.conjunction[b]
    is_program = states.programs[a]
    left[pair[is_program != states.programs[b]]] = False
    if len(preds.tree_first):
        row, c, d = descend(pair, a, b, preds.tree_first)
        left[pair[row[preds.tree[c] != preds.tree[d]]]] = False
    # Predicates in the order of their hashes
    row, p, q = descend(pair, a, b, preds.first)
    place = (p - preds.first[a[row]], q - preds.first[b[row]])
    order, other = (np.lexsort((forms.predicate[part], row)) for part in (p, q))
    moved = is_program[row] & (place[0][order] != place[1][other])
    pair, p, q = pair[row], p[order], q[other]
    left[pair[moved | (kind[p] != kind[q])]] = False
    row, p, q = descend(pair, p, q, runs.first)
    left[pair[row[(runs.low[p] != runs.low[q]) | (runs.high[p] != runs.high[q])]]] = False
    return left
