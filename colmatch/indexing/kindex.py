"""k-index of Whang et al., "Indexing Boolean Expressions".

The documents on BE*-Tree (sections II and VII), OpIndex (section 3) and PS-Tree (section 2)
describe it; ``kernels/kindex/match.py`` has the matching.

Conjunctions are partitioned by their size K, the number of their positive predicates. Posting lists
are keyed by attribute and value and sorted by conjunction. K = 0 is matched as K = 1, with a list Z
that every event has. The CNF form counts clauses: its K are the clauses without a negated
predicate, entries say which clause they belong to, and what a conjunction has twice in one list
goes to an extra list.

Deviations, and why:

- A range is enumerated over the intervals between the distinct boundaries of its attribute, not
  over values: an event cannot tell more, and the blow-up with cardinality that the documents
  measured (BE*-Tree, section VII) is gone.
- Where even that is many entries a predicate, intervals are gathered into the pieces of a tree,
  each with a list of its own: a range takes the fewest pieces it is made of, and a value has one
  list for each level. Pieces of a range do not overlap, so it still counts once. ``FLAT`` says
  when. At 1M ``dense`` subscriptions that is 132 MB instead of 779, for 18 ms an event instead of
  14.
- NOT IN and ``<>`` come as the intervals that are left, of an attribute that must be present. Where
  it takes fewer entries, they are entered as the source has it: negated ones for the gaps between
  them, and one of the whole that says that the attribute is present.
- ``index("kindex", enumerate="raw")`` stores an entry for each value, for the documents' comparison
  of memory. An event is known by its interval, all of whose values have equal lists: the first is
  read. The domain is from the lowest boundary to the highest, and what is outside.
- The K first lists stand in order, the others in a heap, where the documents sort all of them at
  each step.
- Conjunctions with an attribute of several values take the CNF form, in which a predicate that two
  values meet counts once.
- Other programs than an AND of ORs are found by the clauses that they imply, then evaluated.
- K of a CNF leaves out clauses that would need a third list of the same key.
- Counters of clauses count the predicates that are true, where the source sets them to 1: a negated
  entry can then take back what that of the whole has said, without a clause of its own.
- Top-k bounds are not here.

The source is static. New conjunctions go to a tail that is looked at one by one. When it is as
large as a share of the others, all are built anew. Deleted ones are marked. With raw enumeration
the tail stays: the values of later predicates are not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze, frozen
from colmatch.arrays.growing import extended
from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import OptionError
from colmatch.indexing.base import IndexKind
from colmatch.indexing.settings import Settings, dnf_budget, setting
from colmatch.indexing.statistics import Sample, Statistics
from colmatch.kernels.kindex.arrays import FANOUT_BITS, Domains, KIndex, KIndexScratch, Numbering
from colmatch.kernels.kindex.build import cut_segments, measure, post
from colmatch.kernels.kindex.clauses import CLAUSES, COUNTED, GONE, classify, write_starts
from colmatch.kernels.kindex.match import match
from colmatch.kernels.kindex.update import bury
from colmatch.kernels.labels.boundaries import unlabel_predicates
from colmatch.kernels.layout import ATTR_MASK, FLAG_MULTI, FLAG_RUN, I64, LABEL_TOP, U8, U32, U64, Codes, Predicates

Array = TypeVar("Array", bound=NDArray[Any])

SKIPPING = True
FLAT = 8  # entries a predicate, up to which an attribute's ranges are enumerated interval by interval
MOST_ENTRIES = 2**30  # and lists: 4 GB
TAIL_LEAST, TAIL_SHARE = 1024, 8  # conjunctions that the tail may have: so many, or one for so many in lists


@dataclass(frozen=True, slots=True, repr=False)
class KIndexSettings(Settings):
    """How kindex enumerates ranges, and what it keeps whole."""

    kind = "kindex"
    about = "k-index: posting lists of conjunctions by their number of predicates, skipped through"

    # Its lists know clauses: what is kept whole has fewer entries and is found sooner.
    dnf_budget: int = dnf_budget(1)
    enumerate: str = setting(
        "boundaries",
        "how a range is entered: by the intervals between the boundaries of all predicates, or 'raw' by "
        "every value of a discrete domain, as its documents do",
        ("boundaries", "raw"),
    )


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: KIndexSettings
) -> tuple[KIndex, Predicates]:
    """Raises OptionError when lists and entries would be more than ``MOST_ENTRIES``."""
    count = len(preds.owner)
    live, none = np.ones(count, np.uint8), np.empty(0, np.int64)
    raw, raw_first = _every_value(codes, np.diff(codes.first) + 1) if settings.enumerate == "raw" else (none, none)
    dead = np.zeros((count + 63) // 64, np.uint64)
    # Copies, since updates write into the memory of codes.
    return _lists(preds, codes.first.copy(), codes.label.copy(), codes.multi, raw, raw_first, live, dead), preds


def _labels(preds: Predicates, live: U8, attributes: int) -> tuple[I64, U32]:
    """Where the intervals of predicates begin and behind which they end, as
    ``KIndex.label_first`` and ``label``.
    """
    word, low, high = preds.pred[: preds.first[len(live)]].T.astype(np.int64)
    attr = word & ATTR_MASK
    is_live = np.repeat(live != 0, np.diff(preds.first[: len(live) + 1]))
    plain = is_live & (word & FLAG_RUN == 0) & (low <= high)
    runs = is_live & (word & FLAG_RUN != 0)
    places = members(low[runs], ranges_of(high[runs] - low[runs]))
    of = np.concatenate([attr[plain], np.repeat(attr[runs], high[runs] - low[runs])])
    begins = np.concatenate([low[plain], preds.run_lo[places]])
    ends = np.concatenate([high[plain], preds.run_hi[places]]) + 1
    ends[ends > LABEL_TOP] = 1  # as what begins with the lowest, no boundary
    both = np.unique(np.concatenate([of << 32 | begins, of << 32 | ends]))
    both = both[both & 0xFFFFFFFF > 1]
    return np.searchsorted(both, np.arange(attributes + 1) << 32), (both & 0xFFFFFFFF).astype(np.uint32)


def _coded(preds: Predicates, label_first: I64, label: U32) -> Predicates:
    """The predicates with dense codes for labels."""
    if not len(label):
        return preds
    coded = freeze(preds)._replace(pred=preds.pred.copy(), run_lo=preds.run_lo.copy(), run_hi=preds.run_hi.copy())
    unlabel_predicates(coded.pred, coded.run_lo, coded.run_hi, frozen(label_first), frozen(label))
    return freeze(coded)


def _every_value(codes: Codes, top: I64) -> tuple[I64, I64]:
    """Makes ``raw`` and ``raw_first`` of ``KIndex``: a list for every value."""
    width = np.ones(int(top.sum()), np.uint64)
    end = np.cumsum(top)
    inner = np.ones(len(codes.bound), bool)
    inner[codes.first[:-1][top > 1]] = False  # a boundary that has one before it
    # of the code that ends at each boundary
    place = np.arange(len(codes.bound)) + np.repeat(np.arange(len(top)), top - 1)
    width[place[inner]] = np.diff(codes.bound.view(np.uint64), prepend=np.uint64(0))[inner]
    values = float(width.astype(np.float64).sum())
    if values > MOST_ENTRIES:
        raise OptionError(
            f"index('kindex', enumerate='raw'): the domains between the lowest and highest literals have {values:.3g} "
            f"values, and each would have a list, more than the {MOST_ENTRIES:,} that fit: raw enumeration needs small "
            "discrete domains; take enumerate='boundaries', which is the default"
        )
    raw_first = end - top + np.arange(len(top))
    raw = np.zeros(len(width) + len(top), np.int64)
    ends = np.cumsum(width.astype(np.int64))
    raw[np.arange(len(width)) + np.repeat(np.arange(len(top)), top) + 1] = ends
    raw[raw_first[1:]] = ends[end[:-1] - 1]
    return raw, np.append(raw_first, len(raw))


def _domains(preds: Predicates, top: I64, raw: I64, raw_first: I64, live: U8) -> Domains:
    attributes = len(top)
    spans, uses, whole = np.zeros(attributes), np.zeros(attributes, np.int64), np.zeros(attributes, np.bool_)
    measure(preds, live, top, raw, raw_first, spans, uses, whole)
    if len(raw):
        _afford(float(spans.sum()), "raw")
        level_list = np.stack([np.zeros(attributes, np.int64), raw[-1] + np.arange(attributes)], axis=1).ravel()
        lists = int(raw[-1]) + attributes + 1
        return Domains(
            top, np.zeros(attributes, np.uint8), 2 * np.arange(attributes + 1), level_list, raw, raw_first, lists
        )
    tree = spans > FLAT * uses
    bits = int(FANOUT_BITS)
    attribute, width = [np.arange(attributes)], [top]
    while len(attribute[-1]):
        more = tree[attribute[-1]] & (width[-1] > 1)
        attribute.append(attribute[-1][more])
        width.append(((width[-1][more] - 1) >> bits) + 1)
    attribute.append(np.flatnonzero(whole & ~tree & (top > 1)))
    width.append(np.ones(len(attribute[-1]), np.int64))
    whose = np.concatenate(attribute)
    order = np.argsort(whose, kind="stable")
    level_list = ranges_of(np.concatenate(width)[order])
    level_first = np.searchsorted(whose[order], np.arange(attributes + 1))
    return Domains(top, tree.astype(np.uint8), level_first, level_list, raw, raw_first, int(level_list[-1]) + 1)


def _afford(entries: float, enumeration: str) -> None:
    if entries > MOST_ENTRIES:
        advice = (
            "take enumerate='boundaries', which is the default"
            if enumeration == "raw"
            else "take another kind of index"
        )
        raise OptionError(
            f"index('kindex', enumerate={enumeration!r}) would take {entries:,.0f} lists and entries, more than the {MOST_ENTRIES:,} "
            f"that fit: {advice}"
        )


def _lists(
    preds: Predicates, label_first: I64, label: U32, multi: U8, raw: I64, raw_first: I64, live: U8, dead: U64
) -> KIndex:
    """The index of the conjunctions that are ``live``, the first ``len(live)`` of ``preds``."""
    preds = _coded(preds, label_first, label)
    top = np.diff(label_first) + 1
    count, attributes = len(live), len(top)
    form, size, number_of = np.empty(count, np.uint8), np.empty(count, np.uint32), np.empty(count, np.uint32)
    unsure, clause = np.empty(count, np.uint8), np.empty(len(preds.pred), np.uint16)
    longest = int(np.diff(preds.tree_first).max(initial=0)) + 1
    starts, stack, counted = (
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(COUNTED, np.int64),
    )
    classify(preds, live, np.full(attributes, -1), starts, stack, counted, form, size, number_of, unsure, clause)

    rank = form.astype(np.int64) << 32 | size
    order = np.argsort(rank, kind="stable")[np.count_nonzero(form == GONE) :].astype(np.uint32)
    with_clauses = CLAUSES << 32
    ranks, part_first = np.unique(rank[order], return_index=True)
    parts = np.append(part_first, len(order))
    begin = int(np.searchsorted(rank[order], with_clauses))
    first_part = int(np.searchsorted(ranks, with_clauses))
    clause_first = ranges_of(number_of[order[begin:]])
    clause_true = np.empty(int(clause_first[-1]), np.int32)
    write_starts(preds, order, begin, clause, clause_first, clause_true)

    domains = _domains(preds, top, raw, raw_first, live)
    lists, planes = domains.lists, 3 if begin < len(order) else 1
    at, last = np.zeros(planes * lists, np.int64), np.zeros(lists if planes > 1 else 1, np.uint32)
    numbering = Numbering(order, begin, size, clause)
    no_entry, no_clause = np.empty(0, np.uint32), np.empty(0, np.uint16)
    post(preds, numbering, domains, False, last, at, no_entry, no_clause)
    first = ranges_of(at)
    total = int(first[-1])
    _afford(float(total + planes * lists), "raw" if len(raw) else "boundaries")
    entry, entry_clause = (
        np.empty(total, np.uint32),
        np.empty(total - int(first[min(planes * lists, lists)]), np.uint16),
    )
    at[:], last[:] = first[:-1], 0
    post(preds, numbering, domains, True, last, at, entry, entry_clause)
    segments = cut_segments(entry, first, parts, False, no_entry, no_entry, no_entry)
    list_first, segment_part = np.empty(planes * lists + 1, np.uint32), np.empty(segments, np.uint32)
    segment_first = np.empty(segments + 1, np.uint32)
    cut_segments(entry, first, parts, True, list_first, segment_part, segment_first)

    own = np.bincount(preds.owner[:count], minlength=1)
    return KIndex(
        level_first=domains.level_first, level_list=domains.level_list, label_first=label_first, label=label,
        raw=raw, raw_first=raw_first, planes=np.array([planes, lists]),
        list_first=list_first, segment_part=segment_part, segment_first=segment_first, entry=entry, clause=entry_clause,
        part_size=(ranks & 0xFFFFFFFF).astype(np.uint32), with_clauses=np.array([first_part, begin]), clause_first=clause_first,
        clause_true=clause_true, unsure=unsure[order[begin:]], order=order, tail=np.array([count, count]), dead=dead, multi=multi,
        skipping=np.array([SKIPPING], np.uint8), repeats=np.array([own.max() > 1], np.uint8),
    )  # fmt: skip


def scratch(index: KIndex, codes: Codes, rows: int, entries: int) -> KIndexScratch:
    planes, lists = (int(x) for x in index.planes)
    levels = np.diff(index.level_first)
    several = index.multi[: len(levels)] != 0
    # Values of one row: no more than one for each attribute without several, and no list twice.
    most = int(levels[~several].sum()) + (lists if several.any() else 0)
    most = planes * (min(most, entries * int(levels.max(initial=0))) + 1)
    return KIndexScratch(
        table=np.zeros(max(len(codes.multi), 1), np.uint32),
        seen=np.zeros(lists if several.any() else 0, np.uint8),
        low=np.empty(most, np.int64),
        next=np.empty(most, np.int64),
        whose=np.empty(most, np.uint32),
        at=np.empty(most, np.uint64),
        end=np.empty(most, np.uint64),
        heap=np.empty(most, np.uint64),
        front=np.empty(int(index.part_size.max(initial=0)) + 1, np.uint64),
        counter=np.empty(int(np.diff(index.clause_first).max(initial=0)), np.int32),
        waiting=np.empty(int(np.count_nonzero(index.unsure)), np.uint32),
    )


def insert(index: KIndex, preds: Predicates, begin: int, end: int) -> KIndex:
    """Enter conjunctions ``begin:end`` of ``preds``, which are its last, and return the index with
    them.

    They join the tail; when it has become too large, everything is built anew. Arrays that cannot
    be written are copied first: a deleted conjunction's bit is all that is large, an eighth of a
    byte each.

    Raises OptionError as ``build`` does.
    """
    index = _writable(index)
    index = index._replace(dead=extended(index.dead, len(index.dead), (end + 63) // 64))
    index.tail[1] = end
    word = preds.pred[preds.first[begin] : preds.first[end], 0]
    attributes = max(len(index.multi), int((word & ATTR_MASK).max(initial=0)) + 1)
    if attributes > len(index.multi):
        index = index._replace(multi=np.append(index.multi, np.zeros(attributes - len(index.multi), np.uint8)))
    index.multi[word[(word & FLAG_MULTI) != 0] & ATTR_MASK] = 1
    if np.any(np.diff(preds.owner[max(begin - 1, 0) : end].astype(np.int64)) <= 0):
        index.repeats[0] = 1
    if len(index.raw) or end - int(index.tail[0]) <= max(TAIL_LEAST, len(index.order) // TAIL_SHARE):
        return index
    bits = np.unpackbits(index.dead.view(np.uint8), bitorder="little", count=end)
    live, none = (1 - bits).astype(np.uint8), np.empty(0, np.int64)
    label_first, label = index.label_first, index.label
    if len(label) or not label_first[-1]:  # else predicates have codes, whose boundaries stay
        label_first, label = _labels(preds, live, attributes)
    return _lists(preds, label_first, label, index.multi, none, none, live, index.dead)


def delete(index: KIndex, preds: Predicates, conjunctions: NDArray[np.int64]) -> KIndex:
    """Take out conjunctions, by number in ``preds``: (n) int64.

    They are marked, and leave the lists when these are built anew.
    """
    index = _writable(index)
    bury(np.array(conjunctions, np.int64), index.dead)
    return index


def _writable(index: KIndex) -> KIndex:
    return index._replace(
        tail=_own(index.tail), dead=_own(index.dead), repeats=_own(index.repeats), multi=_own(index.multi)
    )


def _own(array: Array) -> Array:
    return array if array.flags.writeable else array.copy()


def repeats(index: KIndex) -> bool:
    return bool(index.repeats[0])


def cost(statistics: Statistics) -> float:
    """Estimates 30 ns for each predicate that an event meets, and what matches cost beyond that.

    The event has 30 attributes and meets 40 % of the predicates on them.
    """
    share = min(1.0, 30 / max(statistics.attributes, 1))
    return 5e3 + 0.05 * statistics.conjunctions + (0.07 + 12.0 * share) * statistics.predicates


KIND = IndexKind(KIndexSettings, KIndex, build, scratch, match, cost, repeats, insert, delete)
