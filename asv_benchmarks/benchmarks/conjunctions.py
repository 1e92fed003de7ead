"""Subscriptions and events as plain arrays, for rivals that read neither expressions nor Arrow."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.workloads import Workload

I64 = NDArray[np.int64]
# what to add to an operand
BOUNDS = {"=": (0, 0), "between": (0, 0), "<=": (None, 0), "<": (None, -1), ">=": (0, None), ">": (1, None)}


class Conjunctions(NamedTuple):
    """Subscription ``s`` is true where ``lo[p] <= value of attr[p] <= hi[p]`` for each ``p`` of its
    range.

    Its range is ``first[s]:first[s + 1]``, the rarest predicate first.

    The rarest is the narrowest. Each subscription has at least one. Intervals lie within the
    domain, 0 to ``top``, or are empty.
    """

    first: I64  # (subscriptions + 1)
    attr: NDArray[np.int32]  # (predicates)
    lo: I64  # (predicates)
    hi: I64  # (predicates)
    id: I64  # (subscriptions)
    top: int  # greatest value of all operands and events

    @property
    def owner(self) -> I64:
        """(predicates) predicate -> subscription."""
        return np.repeat(np.arange(len(self.id)), np.diff(self.first))


class Events:
    """Events in each form that a rival wants.

    What it takes to make them is not counted against any rival.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def long(self) -> pa.Table:
        """A row for each attribute that an event has: event int64, attr int32, value int64."""
        if self.table.column_names == ["attrs"]:
            maps = _one(self.table["attrs"])
            offsets = maps.offsets.to_numpy()
            event = np.repeat(np.arange(len(self)), np.diff(offsets))
            keys, values = (part[int(offsets[0]) : int(offsets[-1])] for part in (maps.keys, maps.items))
            return pa.table({"event": event, "attr": _attributes(keys), "value": values})
        event, attr = (part.astype(kind) for part, kind in zip(np.nonzero(self.grid >= 0), (np.int64, np.int32)))
        return pa.table({"event": event, "attr": attr, "value": self.grid[event, attr]})

    @cached_property
    def grid(self) -> I64:
        """(events, attributes) values, -1 where an event has none."""
        if self.table.column_names == ["attrs"]:
            raise NotImplementedError("thousands of attributes, for each of which there would be a column")
        if not all(pa.types.is_integer(kind) for kind in self.table.schema.types):
            raise NotImplementedError("columns other than integers")
        return np.column_stack([column.fill_null(-1).to_numpy() for column in self.table.columns])


def conjunctions(workload: Workload) -> Conjunctions:
    """The predicate table of a workload as arrays.

    Raises
    ------
    NotImplementedError : there are texts, or operators that are no intervals
    """
    table = workload.subscriptions
    if not isinstance(table, pa.Table):
        raise NotImplementedError("the subscriptions are texts")
    op = _one(table["op"])
    known = op.dictionary.to_pylist()
    kinds = [known[i] for i in np.unique(op.indices.to_numpy())]
    others = sorted(set(kinds) - set(BOUNDS))
    if others:
        raise NotImplementedError(f"{', '.join(others)}, where intervals are needed")
    lists = _one(table["operands"])
    start, values = lists.offsets.to_numpy(), lists.values.to_numpy()
    lo, hi = values[start[:-1]].copy(), values[start[1:] - 1].copy()
    top = int(max(values.max(), Events(workload.events).long["value"].to_numpy().max(initial=0)))
    for kind in kinds:
        below, above = BOUNDS[kind]
        of = op.indices.to_numpy() == known.index(kind)
        lo[of] = 0 if below is None else lo[of] + below
        hi[of] = top if above is None else hi[of] + above
    lo, hi = np.maximum(lo, 0), np.minimum(hi, top)
    ids, owner = np.unique(table["id"].to_numpy(), return_inverse=True)
    attr = _attributes(_one(table["attribute"]))
    order = np.lexsort((attr, hi - lo, owner))
    return Conjunctions(
        np.searchsorted(owner[order], np.arange(len(ids) + 1)), attr[order], lo[order], hi[order], ids, top
    )


def _attributes(names: pa.DictionaryArray) -> NDArray[np.int32]:
    """``a17`` and ``attrs['a17']`` -> 17."""
    numbers = np.array(
        [int(name.removeprefix("attrs['").removesuffix("']")[1:]) for name in names.dictionary.to_pylist()], np.int32
    )
    return numbers[names.indices.to_numpy()]


def _one(column: pa.ChunkedArray) -> Any:
    """Its only chunk; the chunks of a dictionary column get one dictionary."""
    whole = (
        column.unify_dictionaries().combine_chunks() if pa.types.is_dictionary(column.type) else column.combine_chunks()
    )
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
