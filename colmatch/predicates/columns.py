"""The columns of a set of predicates; selections and unions of sets follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import seal
from colmatch.arrays.ranges import put_rows, ranges_of, rows_of, sizes_of
from colmatch.kernels.layout import ATTR_MASK, DTYPES, FLAG_RUN, I64, Predicates

PIECE = 1 << 18  # conjunctions whose rows are copied at a time: the places of millions take hundreds of MB

# Units: a column has a row for each. The first column of a unit is never optional.
CONJUNCTION, PREDICATE, RUN, JUMP, TOKEN = range(5)


class ArrayColumn(NamedTuple):
    """A column of ``layout.Predicates``.

    An optional column has no rows where none would say anything.
    """

    per: int  # unit of its rows
    leads_to: int = -1  # unit of the rows that its values are places of
    is_range: bool = False  # then it has one row more
    is_optional: bool = False
    fill: int = 0  # the value of missing rows


COLUMNS = {
    "first": ArrayColumn(CONJUNCTION, PREDICATE, is_range=True),
    "pred": ArrayColumn(PREDICATE),  # the last two values lead to runs where the first has ``FLAG_RUN``
    "run_lo": ArrayColumn(RUN),
    "run_hi": ArrayColumn(RUN),
    "owner": ArrayColumn(CONJUNCTION),
    "weight": ArrayColumn(PREDICATE, is_optional=True),
    "jump_first": ArrayColumn(CONJUNCTION, JUMP, is_optional=True, fill=-1),
    "jump": ArrayColumn(JUMP),
    "tree_first": ArrayColumn(CONJUNCTION, TOKEN, is_range=True, is_optional=True),
    "tree": ArrayColumn(TOKEN),
    "priority": ArrayColumn(CONJUNCTION, is_optional=True),
}
# Optional columns that describe a conjunction or a predicate, and lead nowhere.
GIVEN = {name: column.per for name, column in COLUMNS.items() if column.is_optional and column.leads_to < 0}
_OF_CONJUNCTIONS = [name for name, column in COLUMNS.items() if column.per == CONJUNCTION and not column.is_range]
_RANGES = {  # columns of ranges -> columns with rows in these ranges
    name: [other for other, column in COLUMNS.items() if column.per == range.leads_to]
    for name, range in COLUMNS.items()
    if range.is_range
}


def _empty(type: Any) -> NDArray[Any]:
    plain, *columns = get_args(type) if get_origin(type) is Annotated else (type,)
    dtype: Any = DTYPES[plain]
    return seal(np.empty((0, *columns), dtype))


# No predicates: each column has its type and no rows.
EMPTY = Predicates(*map(_empty, get_type_hints(Predicates, include_extras=True).values()))


def add_given(preds: Predicates, given: Mapping[str, NDArray[Any] | None]) -> Predicates:
    """Returns predicates with the columns ``given``, which have a value for each subscription."""
    there = {name: seal(values[preds.owner]) for name, values in given.items() if values is not None}
    return preds._replace(**there) if there else preds


def attributes_of(preds: Predicates) -> int:
    """Returns one more than the highest attribute in use."""
    return int((preds.pred[:, 0] & np.uint32(ATTR_MASK)).max(initial=0)) + 1 if len(preds.pred) else 0


def has_runs(preds: Predicates) -> NDArray[np.bool_]:
    """Returns whether each predicate has several intervals."""
    several: NDArray[np.bool_] = preds.pred[:, 0] & np.uint32(FLAG_RUN) != 0
    return several


class PlacedConjunctions(NamedTuple):
    """Conjunctions of a set, and their places among the conjunctions of several sets."""

    predicates: Predicates
    conjunctions: NDArray[np.integer[Any]]
    place: I64 | slice  # a slice of all where these are all conjunctions, in their order


def gather(parts: Sequence[PlacedConjunctions]) -> Predicates:
    """Returns conjunctions of several sets, each at its place, with all columns but the runs.

    The predicates are unchanged: they lead to the runs of their own set.
    """
    count, columns = sum(len(part.conjunctions) for part in parts), {}
    # Place the values of conjunctions
    for name in _OF_CONJUNCTIONS:
        if there := _find_having(name, parts):
            columns[name] = out = np.full(count, COLUMNS[name].fill, getattr(EMPTY, name).dtype)
            for part, rows in there:
                out[part.place] = rows[part.conjunctions]
    # Place the ranges of conjunctions, then the rows in them
    for name, members in _RANGES.items():
        there = _find_having(name, parts)
        if COLUMNS[name].is_optional and not (there and count):
            continue
        columns[name] = first = np.zeros(count + 1, np.int64)
        for part, own in there:
            first[1:][part.place] = sizes_of(own)[part.conjunctions]
        np.cumsum(first, out=first)
        for member in members:
            empty: NDArray[Any] = getattr(EMPTY, member)
            if COLUMNS[member].is_optional and not any(len(getattr(part.predicates, member)) for part in parts):
                continue
            columns[member] = out = np.zeros((int(first[-1]), *empty.shape[1:]), empty.dtype)
            for part, own in there:
                if len(rows := getattr(part.predicates, member)):
                    at = first[:-1][part.place]
                    for begin in range(0, len(at), PIECE):
                        some = part.conjunctions[begin : begin + PIECE]
                        put_rows(rows, own[:-1][some], own[1:][some] - own[:-1][some], at[begin : begin + PIECE], out)
    # Renumber the jumps of programs
    if there := _find_having("jump_first", parts):
        jumps, total = [], 0
        for part, start in there:
            start = start[part.conjunctions]
            own = ranges_of(np.where(start >= 0, sizes_of(part.predicates.first)[part.conjunctions], 0))
            columns["jump_first"][part.place] = np.where(start >= 0, own[:-1] + total, -1)
            jumps.append(rows_of(part.predicates.jump, start, own))
            total += int(own[-1])
        columns["jump"] = np.concatenate(jumps)
    return EMPTY._replace(**columns)


def _find_having(name: str, parts: Sequence[PlacedConjunctions]) -> list[tuple[PlacedConjunctions, NDArray[Any]]]:
    """Returns the parts that have rows in a column, each with the column."""
    return [(part, rows) for part in parts if len(rows := getattr(part.predicates, name))]


def take(preds: Predicates, conjunctions: NDArray[np.integer[Any]]) -> Predicates:
    """Returns conjunctions in the given order, with all runs of the set."""
    taken = gather([PlacedConjunctions(preds, conjunctions, slice(None))])
    return taken._replace(run_lo=preds.run_lo, run_hi=preds.run_hi)


def concat(parts: Sequence[Predicates]) -> Predicates:
    """Returns the predicates of all parts, with the same owners, which ascend from part to part."""
    if len(parts) == 1:
        return parts[0]
    placed, begin = [], 0
    for part in parts:
        own = np.arange(len(part.owner))
        placed.append(PlacedConjunctions(part, own, own + begin))
        begin += len(own)
    preds = gather(placed)
    run_lo, run_hi = (np.concatenate([getattr(part, name) for part in parts]) for name in ("run_lo", "run_hi"))
    runs = ranges_of([len(part.run_lo) for part in parts])[:-1]
    shift = np.repeat(runs, [len(part.pred) for part in parts]).astype(np.uint32)
    # Lead the predicates to the joined runs
    several = has_runs(preds)
    preds.pred[several, 1:] += shift[several, None]
    return preds._replace(run_lo=run_lo, run_hi=run_hi)
