"""The best subscriptions of a row: lists are read as in ``match``, by bounds of scores.

Source: Whang et al., "Indexing Boolean Expressions", as the BE*-Tree paper has it (section VII).
The bound of a list is the largest weight of its entries, times the event's weight of its attribute.
A part is passed over if the sum of its K largest bounds is below the k-th best score. If the K
lists in front have a sum below it, no conjunction in these lists alone can be among the best. So
they skip to the conjunction of the next list.

Beyond that, the conjunctions of a part are numbered by their own bounds, the highest first. A row
is done with a part at the first number with a bound below the k-th best score. A list that begins
behind this number is not read at all. If the event gives no weights, the bound is the conjunction's
score itself.

Counters are as in ``match``; CANDIDATES and PREDICATES concern unsure conjunctions.
"""

import numpy as np

from colmatch.kernels._jit import device, inlined, kernel
from colmatch.kernels.bounds import ROUNDED
from colmatch.kernels.kinds.kindex.arrays import KIndex, KIndexScratch
from colmatch.kernels.kinds.kindex.match import END, lists_of, move_front, open_segments, read_number, segments_of
from colmatch.kernels.layout import (
    CANDIDATES,
    CONJUNCTIONS,
    I64,
    MATCHES,
    NODES,
    PREDICATES,
    PRIORITY,
    SUM,
    EventWeights,
    Predicates,
    Rows,
    Top,
    Written,
)
from colmatch.kernels.predicates import Event, clear, conditions_of, conjunction_holds, spread
from colmatch.kernels.scores import (
    ScoreScratch,
    is_static,
    plain_score,
    program_score,
    static_score,
    unweigh_row,
    weigh_row,
)
from colmatch.kernels.sink import is_deleted
from colmatch.kernels.topk import AGAIN, BASE, SCORING, least_score, offer


@device
def bound_event_weight(attr, begin, end, part_rest, given_first, given, row, weight_of):
    """Returns the largest weight that an event may give to a predicate of its matches.

    Attributes that the event lacks count if predicates can be true without them.
    """
    most, absent = 0.0, False
    for e in range(begin, end):
        most = max(most, weight_of[attr[e]])
    for part in range(len(part_rest)):
        absent = absent or part_rest[part] > 0.0
    if absent:
        most = max(most, 1.0)
        if len(given_first) > 0:
            for e in range(given_first[row], given_first[row + 1]):
                most = max(most, given[e])
    return most


@device
def first_below(bound, low, high, factor, least):
    """Returns the first number from ``low`` with a bound below the least score, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if bound[middle] * factor < least:
            high = middle
        else:
            low = middle + 1
    return low


@device
def bound_lists(segment_weight, opened, size, most, attr, begin, end, scoring, weight_of, value, largest):
    """Writes the most that each open list can add to a score, into ``value``.

    Returns the most that all lists can add together.

    most : values that a conjunction's predicates can meet, each one of them; 0: no bound is known
    """
    for t in range(most):
        largest[t] = 0.0
    total, mine, whose = 0.0, 0.0, np.int64(-1)
    for t in range(size + np.uint64(1)):
        # Bound the list
        owner, add = np.int64(-2), 0.0
        if t < size:
            owner = np.int64(opened[t] >> np.uint64(32))
            add = segment_weight[opened[t] & np.uint64(2**32 - 1)] * ROUNDED
            if scoring != SUM and begin + owner < end:
                event_weight = weight_of[attr[begin + owner]]
                add = add * event_weight if event_weight > 0.0 else 0.0  # it may be too large for 24 bits: inf
            value[t] = add
        if most == 0:
            total += add
        elif owner != whose:  # Enter the largest bound of the value before
            place = np.uint64(0)
            if mine > largest[0]:
                while place + np.uint64(1) < most and largest[place + np.uint64(1)] < mine:
                    largest[place] = largest[place + np.uint64(1)]
                    place += np.uint64(1)
                largest[place] = mine
            whose, mine = owner, add
        else:
            mine = max(mine, add)
    for t in range(most):
        total += largest[t]
    return total * ROUNDED


@device
def keep_segments(entry, at, end, value, size, stop):
    """Leaves out the open lists that begin at a key from ``stop``. Returns the number left."""
    kept = np.uint64(0)
    for t in range(size):
        if np.uint64(entry[at[t]]) << np.uint64(32) < stop:
            at[kept], end[kept], value[kept] = at[t], end[t], value[t]
            kept += np.uint64(1)
    return kept


@device
def score_clauses(preds, rows, row, c, unsure, scoring, scratch, scores, counters):
    """Returns the score of a conjunction with true clauses, -inf if it is unsure and false."""
    event = Event(rows.attr, rows.code, rows.first[row], rows.first[row + 1], scratch.table)
    if unsure:
        holds, taken = conjunction_holds(conditions_of(preds), c, event)
        counters[CANDIDATES] += 1
        counters[PREDICATES] += taken
        if not holds:
            return -np.inf
    if is_static(preds.weight, scoring):
        return static_score(preds.priority, c) if scoring == PRIORITY else 0.0
    if len(preds.jump_first) > 0 and preds.jump_first[c] >= 0:
        return program_score(preds, c, scoring, scores.weight_of, event, event.table, scores.stack)
    return plain_score(preds, c, scoring, scores.weight_of)


@inlined
def row_factor(index, rows, row, scoring, static, weights, weight_of):
    """Returns the factor for the bounds of conjunctions in a row, -1 if bounds are unknown."""
    if len(index.bound) == 0 or static == (len(index.segment_weight) > 0):
        return -1.0
    if static or scoring == SUM:
        return ROUNDED
    begin, end = rows.first[row], rows.first[row + 1]
    return ROUNDED * bound_event_weight(
        rows.attr, begin, end, index.part_rest, weights.first, weights.value, row, weight_of
    )


@inlined
def score_of(index, preds, rows, row, number, clauses, scoring, static, scratch, scores, counters):
    """Returns the score of a conjunction with enough entries, -inf if it is unsure and false."""
    c = np.int64(index.conj[number])
    if clauses:
        doubt = index.unsure[number - np.uint64(index.with_clauses[1])] != 0
        return score_clauses(preds, rows, row, c, doubt, scoring, scratch, scores, counters)
    if not static:
        return plain_score(preds, c, scoring, scores.weight_of)
    return static_score(preds.priority, c) if scoring == PRIORITY else 0.0


@inlined
def match_part(index, preds, rows, row, part, size, factor, scratch, scores, top, counters):
    """Offers the matches of a row in one part, with ``size`` open lists."""
    entry, bound, part_first, front, heap = index.entry, index.bound, index.part_first, scratch.front, scratch.heap
    value, at, end, weight_of = scratch.value, scratch.at, scratch.end, scores.weight_of
    one, half = np.uint64(1), np.uint64(33)
    base, again, scoring = np.uint64(top.state[BASE]), top.state[AGAIN] != 0, top.state[SCORING]
    need, clauses = max(np.uint64(index.part_size[part]), one), part >= index.with_clauses[0]
    static = is_static(preds.weight, scoring)
    read, decided, last_key = int(size), 0, END
    # Pass over the part if its lists cannot reach the least score
    by_lists = factor >= 0.0 and len(index.segment_weight) > 0
    least = least_score(top.score, top.fill, row)
    if by_lists:
        values = np.uint64(0) if clauses else need
        most = index.part_rest[part] * factor + bound_lists(
            index.segment_weight, scratch.opened, size, values, rows.attr, rows.first[row], rows.first[row + 1],
            scoring, weight_of, value, scratch.largest,
        )  # fmt: skip
        if most < least:
            return
    # Leave out the conjunctions with bounds below the least score
    if factor >= 0.0:
        number = first_below(bound, part_first[part], part_first[part + 1], factor, least)
        last_key = np.uint64(number) << half
        size = keep_segments(entry, at, end, value, size, last_key)
    left = np.uint64(0)
    last = need - one
    front[last] = END
    if size >= need:
        left = open_segments(entry, at, size, need, heap, front)
    while front[last] < last_key:
        # See whether the lists in front can reach the least score alone
        number = front[last] >> half
        target = number + number
        lower = False
        if by_lists:
            reached = index.part_rest[part] * factor
            for t in range(need):
                reached += value[front[t] & np.uint64(2**32 - 1)]
            lower = reached < least
        # Skip to the next list's conjunction, or decide the one that the lists agree on
        if lower and (left == 0 or heap[0] >> half > number):
            if left == 0 or heap[0] >= last_key:
                break
            target = (heap[0] >> half) << one
        elif front[0] >> half == number:
            decided += 1
            target += np.uint64(2)
            holds, steps = read_number(index, number, need, left, target, clauses, scratch)
            read += steps
            sub = np.uint64(preds.owner[index.conj[number]]) + base
            if holds and not is_deleted(top.deleted_bits, sub):
                score = score_of(index, preds, rows, row, number, clauses, scoring, static, scratch, scores, counters)
                if score > -np.inf:
                    counters[MATCHES] += 1
                    offer(
                        top.score, top.number, top.fill, row, score, np.uint32(sub), again, top.id, top.offset, top.data
                    )
                if factor >= 0.0 and least < least_score(top.score, top.fill, row):
                    least = least_score(top.score, top.fill, row)
                    after = first_below(bound, np.int64(number), np.int64(last_key >> half), factor, least)
                    last_key = np.uint64(after) << half
        read += move_front(index, need, left, target, scratch)
    counters[NODES] += read
    counters[CONJUNCTIONS] += decided


@kernel
def match_topk(
    index: KIndex,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[KIndexScratch],
    weights: EventWeights,
    scores: Written[ScoreScratch],
    top: Written[Top],
    counters: Written[I64],
) -> None:
    """Offers the matches of rows ``start:stop`` to the best of each, if they can be among them."""
    row_first, row_attr, row_code = rows.first, rows.attr, rows.code
    low, next, whose = scratch.low, scratch.next, scratch.whose
    scoring, weight_of = top.state[SCORING], scores.weight_of
    programs, static = len(index.unsure) > 0, is_static(preds.weight, scoring)
    for row in range(start, stop):
        # Find the row's lists, and the highest part in them
        lists = lists_of(row_attr, row_code, row_first[row], row_first[row + 1], index, scratch.seen, low, next, whose)
        part = np.int64(-1)
        for i in range(lists):
            part = max(part, np.int64(index.segment_part[next[i] - 1]))
        if part < 0:
            continue
        # Enter its values and weights into tables
        event = Event(row_attr, row_code, row_first[row], row_first[row + 1], scratch.table)
        if programs:
            spread(rows, row, index.multi, scratch.table)
        weigh_row(weights.first, weights.attr, weights.value, row, weight_of)
        factor = row_factor(index, rows, row, scoring, static, weights, weight_of)
        # Match the parts within reach
        while part >= 0:
            width = 2 if part >= index.with_clauses[0] else 1
            size, reach, following, lists = segments_of(
                part, width, lists, index, low, next, whose, scratch.at, scratch.end, scratch.opened
            )
            if reach >= max(np.uint64(index.part_size[part]), np.uint64(1)):
                match_part(index, preds, rows, row, part, size, factor, scratch, scores, top, counters)
            part = following
        unweigh_row(weights.first, weights.attr, row, weight_of)
        if programs:
            clear(event)
