"""The code that BE-Tree and BE*-Tree share: it builds, grows and changes the tables of a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.growing import extend_array
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees import change
from colmatch.kernels.kinds.trees.arrays import Tree, TreeScratch, TreeWork
from colmatch.kernels.kinds.trees.bounds import bound_nodes, code_bounds, order_nodes
from colmatch.kernels.kinds.trees.caps import find_caps
from colmatch.kernels.kinds.trees.match import match
from colmatch.kernels.kinds.trees.match_topk import match_topk
from colmatch.kernels.kinds.trees.ranges import match_ranges
from colmatch.kernels.layout import ATTR_MASK, FLAG_MULTI, I64, MAX, U32, U64, Codes, Predicates
from colmatch.kernels.tiles import TILE_LEAST, TILE_MOST, TILE_ROWS
from colmatch.kinds.base import IndexKind, bounds_of, highest_scores
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import Sample, window_of
from colmatch.predicates.columns import take

RANKINGS = ("selectivity", "popularity", "feedback")
RANKING_MEANING = (
    "the attribute that places a conjunction: the one whose predicate holds for the least part of the domain, the one in "
    "most conjunctions, or the one whose predicate the fewest events of the sample meet (without a sample: selectivity)"
)
EVALUATIONS = ("lazy", "memo", "bitmap")  # LAZY and BITMAP are places here


def common_plan(settings: Any) -> I64:
    """Returns a plan with the settings that both kinds have, and zeros for the others."""
    plan = np.zeros(bt.PLAN_WORDS, np.int64)
    plan[bt.RANKING] = bt.POPULARITY if settings.ranking == "popularity" else bt.SELECTIVITY
    plan[bt.LEAF_CAPACITY] = settings.capacity
    plan[bt.SHORT_CIRCUIT] = settings.short_circuit
    plan[bt.EVALUATION] = EVALUATIONS.index(settings.evaluation)
    return plan


def _window(settings: Any, sample: Sample | None, codes: Codes) -> tuple[I64, I64, I64, I64]:
    """Returns the arrays ``WINDOW`` of a tree: counts of events, if the ranking uses them."""
    seen = sample if settings.ranking == "feedback" else None
    rows = np.empty(0, np.int64) if seen is None else np.append(seen.present, seen.events)
    window, first, key = window_of(seen, codes).values()
    return window, first, key, contiguous(rows)


def empty(plan: I64, codes: Codes, window: tuple[I64, I64, I64, I64]) -> Tree:
    """Returns a tree without conjunctions: a root, and a bucket for conjunctions not placed."""
    state = np.zeros(bt.STATE_WORDS, np.int64)
    state[[bt.FREE_NODE, bt.FREE_PART]] = state[bt.FREE_BLOCK :] = bt.NONE
    state[bt.NODES] = 2
    node, above = np.zeros((8, bt.NODE_WORDS), np.uint32), np.full((8, bt.ABOVE_WORDS), bt.NONE, np.uint32)
    node[:2, [bt.LEFT, bt.RIGHT, bt.LEAF, bt.FIRST]] = bt.NONE
    above[:2, [bt.BELOW, bt.LEVEL]] = 0
    above[0, bt.CAPACITY] = plan[bt.LEAF_CAPACITY]
    none = np.empty(0, np.uint32)
    return Tree(
        node, above, np.zeros((4, bt.PART_WORDS), np.uint32), np.zeros(16, np.uint32),
        np.zeros(64, np.uint32), np.zeros(64, np.uint64), np.zeros((64, 2), np.uint32), np.empty(0, np.uint32),
        np.zeros((0, 4), np.uint32), plan, state, codes.multi.copy(), np.array([bt.UNBOUNDED], np.uint8),
        none, none, none, none, np.empty((0, 2), np.uint32), none, none, none, none, *window,
    )  # fmt: skip


def _build_tree(
    plan: I64, preds: Predicates, codes: Codes, sample: Sample | None, settings: Any
) -> tuple[Tree, Predicates]:
    # Divide the root with all conjunctions, or enter them one by one.
    count, bulk = len(preds.owner), settings.construction == "bulk"
    tree = empty(plan, codes, _window(settings, sample, codes))
    tree = tree._replace(at=np.full(count, bt.NONE, np.uint32))
    tree.state[bt.SEVERAL] = (preds.owner[1:] == preds.owner[:-1]).any()
    work = _work(tree, count, len(codes.multi))
    if bulk and count:
        tree = _grow(tree, 0, 0, 4 * count + 16, 0)
        change.fill_root(tree, preds, work, count)
    tree = _enter_each(tree, preds, codes, work, count)
    if len(codes.label):  # of a growing segment, with conjunctions in the order of subscriptions
        return tree, preds
    # Pack the leaves depth first, each with its highest scores first.
    order, need, reach = np.empty(count, np.uint32), np.empty(count, np.uint64), np.empty((count, 2), np.uint32)
    work = work._replace(todo=np.empty(len(tree.node), np.uint32))
    change.pack(tree, work, order, need, reach)
    place, bound = np.arange(count, dtype=np.uint32), np.empty(0, np.uint32)
    if len(preds.weight) or len(preds.priority):
        order, need, reach, bound = _sort_by_bound(tree, preds, order, need, reach)
    # Cut off unused rows, and reorder the conjunctions.
    used = {"node": bt.NODES, "above": bt.NODES, "part": bt.N_PARTS, "box": bt.BOXES}
    trimmed = {name: getattr(tree, name)[: tree.state[at]].copy() for name, at in used.items()}
    trimmed |= zip(bt.WINDOW, _window(settings, None, codes), strict=True)  # nothing is placed any more
    tree = tree._replace(entry=place, need=need, reach=reach, at=tree.at[order], **trimmed)
    preds = freeze(take(preds, order))
    tree = _number_predicates(tree, preds, codes)
    return (_add_bounds(tree, preds, bound) if len(bound) else tree), preds


def _number_predicates(tree: Tree, preds: Predicates, codes: Codes) -> Tree:
    """Numbers the distinct predicates of a packed tree, if its plan needs them.

    Predicates of several intervals are equal only if they share the intervals.
    """
    if tree.plan[bt.EVALUATION] == bt.LAZY or not len(preds.pred):
        return tree
    word, low, high = preds.pred.T
    order = np.lexsort((high, low, word))
    ascending = preds.pred[order]
    new = np.append(True, (ascending[1:] != ascending[:-1]).any(axis=1))
    same = np.empty(len(order), np.uint32)
    same[order] = np.cumsum(new) - 1
    if tree.plan[bt.EVALUATION] != bt.BITMAP:
        return tree._replace(same=same)
    by_attr = np.searchsorted(ascending[new, 0], np.arange(len(codes.multi) + 1, dtype=np.uint32))
    return tree._replace(same=same, some=order[new].astype(np.uint32), by_attr=by_attr.astype(np.uint32))


def _sort_by_bound(tree: Tree, preds: Predicates, order: U32, need: U64, reach: U32) -> tuple[U32, U64, U32, U32]:
    """Orders the entries of each leaf by their largest possible score."""
    code = np.empty(len(order), np.uint32)
    code_bounds(highest_scores(preds), code)
    code = code[order]
    leaf, group = tree.at[order], np.zeros(len(order), np.int64)
    np.cumsum(leaf[1:] != leaf[:-1], out=group[1:])
    place = np.lexsort((~code, group))
    return order[place], need[place], reach[place], code[place]


def _add_bounds(tree: Tree, preds: Predicates, bound: U32) -> Tree:
    """Gives a packed tree its bounds of scores."""
    stack, order = (np.zeros(len(tree.node) + 2, np.uint32) for _ in range(2))
    order = order[: order_nodes(tree.node, tree.part, stack, order)].copy()

    def below(bounds: U32) -> U32:
        highest = np.zeros(len(tree.node), np.uint32)
        bound_nodes(tree.node, tree.part, bounds, order, highest)
        return highest

    by = bt.BY_WEIGHTS if len(preds.weight) else bt.BY_PRIORITY
    tree = tree._replace(bounded=np.array([by], np.uint8), bound=bound, bound_below=below(bound))
    if not len(preds.weight):
        return tree
    most = np.empty(len(bound), np.uint32)
    code_bounds(np.maximum(bounds_of(preds)[:, MAX], 0.0), most)
    return _add_caps(tree._replace(most_below=below(most)), preds)


def _add_caps(tree: Tree, preds: Predicates) -> Tree:
    """Adds caps to a packed tree: the most that each attribute can add to a score."""
    attributes, room = len(tree.multi) + 1, len(preds.pred)
    first, all = np.zeros(len(tree.node) + 1, np.uint32), np.zeros(attributes, np.uint32)
    cap, table = np.zeros((room, 2), np.uint32), np.zeros((3, attributes))
    touched, order = np.empty((2, attributes), np.uint32)
    tally = np.empty(attributes, np.int64)
    count = find_caps(tree.node, preds, table, touched, order, tally, first, cap, all)
    return tree._replace(cap_first=first, cap=cap[:count].copy(), cap_all=all)


def insert_conjunctions(tree: Tree, preds: Predicates, codes: Codes, begin: int, end: int) -> Tree:
    tree = make_writable(tree)
    old_count = len(tree.at)
    tree = tree._replace(at=extend_array(tree.at, old_count, end))
    tree.at[old_count:] = bt.NONE
    word = preds.pred[preds.first[begin] : preds.first[end], 0]
    more = len(codes.multi) - len(tree.multi)
    if more > 0:
        tree = tree._replace(multi=np.append(tree.multi, np.zeros(more, np.uint8)))
    tree.multi[word[(word & FLAG_MULTI) != 0] & ATTR_MASK] = 1
    tree.state[bt.SEVERAL] |= (preds.owner[begin + 1 : end] == preds.owner[begin : end - 1]).any()
    work = _work(tree, len(tree.at), len(codes.multi))
    work.left[change.GOES_NEXT] = begin
    return _enter_each(tree, preds, codes, work, end)


def _enter_each(tree: Tree, preds: Predicates, codes: Codes, work: TreeWork, end: int) -> Tree:
    tree, work = _divide_full(tree, preds, codes, work)
    while work.left[change.GOES_NEXT] < end:
        if not change.enter(tree, preds, codes, work, end):
            tree, work = _make_room(tree, work)
        tree, work = _divide_full(tree, preds, codes, work)
    return tree


def remove_conjunctions(tree: Tree, preds: Predicates, codes: Codes, conjunctions: I64) -> Tree:
    tree = make_writable(tree)
    work = _work(tree, len(tree.at), len(codes.multi))
    done = 0
    while done < len(conjunctions):
        done = change.remove(tree, preds, codes, work, contiguous(conjunctions), done)
        if done < len(conjunctions) and not work.left[change.TODO]:
            tree, work = _make_room(tree, work)
        tree, work = _divide_full(tree, preds, codes, work)
    return tree


def _divide_full(tree: Tree, preds: Predicates, codes: Codes, work: TreeWork) -> tuple[Tree, TreeWork]:
    """Divides everything that is too full, as far as possible."""
    while work.left[change.TODO] or work.left[change.WAITING]:
        arguments = tree, preds, codes, work
        if not (change.halve_all(*arguments) if work.left[change.TODO] else change.divide_all(*arguments)):
            tree, work = _make_room(tree, work)
    return tree, work


def _make_room(tree: Tree, work: TreeWork) -> tuple[Tree, TreeWork]:
    needs = change.NEED_NODES, change.NEED_PARTS, change.NEED_ENTRIES, change.NEED_BOXES
    tree = _grow(tree, *(int(work.left[need]) for need in needs))
    room = 2 * len(tree.node) + 64
    todo, waiting = (extend_array(buckets, len(buckets), room) for buckets in (work.todo, work.waiting))
    return tree, work._replace(todo=todo, waiting=waiting)


def make_writable(tree: Tree) -> Tree:
    """Returns a tree that can be changed: read-only arrays are copied.

    It has no bounds of scores and no numbers of predicates, since changes would make them wrong.
    """
    none = np.empty(0, np.uint32)
    tree = tree._replace(same=none, some=none, by_attr=none)
    if tree.bounded[0] != bt.UNBOUNDED:
        unbounded, cap = np.array([bt.UNBOUNDED], np.uint8), np.empty((0, 2), np.uint32)
        tree = tree._replace(
            bounded=unbounded, bound=none, bound_below=none, most_below=none, cap_first=none, cap=cap, cap_all=none
        )
    changed = {name: array.copy() for name, array in tree._asdict().items() if not array.flags.writeable}
    return tree._replace(**changed | {name: contiguous(getattr(tree, name)) for name in bt.WINDOW})


def _work(tree: Tree, count: int, attributes: int) -> TreeWork:
    todo, waiting = (np.empty(2 * len(tree.node) + 64, np.uint32) for _ in range(2))
    many = [np.empty(max(count, 1), np.uint32) for _ in range(8)]
    return TreeWork(
        todo, waiting, np.zeros(7, np.int64), np.zeros(attributes), np.zeros(attributes, np.int64),
        np.empty(attributes, np.uint32), np.zeros(attributes, np.uint32), np.empty(4 * count + 1, np.int64), *many,
    )  # fmt: skip


def _grow(tree: Tree, nodes: int, parts: int, entries: int, boxes: int) -> Tree:
    """Returns a tree with room for so many more rows of each table."""
    state = tree.state
    rows = {
        ("node", "above"): (bt.NODES, nodes),
        ("part",): (bt.N_PARTS, parts),
        ("entry", "need", "reach"): (bt.ENTRIES, entries),
        ("box",): (bt.BOXES, boxes),
    }
    grown = {
        name: extend_array(getattr(tree, name), int(state[used]), int(state[used]) + more)
        for names, (used, more) in rows.items()
        for name in names
    }
    tree = tree._replace(**grown)
    if 2 * (state[bt.SLOTS] + parts) > len(tree.slot):
        size = 1 << int(4 * (state[bt.SLOTS] + parts)).bit_length()
        tree = tree._replace(slot=np.zeros(size, np.uint32))
        change.note_parts(tree)
    return tree


def scratch(tree: Tree, codes: Codes, rows: int, entries: int) -> TreeScratch:
    attributes, nodes = max(len(codes.multi), 1), len(tree.node) + 2
    shares = len(tree.same) > 0  # the truth of predicates is shared; only a tile has room for it
    tiled = rows >= TILE_LEAST and (shares or attributes * TILE_ROWS <= TILE_MOST)
    tile = attributes * TILE_ROWS if tiled else 0
    distinct = int(tree.same.max()) + 1 if tile and len(tree.same) else 0
    return TreeScratch(
        np.zeros(attributes, np.uint32), np.zeros(tile, np.uint32), np.zeros(attributes, np.uint64),
        np.empty(TILE_ROWS, np.uint64), np.empty(nodes, np.uint32), np.empty(nodes, np.uint64),
        np.empty(len(tree.part), np.uint32), np.empty(len(tree.part), np.uint32), np.empty(len(tree.part), np.uint64),
        np.empty(TILE_ROWS), np.zeros(TILE_ROWS, np.int64), np.empty((TILE_ROWS, bt.HEAVIEST), np.uint32),
        np.empty((TILE_ROWS, bt.HEAVIEST)), np.empty((TILE_ROWS, bt.HEAVIEST)), np.zeros((distinct + 1, 2), np.uint64),
        np.empty(TILE_ROWS, np.uint32), np.empty(TILE_ROWS, np.uint32), np.ones((TILE_ROWS if tile else 0, attributes)),
        np.zeros(1, np.int64),
    )  # fmt: skip


def kind(settings: type[Settings], plan_of: Callable[[Any], I64]) -> IndexKind:
    """Returns a tree as a kind of index; ``plan_of`` makes the tree's plan from settings."""

    def build(preds: Predicates, codes: Codes, sample: Sample | None, requested: Any) -> tuple[Tree, Predicates]:
        return _build_tree(plan_of(requested), preds, codes, sample, requested)

    return IndexKind(
        settings, Tree, build, scratch, match, lambda tree: bool(tree.state[bt.SEVERAL]), insert_conjunctions, remove_conjunctions,
        match_topk=match_topk, match_ranges=match_ranges,
        grows_by_sample=lambda requested: requested.ranking == "feedback",
    )  # fmt: skip
