"""k-index of Whang et al., "Indexing Boolean Expressions".

The papers on BE*-Tree (sections II and VII), OpIndex (section 3) and PS-Tree (section 2) describe
it; ``kernels/kinds/kindex/match.py`` has the matching.

Conjunctions are partitioned by their size K, the number of their positive predicates. Posting lists
are keyed by attribute and value and sorted by conjunction. K = 0 is matched as K = 1, with a list Z
that every event has. The CNF form counts clauses. Its K are the clauses without a negated
predicate, and entries name their clause. Further entries of a conjunction in the same list go to an
extra list.

Deviations and their reasons:

- A range is enumerated over the intervals between the distinct boundaries of its attribute, not
  over values. An event cannot tell more values apart. So there is no blow-up with cardinality, as
  the papers measured it (BE*-Tree, section VII).
- If even this makes many entries a predicate, intervals are gathered into the pieces of a tree,
  each with its own list. A range takes the fewest pieces, and a value has one list for each level.
  Pieces of a range do not overlap, so the range still counts once. ``FLAT`` is the limit. A million
  ``dense`` subscriptions take 132 MB instead of 779, for 18 ms an event instead of 14.
- NOT IN and ``<>`` arrive as the remaining intervals of an attribute that must be present. If it
  takes fewer entries, they are entered as in the source: negated entries for the gaps, and one
  positive entry of the whole domain.
- ``index("kindex", enumerate="raw")`` stores an entry for each value, for the papers' comparison of
  memory. All values in an interval have equal lists, so an event reads the list of the first. The
  domain reaches from the lowest boundary to the highest; all values below it count as one, and all
  above it.
- The K first lists are kept in order, the others in a heap. The papers sort all of them at each
  step.
- Conjunctions with an attribute of several values take the CNF form, where a predicate counts once
  even if two values meet it.
- Programs other than an AND of ORs are found by the clauses that they imply, then evaluated.
- K of a CNF leaves out clauses that would need a third list of the same key.
- Counters of clauses count the true predicates, where the source sets them to 1. So a negated entry
  can cancel the entry of the whole domain, without an extra clause.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colmatch.arrays.ranges import ranges_of
from colmatch.errors import OptionError
from colmatch.kernels.kinds.kindex.arrays import FANOUT_BITS, DomainLists, KIndex, KIndexScratch, Numbering
from colmatch.kernels.kinds.kindex.bounds import weigh_rests, weigh_segments
from colmatch.kernels.kinds.kindex.build import cut_segments, measure, post
from colmatch.kernels.kinds.kindex.clauses import CLAUSES, COUNTED, classify, write_starts
from colmatch.kernels.kinds.kindex.match import match
from colmatch.kernels.kinds.kindex.match_topk import match_topk
from colmatch.kernels.layout import I64, Codes, Predicates
from colmatch.kinds.base import IndexKind, highest_scores
from colmatch.kinds.settings import Settings, dnf_budget, setting
from colmatch.kinds.statistics import Sample

SKIPPING = True
FLAT = 8  # entries a predicate, up to which an attribute's ranges are enumerated interval by interval
MOST_ENTRIES = 2**30  # and lists: 4 GB
MOST_LISTS = 2**27  # of all planes: 20 bytes each during the build


@dataclass(frozen=True, slots=True, repr=False)
class KIndexSettings(Settings):
    """Settings of kindex: the enumeration of ranges, and the budget."""

    kind = "kindex"
    about = "k-index: posting lists of conjunctions by their number of predicates, skipped through"

    # The lists know clauses: an expression kept whole has fewer entries and is found sooner.
    dnf_budget: int = dnf_budget(1)
    enumerate: str = setting(
        "boundaries",
        "how a range is entered: by the intervals between the boundaries of all predicates, or 'raw' by "
        "every value of a discrete domain, as its papers do; what would take too many is refused, but not in "
        "inserts of up to 512 at once, which stay outside of the index then",
        ("boundaries", "raw"),
    )


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: KIndexSettings
) -> tuple[KIndex, Predicates]:
    """Raises OptionError when there would be too many lists or entries."""
    # Find the form and the size of each conjunction.
    top = np.diff(codes.first) + 1
    count, attributes = len(preds.owner), len(top)
    form, size, number_of = np.empty(count, np.uint8), np.empty(count, np.uint32), np.empty(count, np.uint32)
    unsure, clause = np.empty(count, np.uint8), np.empty(len(preds.pred), np.uint16)
    longest = int(np.diff(preds.tree_first).max(initial=0)) + 1
    starts, stack, counted = (np.empty(length, np.int64) for length in (longest, longest, COUNTED))
    classify(preds, np.full(attributes, -1), starts, stack, counted, form, size, number_of, unsure, clause)

    # Number the conjunctions by form, size and falling score.
    rank, bound = form.astype(np.int64) << 32 | size, highest_scores(preds)
    order = np.lexsort((-bound, rank)) if len(bound) else np.argsort(rank, kind="stable")
    conj = order.astype(np.uint32)
    with_clauses = CLAUSES << 32
    ranks, part_first = np.unique(rank[conj], return_index=True)
    parts = np.append(part_first, len(conj))
    begin = int(np.searchsorted(rank[conj], with_clauses))
    first_part = int(np.searchsorted(ranks, with_clauses))
    # Write the start values of the clauses' counters.
    clause_first = ranges_of(number_of[conj[begin:]])
    clause_true = np.empty(int(clause_first[-1]), np.int32)
    write_starts(preds, conj, begin, clause, clause_first, clause_true)

    # Count the entries of each list.
    domains = _domains(preds, codes, top, settings.enumerate == "raw")
    lists, planes = domains.lists, 3 if begin < len(conj) else 1
    _afford(float(planes * lists), settings.enumerate, MOST_LISTS)
    at, last = np.zeros(planes * lists, np.int64), np.zeros(lists if planes > 1 else 1, np.uint32)
    numbering = Numbering(conj, begin, size, clause)
    no_entry, no_clause = np.empty(0, np.uint32), np.empty(0, np.uint16)
    no_weight = np.empty(0, np.float32)
    post(preds, numbering, domains, False, last, at, no_entry, no_clause, no_weight)
    # Write the entries.
    first = ranges_of(at)
    total = int(first[-1])
    _afford(float(total + planes * lists), settings.enumerate)
    entry = np.empty(total, np.uint32)
    entry_clause = np.empty(total - int(first[min(planes * lists, lists)]), np.uint16)
    at[:], last[:] = first[:-1], 0
    entry_weight = np.zeros(total, np.float32) if len(preds.weight) else no_weight
    post(preds, numbering, domains, True, last, at, entry, entry_clause, entry_weight)
    # Cut the lists into segments.
    segments = cut_segments(entry, first, parts, False, no_entry, no_entry, no_entry)
    list_first, segment_part = np.empty(planes * lists + 1, np.uint32), np.empty(segments, np.uint32)
    segment_first = np.empty(segments + 1, np.uint32)
    cut_segments(entry, first, parts, True, list_first, segment_part, segment_first)
    # Bound the scores of segments and parts.
    segment_weight, part_rest = (np.empty(n if len(preds.weight) else 0) for n in (segments, len(ranks)))
    weigh_segments(entry, entry_weight, segment_first, segment_weight)
    weigh_rests(preds, numbering, parts, part_rest)

    repeats = (preds.owner[1:] == preds.owner[:-1]).any()
    index = KIndex(
        level_first=domains.level_first, level_list=domains.level_list,
        raw=domains.raw, raw_first=domains.raw_first, planes=np.array([planes, lists]),
        list_first=list_first, segment_part=segment_part, segment_first=segment_first, entry=entry, clause=entry_clause,
        part_size=(ranks & 0xFFFFFFFF).astype(np.uint32), with_clauses=np.array([first_part, begin]),
        clause_first=clause_first, clause_true=clause_true, unsure=unsure[conj[begin:]], conj=conj, multi=codes.multi,
        skipping=np.array([SKIPPING], np.uint8), repeats=np.array([repeats], np.uint8),
        bound=bound[conj] if len(bound) else bound, part_first=parts[: len(parts) if len(bound) else 0],
        segment_weight=segment_weight, part_rest=part_rest,
    )  # fmt: skip
    return index, preds


def _every_value(codes: Codes, top: I64) -> tuple[I64, I64]:
    """Makes ``raw`` and ``raw_first`` of ``KIndex``: a list for every value."""
    # Count the values of each code.
    width = np.ones(int(top.sum()), np.uint64)
    end = np.cumsum(top)
    inner = np.ones(len(codes.bound), bool)
    inner[codes.first[:-1][top > 1]] = False  # boundaries with another before them
    # Place in ``width`` of the code that ends at each boundary
    place = np.arange(len(codes.bound)) + np.repeat(np.arange(len(top)), top - 1)
    width[place[inner]] = np.diff(codes.bound.view(np.uint64), prepend=np.uint64(0))[inner]
    values = float(width.astype(np.float64).sum())
    if values > MOST_LISTS:
        raise OptionError(
            f"index('kindex', enumerate='raw'): the domains between the lowest and highest literals have {values:.3g} "
            f"values, and each would have a list, more than the {MOST_LISTS:,} that fit: raw enumeration needs small "
            "discrete domains; take enumerate='boundaries', which is the default"
        )
    # Number the lists of values, attribute by attribute.
    raw_first = codes.first + 2 * np.arange(len(top) + 1)
    raw = np.zeros(len(width) + len(top), np.int64)
    ends = np.cumsum(width.astype(np.int64))
    raw[np.arange(len(width)) + np.repeat(np.arange(len(top)), top) + 1] = ends
    raw[raw_first[1:-1]] = ends[end[:-1] - 1]
    return raw, raw_first


def _domains(preds: Predicates, codes: Codes, top: I64, by_value: bool) -> DomainLists:
    # Count the entries that ranges would take.
    attributes, none = len(top), np.empty(0, np.int64)
    raw, raw_first = _every_value(codes, top) if by_value else (none, none)
    spans, uses, whole = np.zeros(attributes), np.zeros(attributes, np.int64), np.zeros(attributes, np.bool_)
    measure(preds, top, raw, raw_first, spans, uses, whole)
    if len(raw):
        _afford(float(spans.sum()), "raw")
        level_list = np.stack([np.zeros(attributes, np.int64), raw[-1] + np.arange(attributes)], axis=1).ravel()
        lists = int(raw[-1]) + attributes + 1
        return DomainLists(
            top, np.zeros(attributes, np.uint8), 2 * np.arange(attributes + 1), level_list, raw, raw_first, lists
        )
    # Make the levels of trees, and a list of all values for flat attributes that need one.
    tree = spans > FLAT * uses
    bits = int(FANOUT_BITS)
    attribute, width = [np.arange(attributes)], [top]
    while len(attribute[-1]):
        more = tree[attribute[-1]] & (width[-1] > 1)
        attribute.append(attribute[-1][more])
        width.append(((width[-1][more] - 1) >> bits) + 1)
    attribute.append(np.flatnonzero(whole & ~tree & (top > 1)))
    width.append(np.ones(len(attribute[-1]), np.int64))
    # Order the levels by attribute.
    owner = np.concatenate(attribute)
    order = np.argsort(owner, kind="stable")
    level_list = ranges_of(np.concatenate(width)[order])
    level_first = np.searchsorted(owner[order], np.arange(attributes + 1))
    return DomainLists(top, tree.astype(np.uint8), level_first, level_list, raw, raw_first, int(level_list[-1]) + 1)


def _afford(entries: float, enumeration: str, most: int | None = None) -> None:
    most = MOST_ENTRIES if most is None else most
    if entries > most:
        raw = enumeration == "raw"
        advice = "take enumerate='boundaries', which is the default" if raw else "take another kind of index"
        raise OptionError(
            f"index('kindex', enumerate={enumeration!r}) would take {entries:,.0f} lists and entries, "
            f"more than the {most:,} that fit: {advice}"
        )


def scratch(index: KIndex, codes: Codes, rows: int, entries: int) -> KIndexScratch:
    planes, lists = (int(x) for x in index.planes)
    levels = np.diff(index.level_first)
    several = index.multi != 0
    # A row has at most one value of each attribute without several, and no list twice.
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
        opened=np.empty(most, np.uint64),
        value=np.empty(most),
        largest=np.empty(int(index.part_size.max(initial=0)) + 1),
    )


KIND = IndexKind(
    KIndexSettings, KIndex, build, scratch, match, lambda index: bool(index.repeats[0]), match_topk=match_topk
)
