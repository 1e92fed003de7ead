"""The best subscriptions of a row: lists are read as in ``match``, by bounds of scores.

Source: Whang et al., "Indexing Boolean Expressions", as document 000 has it (section VII). The
largest weight of a list's entries, times the event's weight of its attribute, bounds what the list
adds to a score. So a part is passed over where the sum of its K largest such bounds is below the
k-th best score. And if the K lists in front have a sum below it, no conjunction is worth a look
that these alone have: they skip to the next list's.

Beyond that, the conjunctions of a part are numbered by their own bounds, the highest first. So a
row is done with a part at the first number whose bound is below the k-th best score, and a list
that begins behind it is not read at all. Where the event gives no weights, that bound is the
conjunction's score itself.

Counters are those of ``match``; CANDIDATES and PREDICATES are about unsure conjunctions.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bounds import ROUNDED
from colmatch.kernels.kindex.match import END, advance, lists_of, note_clauses, open_segments, segments_of, sift
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, MATCHES, NODES, PREDICATES, PRIORITY, SUM
from colmatch.kernels.predicates import clear, conjunction_holds, spread
from colmatch.kernels.scores import is_static, plain_score, program_score, static_score, unweigh_row, weigh_row
from colmatch.kernels.sink import is_dead
from colmatch.kernels.top import AGAIN, BASE, SCORING, least_score, offer


@device
def most_given(attr, begin, end, part_rest, given_first, given, row, weight_of):
    """The largest weight that an event may give to a predicate of what it matches.

    Attributes that it has not count where predicates can be true without them.
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
    """The first of some numbers whose bound is below the least score, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if bound[middle] * factor < least:
            high = middle
        else:
            low = middle + 1
    return low


@device
def bound_lists(segment_weight, opened, size, most, attr, begin, end, scoring, weight_of, value, largest):
    """Writes what each open list can add to a score: ``value``.

    most : values that a conjunction's predicates can meet, each one of them; 0: no bound is known.
    Returns how much all lists can add to a score.
    """
    for t in range(most):
        largest[t] = 0.0
    total, mine, whose = 0.0, 0.0, np.int64(-1)
    for t in range(size + np.uint64(1)):
        owner, add = np.int64(-2), 0.0
        if t < size:
            owner = np.int64(opened[t] >> np.uint64(32))
            add = segment_weight[opened[t] & np.uint64(2**32 - 1)] * ROUNDED
            if scoring != SUM and begin + owner < end:
                given = weight_of[attr[begin + owner]]
                add = add * given if given > 0.0 else 0.0  # it may be too large for 24 bits: inf
            value[t] = add
        if most == 0:
            total += add
        elif owner != whose:  # enter the largest of the value before
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
    """Leaves out the open lists that begin at a key from ``stop``. Returns how many are left."""
    kept = np.uint64(0)
    for t in range(size):
        if np.uint64(entry[at[t]]) << np.uint64(32) < stop:
            at[kept], end[kept], value[kept] = at[t], end[t], value[t]
            kept += np.uint64(1)
    return kept


@device
def score_clauses(preds, rows, row, c, unsure, scoring, scratch, scores, counters):
    """Score of a conjunction whose clauses are true, -inf if that was not all and it is false."""
    attr, code, begin, end = rows.attr, rows.code, rows.first[row], rows.first[row + 1]
    if unsure:
        holds, taken = conjunction_holds(
            preds.pred, preds.run_lo, preds.run_hi, preds.first, preds.jump_first, preds.jump, c,
            attr, code, begin, end, scratch.table,
        )  # fmt: skip
        counters[CANDIDATES] += 1
        counters[PREDICATES] += taken
        if not holds:
            return -np.inf
    if is_static(preds.weight, scoring):
        return static_score(preds.priority, c) if scoring == PRIORITY else 0.0
    if len(preds.jump_first) > 0 and preds.jump_first[c] >= 0:
        return program_score(preds, c, scoring, scores.weight_of, attr, code, begin, end, scratch.table, scores.stack)
    return plain_score(preds.pred, preds.weight, preds.first, c, scoring, scores.weight_of)


@kernel
def match_topk(index, preds, rows, start, stop, scratch, weights, scores, top, counters):
    """Offers the matches of rows ``start:stop`` to the best of each, unless they cannot be."""
    entry, clause, conj, unsure = index.entry, index.clause, index.conj, index.unsure
    clause_first, clause_true, part_size = index.clause_first, index.clause_true, index.part_size
    first_part, first_number = index.with_clauses[0], np.uint64(index.with_clauses[1])
    bound, part_first, segment_weight, part_rest = index.bound, index.part_first, index.segment_weight, index.part_rest
    clause_base = np.uint64(len(entry) - len(clause))
    skipping = index.skipping[0] != 0
    row_first, row_attr, row_code, owner = rows.first, rows.attr, rows.code, preds.owner
    pred, weight, pred_first, priority = preds.pred, preds.weight, preds.first, preds.priority
    low, next, whose, at, end = scratch.low, scratch.next, scratch.whose, scratch.at, scratch.end
    heap, front, counter, opened = scratch.heap, scratch.front, scratch.counter, scratch.opened
    value, largest, weight_of = scratch.value, scratch.largest, scores.weight_of
    base, scoring, again, dead = np.uint64(top.state[BASE]), top.state[SCORING], top.state[AGAIN] != 0, top.dead
    best, best_number, fill, id, offset, data = top.score, top.number, top.fill, top.id, top.offset, top.data
    given_first, given_attr, given = weights.first, weights.attr, weights.value
    programs, static = len(unsure) > 0, is_static(weight, scoring)
    one, half, whole = np.uint64(1), np.uint64(33), np.uint64(32)
    the_list = np.uint64(2**32 - 1)
    for row in range(start, stop):
        entries, entries_end = row_first[row], row_first[row + 1]
        lists = lists_of(row_attr, row_code, entries, entries_end, index, scratch.seen, low, next, whose)
        part = np.int64(-1)
        for i in range(lists):
            part = max(part, np.int64(index.segment_part[next[i] - 1]))
        if part < 0:
            continue
        if programs:
            spread(row_first, row_attr, row_code, row, index.multi, scratch.table)
        weigh_row(given_first, given_attr, given, row, weight_of)
        factor = -1.0
        if len(bound) > 0 and static != (len(segment_weight) > 0):
            factor = ROUNDED
            if not static and scoring != SUM:
                factor *= most_given(row_attr, entries, entries_end, part_rest, given_first, given, row, weight_of)
        by_lists = factor >= 0.0 and len(segment_weight) > 0
        least = least_score(best, fill, row)
        while part >= 0:
            need = max(np.uint64(part_size[part]), one)
            clauses = part >= first_part
            size, reach, following, lists = segments_of(
                part, 2 if clauses else 1, lists, index, low, next, whose, at, end, opened
            )
            this, part = part, following
            if reach < need:
                continue
            read, decided = int(size), 0
            most, last_key = np.inf, END
            if by_lists:
                values = np.uint64(0) if clauses else need
                most = part_rest[this] * factor + bound_lists(
                    segment_weight,
                    opened,
                    size,
                    values,
                    row_attr,
                    entries,
                    entries_end,
                    scoring,
                    weight_of,
                    value,
                    largest,
                )
                if most < least:
                    continue
            if factor >= 0.0:
                number = first_below(bound, part_first[this], part_first[this + 1], factor, least)
                last_key = np.uint64(number) << half
                size = keep_segments(entry, at, end, value, size, last_key)
            left = np.uint64(0)
            last = need - one
            front[last] = END
            if size >= need:
                left = open_segments(entry, at, size, need, heap, front)
            while front[last] < last_key:
                number = front[last] >> half
                target = number + number
                lower = False
                if by_lists:
                    reached = part_rest[this] * factor
                    for t in range(need):
                        reached += value[front[t] & the_list]
                    lower = reached < least
                if lower and (left == 0 or heap[0] >> half > number):
                    if left == 0 or heap[0] >= last_key:
                        break
                    target = (heap[0] >> half) << one
                elif front[0] >> half == number:
                    decided += 1
                    target += np.uint64(2)
                    holds = front[0] >> whole & one != np.uint64(0)
                    if clauses:
                        begin = clause_first[number - first_number]
                        count = clause_first[number - first_number + one] - begin
                        for j in range(count):  # what follows stands in kindex/match.py as well
                            counter[j] = clause_true[begin + j]
                        for t in range(need):
                            i = front[t] & the_list
                            note_clauses(entry, clause, clause_base, at[i], end[i], number, counter)
                    while left > 0 and heap[0] >> half == number:
                        i = heap[0] & the_list
                        if clauses:
                            note_clauses(entry, clause, clause_base, at[i], end[i], number, counter)
                        key, steps = advance(entry, at, end, i, target, skipping)
                        read += steps
                        sift(heap, left, np.uint64(0), key)
                    if clauses:
                        holds = True
                        for j in range(count):
                            holds = holds and counter[j] > 0
                    c = np.int64(conj[number])
                    sub = np.uint64(owner[c]) + base
                    if holds and not is_dead(dead, sub):
                        score = 0.0
                        if clauses:
                            doubt = unsure[number - first_number] != 0
                            score = score_clauses(preds, rows, row, c, doubt, scoring, scratch, scores, counters)
                        elif not static:
                            score = plain_score(pred, weight, pred_first, c, scoring, weight_of)
                        elif scoring == PRIORITY:
                            score = static_score(priority, c)
                        if score > -np.inf:
                            counters[MATCHES] += 1
                            offer(best, best_number, fill, row, score, np.uint32(sub), again, id, offset, data)
                        if factor >= 0.0 and least < least_score(best, fill, row):
                            least = least_score(best, fill, row)
                            after = first_below(bound, np.int64(number), np.int64(last_key >> half), factor, least)
                            last_key = np.uint64(after) << half
                            if most < least:
                                break
                moving = np.uint64(0)
                while moving < need and front[moving] >> whole < target:
                    moving += one
                while moving > 0:  # this loop stands in kindex/match.py as well
                    moving -= one
                    i = front[moving] & the_list
                    key, steps = advance(entry, at, end, i, target, skipping)
                    read += steps
                    if left > 0 and heap[0] < key:
                        first = heap[0]
                        sift(heap, left, np.uint64(0), key)
                        key = first
                    for place in range(moving, last):
                        other = front[place + one]
                        front[place] = min(key, other)
                        key = max(key, other)
                    front[last] = key
            counters[NODES] += read
            counters[CONJUNCTIONS] += decided
        unweigh_row(given_first, given_attr, row, weight_of)
        if programs:
            clear(row_first, row_attr, row, scratch.table)
