"""The contract of an index kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.kernels.bounds import bound_scores
from colmatch.kernels.layout import DOT, F64, I64, LABEL_TOP, MAX, PRIORITY, Codes, Predicates
from colmatch.kernels.predicates import count_uses
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import WINDOW, Sample

Index = TypeVar("Index", bound=Any)  # the arrays of a kind, ``WINDOW`` among them


class Strata(NamedTuple):
    """S strata of an index: the conjunctions of one can score higher than those of the next."""

    best: F64  # (S, 4) the highest score of each by ``layout.DOT`` and so on, if no event gives weights
    expected: F64  # (S) matches that an event is expected to have in each
    part: Callable[[int, int], Any]  # begin, end -> the arrays of the strata ``begin:end`` alone


@dataclass(frozen=True, slots=True)
class IndexKind:
    """A kind of index: the file ``kinds/<kind>.py``, with its kernels in ``kernels/kinds/``.

    Attributes
    ----------
    settings : dataclass of the kind's settings; names and describes the kind
    arrays : NamedTuple of numpy arrays, which the kernel reads, and which are saved and
        memory-mapped
    build : predicates, codes, sample, settings -> arrays, and the predicates, with conjunctions
        that it may have reordered
    arrange, build_arranged : the two steps of ``build`` in a kind that reorders. First: predicates
        in any order, codes, sample, settings -> an order of them, and the arrangement. Second:
        predicates in this order, codes, arrangement -> arrays. In between, the predicates can be
        made again
    scratch : arrays, codes, rows, entries -> working memory of one thread, for batches of up to so
        many rows and entries
    match : the kernel: ``match(index, predicates, rows, start, stop, scratch, sink, counters) ->
        first row not finished``
    repeats : arrays -> whether the kernel may write a pair more than once
    insert : arrays, predicates, codes, begin, end -> arrays with the conjunctions ``begin:end`` of
        the predicates, which come after all that were entered before. Writable arrays with room may
        be written, all others are replaced by copies. Predicates may name new attributes: the
        arrays must then accept events with these
    delete : arrays, predicates, codes, conjunctions (int64) -> arrays without them; the predicates
        still have them. Writable arrays may be written

    match_topk : a kernel that offers the subscriptions that can be among the best of their rows. It
        leaves out those that ``least_score`` of ``kernels/topk.py`` rules out: ``match_topk(index,
        predicates, rows, start, stop, scratch, weights, scores, top, counters)``, with
        ``EventWeights``, ``ScoreScratch`` and ``Top``. Without it, all matches of ``match`` are
        scored and offered
    strata : arrays -> their strata, for callers that want only the best matches. The kernel and its
        working memory take the arrays of some strata as they take all

    match_ranges : as ``match``, for events with ranges as values: ``match_ranges(index, predicates,
        low, high, start, stop, scratch, meeting, sink, counters)``, with the rows of the lower and
        of the upper ends and a ``Meeting`` (``kernels/meets.py``). Without it, every conjunction is
        checked

    grows_by_sample : settings -> whether the kind uses estimates. Its growing segments then get a
        sample with hits by key, and are rebuilt when they have grown by half

    in_pages : settings -> whether the matcher lives in a file of pages (``colmatch/paged/``)

    sound : arrays, predicates, codes, subscriptions -> the checked arrays of an untrusted file.
        Kernels that match with them read only within them, and terminate. Arrays that are quickly
        made may be replaced by new ones. Raises ``UnsoundError`` (``kinds/sound.py``). Without
        ``sound``, the index of a kind is rebuilt

    A kind with ``insert`` and ``delete`` also indexes its growing segments, which are built on
    labels instead of codes (``kernels/layout.py``).
    """

    settings: type[Settings]
    arrays: type
    build: Callable[[Predicates, Codes, Sample | None, Any], tuple[Any, Predicates]]
    scratch: Callable[[Any, Codes, int, int], Any]
    match: Callable[..., int]
    repeats: Callable[[Any], bool] = lambda arrays: False
    insert: Callable[[Any, Predicates, Codes, int, int], Any] | None = None
    delete: Callable[[Any, Predicates, Codes, I64], Any] | None = None
    arrange: Callable[[Predicates, Codes, Sample | None, Any], tuple[NDArray[Any], Any]] | None = None
    build_arranged: Callable[[Predicates, Codes, Any], Any] | None = None
    match_topk: Callable[..., None] | None = None
    match_ranges: Callable[..., int] | None = None
    strata: Callable[[Any], Strata] | None = None
    grows_by_sample: Callable[[Any], bool] = lambda settings: False
    in_pages: Callable[[Any], bool] = lambda settings: False
    sound: Callable[[Any, Predicates, Codes, int], Any] | None = None

    @property
    def name(self) -> str:
        """Name of the kind, also in saved matchers."""
        return self.settings.kind


class Built(NamedTuple):
    """An index: its kind, the settings of its build, and its arrays."""

    kind: IndexKind
    settings: Settings
    arrays: Any


def make_writable(index: Index) -> Index:
    """Returns an index that can be changed: read-only arrays are copied, except ``WINDOW``."""
    changed = {name: array.copy() for name, array in index._asdict().items() if not array.flags.writeable}
    kept = {name: contiguous(getattr(index, name)) for name in WINDOW}
    return index._replace(**changed | kept)  # type: ignore[no-any-return]


def uses_of(preds: Predicates, attributes: int) -> I64:
    """Counts the predicates on each of the first ``attributes`` attributes: (A)."""
    uses = np.zeros(attributes, np.int64)
    count_uses(contiguous(preds.pred), uses)
    return uses


def highest_codes(codes: Codes) -> I64:
    """Returns the highest code, or label, that a value of each attribute can have: (A).

    A range that goes up to it has no upper end.
    """
    if len(codes.label):
        return np.full(len(codes.multi), LABEL_TOP)
    return np.diff(codes.first) + 1


def bounds_of(preds: Predicates) -> F64:
    """Returns the highest possible score of each conjunction if no event gives weights.

    (C, 4) by ``layout.DOT`` and so on
    """
    most = np.empty((len(preds.owner), 4))
    bound_scores(preds, np.empty(int(np.diff(preds.tree_first).max(initial=0))), most)
    return most


def highest_scores(preds: Predicates) -> F64:
    """Returns one upper bound of each conjunction for any kind of score, at least 0.

    (C), of weights, or of priorities where there are no weights; (0) where there is neither
    """
    if not len(preds.weight) and not len(preds.priority):
        return np.empty(0)
    most = bounds_of(preds)
    highest: F64 = np.maximum(most[:, DOT], most[:, MAX]) if len(preds.weight) else most[:, PRIORITY]
    return np.maximum(highest, 0.0)
