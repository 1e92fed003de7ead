"""PSTHash: a conjunction is in the spaces that its most selective predicates have together.

Source: Ji and Jacobsen, "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional
and Dense Workloads" (sections 4 and 6, algorithms 6 and 7). Deviations:

- Event counters, ranking, cells, the order of conjunctions and conjunctions without a place are as
  in ``colmatch/kinds/pstbloom.py``. Predicates of more than four codes take cells, if the cells
  have few other codes. By spaces alone, two ranges half as wide as a domain of 100 values would be
  in 2,500 of them.
- A conjunction has as many access predicates as make at most ``spaces`` spaces together, and at
  least one.
- A row only looks for spaces of attributes that occur together. Each space, and each beginning of
  longer ones, has bits of the attributes that come next (modulo 64).
- A split copies: the new space is combined with the other spaces of all its conjunctions. A merge
  removes the combinations.
- An entry names two more attributes that its conjunction needs, so most entries are not verified.

CONJUNCTIONS counts the list entries that are read: the conjunctions with access predicates that
hold, or nearly so where they have cells. CANDIDATES counts the verified conjunctions, PREDICATES
the predicates tested for this, NODES the spaces of several attributes that are looked for.

A value lies in a space and in a cell of its attribute. So 30 values make 60 places, and two values
up to four pairs. A place has bits of the attributes that it is paired with, but does not tell their
spaces from their cells. With 20,000 ``dense`` subscriptions, an event looks for 60 places and 476
pairs, and 62 pairs exist: 225 of two cells (59 exist), 225 of a cell and a space (1.4), and 26 that
begin with a space (1.2). With 200,000 subscriptions it looks for 1,079 pairs, and 334 exist.

By spaces alone, a million ``dense`` subscriptions would have 272 million entries in lists. They
have 7 million. Building a million at once takes 2.4 s, one by one 8 s. A thousand buckets are made
together, so that their places in the hash table come from memory at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.growing import extend_array
from colmatch.kernels.kinds.psthash import arrays as psh
from colmatch.kernels.kinds.psthash.arrays import PSTHash, Scratch, UpdateScratch
from colmatch.kernels.kinds.psthash.buckets import note_buckets
from colmatch.kernels.kinds.psthash.build import (
    KEY_WORDS,
    begin_lists,
    choose_all,
    count_buckets,
    count_members,
    fill_lists,
)
from colmatch.kernels.kinds.psthash.change import enter, remove
from colmatch.kernels.kinds.psthash.match import match
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.choose import BY_OPERATOR, DIMENSIONS, LEAVES, PLAN_WORDS, PRODUCT
from colmatch.kernels.kinds.pstree.verify import BLOCK
from colmatch.kernels.layout import I64, Codes, Predicates
from colmatch.kinds.base import IndexKind, highest_codes, make_writable
from colmatch.kinds.pstrees import add_conjunctions, add_rows, add_spaces, empty_tables, order_conjunctions, trim_tables
from colmatch.kinds.settings import Settings, setting
from colmatch.kinds.statistics import Sample, window_of

FIRST_SLOTS = 64
TOGETHER = 1024  # buckets that are looked for together
BUCKETS_EACH = 4  # buckets with room at first, for each conjunction


@dataclass(frozen=True, slots=True, repr=False)
class PSTHashSettings(Settings):
    """Settings of PSTHash: access predicates, their spaces, construction and the budget."""

    kind = "psthash"
    by_predicate = True
    about = "PSTHash: at the spaces that the two most selective predicates have together"

    dimensions: int = setting(2, "access predicates of a conjunction", range(1, psh.DIMENSIONS_MOST + 1))
    leaves: int = setting(
        4, "codes that a predicate may have to be given predicate spaces, and not cells", range(1, 100_001)
    )
    spaces: int = setting(
        64, "spaces that access predicates may make together; where they make more, there are fewer", range(1, 100_001)
    )
    ranking: str = setting(
        "share",
        "what makes a predicate selective where there is no sample: its part of the domain, or its operator first",
        ("share", "operators"),
    )
    construction: str = setting("bulk", "all at once, or one by one", ("bulk", "dynamic"))


def _plan(settings: PSTHashSettings) -> I64:
    plan = np.zeros(PLAN_WORDS, np.int64)
    plan[LEAVES], plan[PRODUCT], plan[DIMENSIONS] = settings.leaves, settings.spaces, settings.dimensions
    plan[BY_OPERATOR] = settings.ranking == "operators"
    return plan


def build(preds: Predicates, codes: Codes, sample: Sample | None, settings: Any) -> tuple[PSTHash, Predicates]:
    count = len(preds.owner)
    index = _empty(_plan(settings), codes, window_of(sample, codes))
    index = add_conjunctions(index, preds, codes, 0, count)
    index, preds, work = order_conjunctions(index, preds, codes, _work(index, preds, 0, count), choose_all)
    grow = _build_all if settings.construction == "bulk" else _enter_each
    index = grow(index, preds, codes, work, count)
    return (index if len(codes.label) else _trim_buckets(index, codes)), preds


def _build_all(index: PSTHash, preds: Predicates, codes: Codes, work: UpdateScratch, count: int) -> PSTHash:
    """Enters all conjunctions at once; ``probe`` says how each predicate is tested."""
    # Count the buckets that each conjunction is in.
    index, _ = add_spaces(index, preds, codes)
    work = _add_places(index, work)
    first = np.zeros(count + 1, np.int64)
    count_members(index, preds, first)
    bucket, done = np.empty(int(first[-1]), np.uint32), 0
    # Make the buckets.
    room = min(int(first[-1]), BUCKETS_EACH * count)
    index = index._replace(slot=np.zeros(1 << int(2 * room).bit_length(), np.uint32))
    index = index._replace(bucket=extend_array(index.bucket, 0, room))
    key = np.empty((max(int(np.diff(first).max(initial=0)), TOGETHER), KEY_WORDS), np.int64)
    while (done := count_buckets(index, preds, work, first, bucket, key, done)) < count:
        index = _add_buckets(index, len(key) * psh.DIMENSIONS_MOST)
    # Fill their lists.
    entries = int(begin_lists(index))
    index.state[ps.ENTRIES] = entries
    index = index._replace(entry=np.empty((entries, 3), np.uint32))
    fill_lists(index, preds, work.next, first, bucket)
    return index


def _empty(plan: I64, codes: Codes, window: dict[str, Any]) -> PSTHash:
    tables = empty_tables(highest_codes(codes).astype(np.uint64), 1)
    tables.state[ps.SPACES], tables.state[psh.FREE_BUCKET] = ps.RESERVED, ps.NONE
    return PSTHash(
        **tables._asdict(), entry=np.zeros((16, 3), np.uint32), bucket=np.zeros((16, psh.BUCKET_WORDS), np.uint32),
        slot=np.zeros(FIRST_SLOTS, np.uint32), probe=np.empty(0, np.uint32), at=np.empty(0, np.uint8), plan=plan,
        multi=codes.multi.copy(), common=np.zeros(len(codes.multi), np.uint32), **window,
    )  # fmt: skip


def _add_buckets(index: PSTHash, more: int) -> PSTHash:
    """Returns an index with room for so many more buckets."""
    used, slots = int(index.state[psh.BUCKETS]), int(index.state[psh.SLOTS])
    index = index._replace(bucket=extend_array(index.bucket, used, used + more))
    if 2 * (slots + more) > len(index.slot):
        index = index._replace(slot=np.zeros(1 << int(4 * (slots + more)).bit_length(), np.uint32))
        note_buckets(index)
    return index


def _add_places(index: PSTHash, work: UpdateScratch) -> UpdateScratch:
    """Returns working memory with room for the spaces of a conjunction."""
    size = psh.DIMENSIONS_MOST * (len(index.space) + ps.FANOUT)
    return work if len(work.spaces) >= size else work._replace(spaces=np.empty(size, np.uint32))


def _work(index: PSTHash, preds: Predicates, begin: int, end: int) -> UpdateScratch:
    left = np.zeros(psh.LEFT_WORDS, np.int64)
    left[psh.GOES_NEXT], left[psh.NEW_SPACE] = begin, ps.NONE
    longest = int(np.diff(preds.first[begin : end + 1]).max(initial=0))
    work = UpdateScratch(
        left, np.empty(longest), np.empty((max(end, len(index.at)), 2), np.uint32), np.empty(0, np.uint32),
        np.empty(2 * psh.DIMENSIONS_MOST + 1, np.int64),
    )  # fmt: skip
    return _add_places(index, work)


def _enter_each(index: PSTHash, preds: Predicates, codes: Codes, work: UpdateScratch, end: int) -> PSTHash:
    """Enters the conjunctions up to ``end``, one by one."""
    left = work.left
    while not enter(index, preds, codes, work, end):
        index = add_rows(index, int(left[psh.NEED_INNERS]), int(left[psh.NEED_CUTS]), int(left[psh.NEED_SPACES]))
        used = int(index.state[ps.ENTRIES])
        index = index._replace(entry=extend_array(index.entry, used, used + int(left[psh.NEED_ENTRIES])))
        index, work = _add_buckets(index, int(left[psh.NEED_BUCKETS])), _add_places(index, work)
    return index


def _trim_buckets(index: PSTHash, codes: Codes) -> PSTHash:
    index = trim_tables(index, codes, bucket=int(index.state[psh.BUCKETS]))
    size = 1 << max(int(2 * index.state[psh.SLOTS]).bit_length(), 4)
    if size < len(index.slot):
        index = index._replace(slot=np.zeros(size, np.uint32))
        note_buckets(index)
    return index


def insert(index: PSTHash, preds: Predicates, codes: Codes, begin: int, end: int) -> PSTHash:
    index = add_conjunctions(make_writable(index), preds, codes, begin, end)
    return _enter_each(index, preds, codes, _work(index, preds, begin, end), end)


def delete(index: PSTHash, preds: Predicates, codes: Codes, conjunctions: I64) -> PSTHash:
    index = make_writable(index)
    remove(index, preds, _work(index, preds, 0, 0), contiguous(conjunctions))
    return index


def scratch(index: PSTHash, codes: Codes, rows: int, entries: int) -> Scratch:
    spaces = 2 * entries + 1
    return Scratch(
        np.zeros(max(len(codes.multi), 1), np.uint32), np.empty((entries, ps.WALK_WORDS), np.uint32),
        np.empty(spaces, np.uint32), np.empty(spaces, np.uint32),
        np.empty((psh.DIMENSIONS_MOST * BLOCK + spaces, 4), np.uint32), np.empty((BLOCK, 3), np.uint32),
        np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint32),
    )  # fmt: skip


KIND = IndexKind(
    PSTHashSettings, PSTHash, build, scratch, match, lambda index: bool(index.state[ps.SEVERAL]), insert, delete,
    grows_by_sample=lambda requested: True,
)  # fmt: skip
