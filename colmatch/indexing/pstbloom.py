"""PSTBloom: a conjunction hangs at the predicate spaces of its most selective predicate.

Source: Ji and Jacobsen, "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional
and Dense Workloads" (sections 4 and 5, algorithms 1 to 5). Deviations:

- Event counters are those of a sample, taken when the index is built. A version of an index is read
  by several threads and never changes, so matching cannot count. Without a sample the access
  predicate is the one that has the smallest part of its domain; ``ranking="operators"`` ranks
  operators first, as the document does.
- A predicate of more than ``leaves`` codes is not cut into spaces: it takes the cells of its
  attribute, at most 16 (``kernels/pstree/arrays.py``). A space for each end of each predicate makes
  lists of N^2 entries where values are many.
- Signatures have as many bits as their conjunctions need, four for each on average, as far as 128
  bytes for each conjunction of the index go. They are made anew when there are more.
- Of an attribute that may have several values only its presence is tested.
- Conjunctions are numbered by where their access predicates begin, so the candidates of a space
  stand side by side in memory, and so do their bits in a signature.
- What no attribute can place (negations, programs that may accept without any one predicate) is
  verified for every event.

CONJUNCTIONS counts the entries of lists that are read, which are the conjunctions whose access
predicate holds; CANDIDATES those that all signatures let through, and that are verified; PREDICATES
what that takes, NODES the spaces with lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from colmatch.arrays.growing import extended
from colmatch.indexing.base import IndexKind, highest_codes
from colmatch.indexing.pstrees import (
    NONE_SEEN,
    empty_tables,
    ordered,
    seen_by,
    trimmed,
    with_conjunctions,
    with_rows,
    with_spaces,
    writable,
)
from colmatch.indexing.settings import Settings, setting
from colmatch.indexing.statistics import Sample, Statistics
from colmatch.kernels.layout import I64, Codes, Predicates
from colmatch.kernels.pstbloom.arrays import (
    GOES_NEXT,
    LEFT_WORDS,
    NEED_CUTS,
    NEED_ENTRIES,
    NEED_INNERS,
    NEED_SPACES,
    SIGNED,
    STRIDE,
    WORDS,
    PSTBloom,
    Scratch,
    Work,
)
from colmatch.kernels.pstbloom.build import (
    count_lists,
    fill_all,
)
from colmatch.kernels.pstbloom.change import enter, remove
from colmatch.kernels.pstbloom.match import match
from colmatch.kernels.pstbloom.sign import sign_all
from colmatch.kernels.pstree.arrays import CUTS, ENTRIES, EVERYWHERE, INNERS, RESERVED, SEVERAL, SPACES, WALK_WORDS
from colmatch.kernels.pstree.choose import BY_OPERATOR, DIMENSIONS, LEAVES, PLAN_WORDS, SIGNATURES
from colmatch.kernels.pstree.verify import BLOCK

BITS_EACH = 4  # bits of a signature for each conjunction that it is thought to have
LINE = 8  # words of a line of the cache
BYTES_EACH = 128  # of all signatures, for each conjunction


@dataclass(frozen=True, slots=True, repr=False)
class PSTBloomSettings(Settings):
    """How PSTBloom finds candidates, and what it tests before it verifies them."""

    kind = "pstbloom"
    about = "PSTBloom: at the predicate spaces of the most selective predicate, signatures for the others"

    leaves: int = setting(
        128, "codes that a predicate may have to be given predicate spaces, and not cells", range(1, 100_001)
    )
    ranking: str = setting(
        "share",
        "what makes a predicate selective where there is no sample: its part of the domain, or its operator first",
        ("share", "operators"),
    )
    signatures: bool = setting(True, "test signatures before verifying", (True, False))
    construction: str = setting("bulk", "all at once, or one by one", ("bulk", "dynamic"))


def _plan(settings: PSTBloomSettings) -> I64:
    plan = np.zeros(PLAN_WORDS, np.int64)
    plan[LEAVES] = settings.leaves
    plan[BY_OPERATOR] = settings.ranking == "operators"
    plan[DIMENSIONS] = 1
    plan[SIGNATURES] = settings.signatures
    return plan


def build(preds: Predicates, codes: Codes, sample: Sample | None, settings: Any) -> tuple[PSTBloom, Predicates]:
    count = len(preds.owner)
    plan, seen = _plan(settings), seen_by(sample)
    index = with_conjunctions(_empty(plan, codes), preds, codes, 0, count)
    work = _work(preds, 0, count, seen)
    index, preds, work = ordered(index, preds, codes, work)
    if settings.construction == "bulk":
        index = _built(index, preds, codes, work)
    else:
        index = _entered(index, preds, codes, work, count)
        index = _signed(index, preds, _words(index))
    return (index if len(codes.label) else _trimmed(index)), preds


def _built(index: PSTBloom, preds: Predicates, codes: Codes, work: Work) -> PSTBloom:
    """Enters all conjunctions at once, of which ``probe`` says how each predicate is tested."""
    index, row = with_spaces(index, preds, codes)
    covers, lists = (np.zeros(int(index.state[SPACES]) + 1, np.int64) for _ in range(2))
    index.state[ENTRIES] = entries = count_lists(index, preds, codes, row, covers, lists)
    index = _without_signatures(index._replace(entry=np.empty((entries, 3), np.uint32)), _words(index))
    fill_all(index, preds, codes, work.next, row)
    return index


def _empty(plan: I64, codes: Codes) -> PSTBloom:
    tables = empty_tables(highest_codes(codes).astype(np.uint64), 1)
    tables.state[SPACES], tables.state[WORDS], tables.state[STRIDE] = RESERVED, 1, 1
    sign = np.zeros(len(tables.space), np.uint64)
    sign[EVERYWHERE] = 2**64 - 1
    return PSTBloom(
        **tables._asdict(), entry=np.zeros((16, 3), np.uint32), sign=sign,
        probe=np.empty(0, np.uint32), at=np.empty(0, np.uint8), plan=plan, multi=codes.multi.copy(),
    )  # fmt: skip


def _work(preds: Predicates, begin: int, end: int, seen: I64) -> Work:
    left = np.zeros(LEFT_WORDS, np.int64)
    left[GOES_NEXT] = begin
    longest = int(np.diff(preds.first[begin : end + 1]).max(initial=0))
    return Work(left, np.empty(longest), np.empty((end, 2), np.uint32), seen)


def _entered(index: PSTBloom, preds: Predicates, codes: Codes, work: Work, end: int) -> PSTBloom:
    """With conjunctions up to ``end``, entered one by one."""
    left = work.left
    while left[GOES_NEXT] < end:
        stop = min(2 * int(left[GOES_NEXT]) + 64, end)
        while not enter(index, preds, codes, work, stop):
            index = with_rows(index, int(left[NEED_INNERS]), int(left[NEED_CUTS]), int(left[NEED_SPACES]))
            used = int(index.state[ENTRIES])
            index = index._replace(
                entry=extended(index.entry, used, used + int(left[NEED_ENTRIES])),
                sign=_as_long(index.sign, len(index.space) * int(index.state[STRIDE])),
            )
        if index.state[SIGNED] > 64 * index.state[WORDS] * index.state[SPACES]:  # more than one of a bit
            words = _words(index)
            if words > index.state[WORDS]:
                index = _signed(index, preds, words)
    return index


def _as_long(sign: Any, size: int) -> Any:
    return sign if len(sign) >= size else np.append(sign, np.zeros(size - len(sign), np.uint64))


def _words(index: PSTBloom) -> int:
    """Words of a signature, for what the index has."""
    spaces, signed = int(index.state[SPACES]), int(index.state[SIGNED])
    most = max(BYTES_EACH * len(index.at) // (8 * spaces), 1)
    needed = max(BITS_EACH * signed // (64 * spaces), 1)
    return 1 << (min(most, needed).bit_length() - 1)


def _signed(index: PSTBloom, preds: Predicates, words: int) -> PSTBloom:
    """With signatures of so many words."""
    index = _without_signatures(index, words)
    sign_all(index, preds)
    return index


def _without_signatures(index: PSTBloom, words: int) -> PSTBloom:
    """With room for signatures of so many words."""
    index.state[WORDS], index.state[STRIDE] = words, words + LINE if words >= LINE else words
    return index._replace(sign=np.zeros(len(index.space) * int(index.state[STRIDE]), np.uint64))


def _trimmed(index: PSTBloom) -> PSTBloom:
    state = index.state
    used = {"inner": INNERS, "cut": CUTS, "key": CUTS, "space": SPACES, "entry": ENTRIES}
    return trimmed(
        index, **{name: int(state[at]) for name, at in used.items()}, sign=int(state[SPACES] * state[STRIDE])
    )


def insert(index: PSTBloom, preds: Predicates, codes: Codes, begin: int, end: int) -> PSTBloom:
    index = with_conjunctions(writable(index), preds, codes, begin, end)
    return _entered(index, preds, codes, _work(preds, begin, end, NONE_SEEN), end)


def delete(index: PSTBloom, preds: Predicates, codes: Codes, conjunctions: I64) -> PSTBloom:
    index = writable(index)
    remove(index, preds, conjunctions)
    return index


def scratch(index: PSTBloom, codes: Codes, rows: int, entries: int) -> Scratch:
    attributes = max(len(codes.multi), 1)
    return Scratch(
        np.zeros(attributes, np.uint32),
        np.zeros(4 * attributes, np.uint64),
        np.empty((entries, WALK_WORDS), np.uint32),
        np.empty(2 * entries + 1, np.uint32),
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
    )


def repeats(index: PSTBloom) -> bool:
    return bool(index.state[SEVERAL])


def cost(statistics: Statistics) -> float:
    """Estimates the lists of events of 30 values, by the share of attributes that these have.

    Fitted to ``dense`` at 10,000 to a million subscriptions, and to 30,000 over 1,000 attributes or
    more (``asv_benchmarks/documents.py subscriptions attributes``).
    """
    share = min(30 / max(statistics.attributes, 1), 1.0)
    return 13_000.0 + 0.88 * share * statistics.conjunctions + 200 * statistics.programs


KIND = IndexKind(PSTBloomSettings, PSTBloom, build, scratch, match, cost, repeats, insert, delete)
