"""PSTBloom: a conjunction is entered at the predicate spaces of its most selective predicate.

Source: Ji and Jacobsen, "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional
and Dense Workloads" (sections 4 and 5, algorithms 1 to 5). Deviations:

- Event counters come from a sample, taken when the index is built. Several threads read a version
  of an index, and it never changes, so matching cannot count. Without a sample the access predicate
  is the one with the smallest part of its domain; ``ranking="operators"`` ranks operators first, as
  the PS-Tree paper does.
- A predicate of more than ``leaves`` codes is not cut into spaces: it takes the cells of its
  attribute, at most 16 (``kernels/kinds/pstree/arrays.py``). A space for each end of each predicate
  makes lists of N^2 entries where values are many.
- Signatures are as long as their conjunctions need: four bits for each conjunction on average, and
  16 in signatures of cells. All together have at most 128 bytes for each conjunction of the index.
  There are none where they would be too full. They are replaced when conjunctions have become too
  many for them.
- If an attribute has few predicates, or several values in an event, only its presence is tested.
- Conjunctions are numbered by the start of their access predicates. So the candidates of a space
  are neighbours in memory, and so are their bits in a signature.
- Conjunctions that no attribute can place are verified for every event. These are negations, and
  programs that may accept without any one predicate.

CONJUNCTIONS counts the list entries that are read: the conjunctions with an access predicate that
holds. CANDIDATES counts the conjunctions that pass all signatures and are verified, PREDICATES the
predicates tested for this, NODES the spaces with lists.

With one length for both, signatures of cells were full from a cardinality of 1,000 on: a cell has
many more conjunctions than a space. Signatures are left out if more than three quarters of the bits
would be set. Building a million ``dense`` subscriptions at once takes 3.0 s, one by one 17 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.growing import extend_array
from colmatch.kernels.kinds.pstbloom import arrays as psb
from colmatch.kernels.kinds.pstbloom.arrays import PSTBloom, Scratch, UpdateScratch
from colmatch.kernels.kinds.pstbloom.build import choose_all, count_lists, fill_all
from colmatch.kernels.kinds.pstbloom.change import enter, remove
from colmatch.kernels.kinds.pstbloom.match import match
from colmatch.kernels.kinds.pstbloom.sign import sign_all
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.choose import BY_OPERATOR, DIMENSIONS, LEAVES, PLAN_WORDS, SIGNATURES
from colmatch.kernels.kinds.pstree.verify import BLOCK
from colmatch.kernels.layout import I64, Codes, Predicates
from colmatch.kinds.base import IndexKind, highest_codes, make_writable
from colmatch.kinds.pstrees import add_conjunctions, add_rows, add_spaces, empty_tables, order_conjunctions, trim_tables
from colmatch.kinds.settings import Settings, setting
from colmatch.kinds.statistics import Sample, window_of

BITS_EACH = 4  # bits of a space's signature for each conjunction that it is expected to have
# Bits of a cell's signature for each. Cells are few: with 16 bits they turn away a third more than
# with 4, for 26 bytes a subscription (``asv_benchmarks/signatures.py``, cardinality 1,000).
CELL_BITS_EACH = 16
LINE = 8  # words of a line of the cache
BYTES_EACH = 128  # of all signatures, for each conjunction
COMMON = 32  # predicates of an attribute: with fewer, spaces that only signatures need do not pay
FULLEST = 0.75  # share of bits set, as expected; fuller signatures turn hardly any conjunction away


@dataclass(frozen=True, slots=True, repr=False)
class PSTBloomSettings(Settings):
    """Settings of PSTBloom: access predicates, signatures, construction and the budget."""

    kind = "pstbloom"
    by_predicate = True
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
    plan[SIGNATURES] = COMMON if settings.signatures else 0
    return plan


def build(preds: Predicates, codes: Codes, sample: Sample | None, settings: Any) -> tuple[PSTBloom, Predicates]:
    count = len(preds.owner)
    index = _empty(_plan(settings), codes, window_of(sample, codes))
    index = add_conjunctions(index, preds, codes, 0, count)
    index, preds, work = order_conjunctions(index, preds, codes, _work(preds, 0, count), choose_all)
    if settings.construction == "bulk":
        index = _build_all(index, preds, codes, work)
    else:
        index = _sign_conjunctions(_enter_each(index, preds, codes, work, count), preds)
    return (index if len(codes.label) else _make_room(trim_tables(index, codes))), preds


def _build_all(index: PSTBloom, preds: Predicates, codes: Codes, work: UpdateScratch) -> PSTBloom:
    """Enters all conjunctions at once; ``probe`` says how each predicate is tested."""
    index, row = add_spaces(index, preds, codes)
    covers, lists = (np.zeros(int(index.state[ps.SPACES]) + 1, np.int64) for _ in range(2))
    index.state[ps.ENTRIES] = entries = count_lists(index, preds, codes, row, covers, lists)
    index = _clear_signatures(index._replace(entry=np.empty((entries, 3), np.uint32)))
    fill_all(index, preds, codes, work.next, row)
    return index


def _empty(plan: I64, codes: Codes, window: dict[str, Any]) -> PSTBloom:
    tables = empty_tables(highest_codes(codes).astype(np.uint64), 1)
    tables.state[ps.SPACES] = ps.RESERVED
    tables.state[[psb.WORDS, psb.STRIDE]] = 1
    sign = np.array([0, 2**64 - 1], np.uint64)
    index = PSTBloom(
        **tables._asdict(), entry=np.zeros((16, 3), np.uint32), sign=sign,
        probe=np.empty(0, np.uint32), at=np.empty(0, np.uint8), plan=plan, multi=codes.multi.copy(),
        common=np.zeros(len(codes.multi), np.uint32), **window,
    )  # fmt: skip
    index.state[psb.FIRST_CELL] = len(sign)
    return index


def _work(preds: Predicates, begin: int, end: int) -> UpdateScratch:
    left = np.zeros(psb.LEFT_WORDS, np.int64)
    left[psb.GOES_NEXT] = begin
    longest = int(np.diff(preds.first[begin : end + 1]).max(initial=0))
    return UpdateScratch(left, np.empty(longest), np.empty((end, 2), np.uint32))


def _enter_each(index: PSTBloom, preds: Predicates, codes: Codes, work: UpdateScratch, end: int) -> PSTBloom:
    """Enters the conjunctions up to ``end``, one by one."""
    left = work.left
    index = _make_room(index)
    while left[psb.GOES_NEXT] < end:
        stop = min(2 * int(left[psb.GOES_NEXT]) + 64, end)
        while not enter(index, preds, codes, work, stop):
            index = add_rows(index, int(left[psb.NEED_INNERS]), int(left[psb.NEED_CUTS]), int(left[psb.NEED_SPACES]))
            used = int(index.state[ps.ENTRIES])
            index = _make_room(
                index._replace(entry=extend_array(index.entry, used, used + int(left[psb.NEED_ENTRIES])))
            )
        if _is_crowded(index):
            index = _sign_conjunctions(index, preds)
    return index


def _make_room(index: PSTBloom) -> PSTBloom:
    """Returns an index with room for the signatures of all rows of spaces, and of all cells."""
    state = index.state
    first = psb.SPACES_FROM + len(index.space) * int(state[psb.STRIDE])
    size = first + len(index.tree) * ps.FANOUT * int(state[psb.CELL_STRIDE])
    if state[psb.FIRST_CELL] == first and size <= len(index.sign):
        return index
    sign, old_first = np.zeros(size, np.uint64), int(state[psb.FIRST_CELL])
    spaces, cells = index.sign[:old_first][:first], index.sign[old_first:][: size - first]
    sign[: len(spaces)], sign[first : first + len(cells)] = spaces, cells
    state[psb.FIRST_CELL] = first
    return index._replace(sign=sign)


def _signatures(index: PSTBloom) -> tuple[tuple[int, int], tuple[int, int]]:
    """Counts conjunctions in signatures, and signatures: of spaces, then of cells.

    A conjunction counts once for each signature that it is in.
    """
    state = index.state
    cells = ps.FANOUT * int(np.count_nonzero(index.tree[:, ps.CELLS] != ps.NONE))
    return (int(state[psb.SIGNED]), int(state[ps.SPACES]) - cells), (int(state[psb.CELL_SIGNED]), cells)


def _is_crowded(index: PSTBloom) -> bool:
    """Checks for signatures that could be longer and have more than one conjunction for a bit."""
    now = index.state[[psb.WORDS, psb.CELL_WORDS]].tolist()
    crowded = [
        signed > 64 * words * max(rows, 1) for (signed, rows), words in zip(_signatures(index), now, strict=True)
    ]
    return any(crowded) and any(map(int.__gt__, _words(index), now))


def _words(index: PSTBloom) -> tuple[int, int]:
    """Returns the best numbers of words in a signature of a space, and of a cell."""
    spaces, cells = _signatures(index)
    room = BYTES_EACH * len(index.at) // 8
    of_cells = _length(CELL_BITS_EACH, *cells, room // (ps.FANOUT * max(len(index.tree), 1)))
    return _length(BITS_EACH, *spaces, max((room - of_cells * cells[1]) // max(spaces[1], 1), 1)), of_cells


def _length(bits: int, signed: int, rows: int, most: int) -> int:
    """Returns the best number of words in each of so many signatures, ``most`` at most.

    The result is 0 where that is too few, or where no conjunction is in any of them.
    """
    if most < 1 or not signed:
        return 0
    each = signed / max(rows, 1)
    words = 1 << (min(most, max(int(bits * each) // 64, 1)).bit_length() - 1)
    return words if 1 - np.exp(-each / (64 * words)) <= FULLEST else 0


def _sign_conjunctions(index: PSTBloom, preds: Predicates) -> PSTBloom:
    """Returns an index with signatures of the best length."""
    index = _clear_signatures(index)
    sign_all(index, preds)
    return index


def _clear_signatures(index: PSTBloom) -> PSTBloom:
    """Returns an index with empty signatures of the best length."""
    state = index.state
    state[psb.WORDS], state[psb.CELL_WORDS] = words = _words(index)
    state[psb.STRIDE], state[psb.CELL_STRIDE] = (each + LINE if each >= LINE else each for each in words)
    state[psb.FIRST_CELL] = 0
    return _make_room(index._replace(sign=np.empty(0, np.uint64)))


def insert(index: PSTBloom, preds: Predicates, codes: Codes, begin: int, end: int) -> PSTBloom:
    index = add_conjunctions(make_writable(index), preds, codes, begin, end)
    return _enter_each(index, preds, codes, _work(preds, begin, end), end)


def delete(index: PSTBloom, preds: Predicates, codes: Codes, conjunctions: I64) -> PSTBloom:
    index = make_writable(index)
    remove(index, preds, contiguous(conjunctions))
    return index


def scratch(index: PSTBloom, codes: Codes, rows: int, entries: int) -> Scratch:
    attributes = max(len(codes.multi), 1)
    return Scratch(
        np.zeros(attributes, np.uint32),
        np.zeros(4 * attributes, np.uint64),
        np.zeros(4, np.uint64),
        np.empty((entries, ps.WALK_WORDS), np.uint32),
        np.empty(2 * entries + 1, np.uint32),
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
    )


KIND = IndexKind(
    PSTBloomSettings, PSTBloom, build, scratch, match, lambda index: bool(index.state[ps.SEVERAL]), insert, delete,
    grows_by_sample=lambda requested: True,
)  # fmt: skip
