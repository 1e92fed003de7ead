"""Scores: the relevance of a subscription to an event.

The score of a true condition combines the scores of its predicates. An AND adds up its parts, and
an OR takes the best of its true parts. A condition without a weight weighs 0. If attributes are
ranges (``kernels/meets.py``), the score is the best that any value of each range gives.

Source: Sadoghi and Jacobsen, "Relevance Matters: Capitalizing on Less Top-k Matching in
Publish/Subscribe" (III.C): the sum of products of a predicate's weight and the event's weight of
its attribute.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.layout import (
    ADDED,
    ATTR_MASK,
    DOT,
    F64,
    I64,
    LARGEST,
    LOWEST,
    MAX,
    PRIORITY,
    SUM,
    U8,
    U32,
    EventWeights,
    Predicates,
    Rows,
    Top,
    Written,
)
from colmatch.kernels.meets import (
    Meeting,
    begin_points,
    clear_ends,
    end_points,
    flagged_meets,
    next_points,
    plain_meets,
    spread_ends,
)
from colmatch.kernels.predicates import Event, clear, conditions_of, conjunction_holds, spread
from colmatch.kernels.ranges import begin_ranges, rewind_ranges
from colmatch.kernels.topk import AGAIN, BASE, SCORING, offer

PAIRS_AHEAD = 16  # scores are prefetched this many pairs ahead


class ScoreScratch(NamedTuple):
    """Working memory for scores, with A attributes."""

    table: U32  # (A) zero between rows
    weight_of: F64  # (A) 1 between rows
    stack: F64  # (T) as long as the longest tree of a program


@device
def weigh_row(first, attr, value, row, table):
    """Enters the weights that a row gives to attributes. The table (A) float64 has 1 elsewhere."""
    if len(first) > 0:
        for e in range(first[row], first[row + 1]):
            table[attr[e]] = value[e]


@device
def unweigh_row(first, attr, row, table):
    """Removes the weights of a row from the table."""
    if len(first) > 0:
        for e in range(first[row], first[row + 1]):
            table[attr[e]] = 1.0


@device
def predicate_score(preds, p, scoring, weight_of):
    """Returns the score of a true predicate. There must be weights."""
    if scoring == SUM:
        return preds.weight[p, ADDED]
    own = preds.weight[p, ADDED if scoring == DOT else LARGEST]
    return own if own == LOWEST else own * weight_of[preds.pred[p, 0] & ATTR_MASK]


@device
def plain_score(preds, c, scoring, weight_of):
    """Returns the score of a true conjunction that is no program. There must be weights."""
    begin, end = preds.first[c], preds.first[c + 1]
    total = -np.inf if scoring == MAX and begin < end else 0.0
    for p in range(begin, end):
        one = predicate_score(preds, p, scoring, weight_of)
        total = max(total, one) if scoring == MAX else total + one
    return total


@device
def program_score(preds, c, scoring, weight_of, event, high, stack):
    """Returns the score of a program for one row, -inf if it is false.

    The scores of the tree's leaves are combined up to its root.

    weight_of : (A) float64, the weights that the row gives to attributes
    high : (A), table of the upper ends; the event's own where no attribute is a range
    stack : float64, as long as the longest tree
    """
    conds, first, tree = conditions_of(preds), preds.first[c], preds.tree
    height = np.int64(0)
    for t in range(preds.tree_first[c], preds.tree_first[c + 1]):
        token = np.int64(tree[t])
        # Push the score of a leaf
        if token >= 0:
            holds = flagged_meets(conds, first + token, event, high)
            stack[height] = predicate_score(preds, first + token, scoring, weight_of) if holds else -np.inf
            height += 1
            continue
        # Replace the parts of a group by its score
        either, parts = token & 1, -token >> 1
        height -= parts
        total = stack[height]
        for i in range(height + 1, height + parts):
            one = stack[i]
            if either:
                total = max(total, one)
            elif total == -np.inf or one == -np.inf:
                total = -np.inf
            else:
                total = max(total, one) if scoring == MAX else total + one
        stack[height] = total
        height += 1
    return stack[0]


@device
def _score_if_true(preds, c, scoring, weight_of, event, stack):
    """Returns the score of any conjunction for one row, -inf if it is false."""
    if len(preds.jump_first) > 0 and preds.jump_first[c] >= 0:
        return program_score(preds, c, scoring, weight_of, event, event.table, stack)
    holds, _ = conjunction_holds(conditions_of(preds), c, event)
    return plain_score(preds, c, scoring, weight_of) if holds else -np.inf


@device
def _score_if_met(preds, c, scoring, weight_of, event, meeting, stack):
    """Returns the best score of any conjunction for a row of ranges, -inf if no value makes it
    true.

    More true leaves never make a score worse. So the points where a leaf begins to be true are
    enough.
    """
    conds, high = conditions_of(preds), meeting.high
    if len(preds.jump_first) == 0 or preds.jump_first[c] < 0:
        meets, _ = plain_meets(conds, c, event, high)
        return plain_score(preds, c, scoring, weight_of) if meets else -np.inf
    n = begin_points(conds, c, meeting)
    best = program_score(preds, c, scoring, weight_of, event, high, stack)
    while next_points(conds, c, n, meeting):
        best = max(best, program_score(preds, c, scoring, weight_of, event, high, stack))
    end_points(n, meeting)
    return best


@device
def static_score(priority, c):
    """Returns the score of a conjunction that no event changes."""
    return priority[c] if len(priority) > 0 else 0.0


@device
def is_static(weight, scoring):
    """Returns whether ``static_score`` gives all scores: weights are missing, or do not count."""
    return scoring == PRIORITY or len(weight) == 0


@kernel
def group_conjunctions(owner: U32, conj_first: Written[I64], conj: Written[I64]) -> None:
    """Lists the conjunctions of each subscription, in their order.

    owner : (C) uint32, conjunction -> subscription
    conj_first, conj : (S + 1), (C) int64, written
    """
    conj_first[:] = 0
    for c in range(len(owner)):
        conj_first[owner[c] + 1] += 1
    begin_ranges(conj_first, len(conj_first) - 1)
    for c in range(len(owner)):
        s = owner[c]
        conj[conj_first[s]] = c
        conj_first[s] += 1
    rewind_ranges(conj_first, len(conj_first) - 1)


@kernel
def score_each(preds: Predicates, scoring: int, table: Written[F64], known: Written[F64], seen: Written[U8]) -> None:
    """Writes the score that each subscription has for every event that gives no weights.

    The score is NaN where it depends on the parts that are true: for programs and several
    conjunctions. A priority never does.

    table : (A) float64, ones
    known : (S) float64, NaN on entry
    seen : (S) uint8, zeros on entry
    """
    weight, programs = preds.weight, len(preds.jump_first) > 0
    for c in range(len(preds.owner)):
        s = preds.owner[c]
        if is_static(weight, scoring):
            known[s] = static_score(preds.priority, c) if scoring == PRIORITY else 0.0
        elif seen[s] or (programs and preds.jump_first[c] >= 0):
            known[s] = np.nan
        else:
            known[s] = plain_score(preds, c, scoring, table)
        seen[s] = 1


@kernel
def offer_known(known: F64, place: Written[I64], sub: Written[U32], start: int, top: Written[Top]) -> int:
    """Offers pairs with known scores to the best of their rows. Returns the number of other pairs.

    known : (S) float64, see ``score_each``
    place : (n + 1) int64, row from ``start`` on -> its range in ``sub``
    sub : uint32, numbers of subscriptions
    """
    base, again, left = top.state[BASE], top.state[AGAIN] != 0, 0
    best, number, fill, id, offset, data = top.score, top.number, top.fill, top.id, top.offset, top.data
    most, last = best.shape[1], np.int64(len(sub) - 1)
    for row in range(start, start + len(place) - 1):
        for i in range(place[row - start], place[row - start + 1]):
            ask_for(known, np.uint64(np.int64(sub[min(i + PAIRS_AHEAD, last)]) - base))
            s = sub[i]
            score = known[np.int64(s) - base]
            if np.isnan(score):
                left += 1
            elif fill[row] < most or score >= best[row, 0]:
                offer(best, number, fill, row, score, s, again, id, offset, data)
    return left


@kernel
def offer_pairs(
    preds: Predicates,
    multi: U8,
    conj_first: I64,
    conj: I64,
    known: F64,
    rows: Written[Rows],
    upper: Written[U32],
    meeting: Written[Meeting],
    place: Written[I64],
    sub: Written[U32],
    start: int,
    weights: EventWeights,
    scratch: Written[ScoreScratch],
    top: Written[Top],
) -> None:
    """Scores pairs that were found, and offers them to the best of their rows.

    It leaves out the pairs that ``offer_known`` offers.

    Parameters
    ----------
    multi : (A) uint8, as in ``layout.Codes``
    conj_first, conj : (S + 1), (C) int64, subscription -> its conjunctions
    known : (S) float64, scores that no event changes, see ``score_each``; or (0)
    rows : ``layout.Rows``, of the lower ends where attributes are ranges
    upper : codes of the upper ends in the order of ``rows``; empty where no attribute is a range
    meeting : working memory for ranges; empty where no attribute is a range
    place : (n + 1) int64, row from ``start`` on -> its range in ``sub``
    sub : uint32, numbers of subscriptions
    weights : ``layout.EventWeights``
    scratch : ``ScoreScratch``
    top : ``layout.Top``
    """
    base, scoring, again = top.state[BASE], top.state[SCORING], top.state[AGAIN] != 0
    jump_first, row_first = preds.jump_first, rows.first
    weight_first, weight_attr, weight_value = weights.first, weights.attr, weights.value
    table, weight_of, stack = scratch.table, scratch.weight_of, scratch.stack
    best, number, fill, id, offset, data = top.score, top.number, top.fill, top.id, top.offset, top.data
    has_scores, ranged = len(known) > 0, len(upper) > 0
    high = Rows(row_first, rows.attr, upper)
    for row in range(start, start + len(place) - 1):
        # Enter the weights of a row that has pairs
        if place[row - start] == place[row - start + 1]:
            continue
        event, there = Event(rows.attr, rows.code, row_first[row], row_first[row + 1], table), False
        weigh_row(weight_first, weight_attr, weight_value, row, weight_of)
        for i in range(place[row - start], place[row - start + 1]):
            # Skip subscriptions with known scores
            s = np.int64(sub[i]) - base
            if has_scores and not np.isnan(known[s]):
                continue
            # Score a plain conjunction without its event, else take the best conjunction
            c, c_end = conj_first[s], conj_first[s + 1]
            if c_end == c + 1 and (len(jump_first) == 0 or jump_first[conj[c]] < 0):
                score = plain_score(preds, conj[c], scoring, weight_of)
            else:
                if not there and ranged:
                    event = spread_ends(rows, high, row, multi, meeting)
                elif not there:
                    event = spread(rows, row, multi, table)
                there = True
                score = -np.inf
                for j in range(c, c_end):
                    if ranged:
                        one = _score_if_met(preds, conj[j], scoring, weight_of, event, meeting, stack)
                    else:
                        one = _score_if_true(preds, conj[j], scoring, weight_of, event, stack)
                    score = max(score, one)
            offer(best, number, fill, row, score, sub[i], again, id, offset, data)
        # Clear the tables
        if there and ranged:
            clear_ends(event, meeting)
        elif there:
            clear(event)
        unweigh_row(weight_first, weight_attr, row, weight_of)
