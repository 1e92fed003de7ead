"""Forms and literals, or columns of predicates -> the arrays that every index is built from.

All subscriptions are lowered together, column by column. A *test* gives key intervals. A *leaf* is
the union of its tests' intervals. A *predicate* joins the leaves of one conjunction on one
attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze
from colmatch.arrays.pieces import Pieces
from colmatch.arrays.ranges import ranges_of, rows_of
from colmatch.given.schema import Attributes
from colmatch.given.session import Session, SessionParts
from colmatch.kernels import layout
from colmatch.kernels._forks import cached_property
from colmatch.kernels.lowering.codes import find_repeats
from colmatch.kernels.lowering.conjunctions import LeafTable
from colmatch.kernels.lowering.runs import group_intervals, merge_runs
from colmatch.lowering.conjunctions import Conjunctions
from colmatch.lowering.forms import BY_ATTRIBUTE, BY_COLUMN, NO_WEIGHT, PART, Form
from colmatch.lowering.groups import Group, Groups
from colmatch.lowering.solve import solve
from colmatch.lowering.weights import FURTHER_PART, OF_ATTRIBUTE, OF_COLUMN, AttributeWeights
from colmatch.predicates.columns import EMPTY, add_given, take

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
WEIGHTS = {NO_WEIGHT: 0.0, PART: FURTHER_PART, BY_ATTRIBUTE: OF_ATTRIBUTE, BY_COLUMN: OF_COLUMN}


class Reject(NamedTuple):
    """A subscription that was left out.

    ``message`` has the reason, ``slot`` the literal at fault (-1: none in particular).
    """

    message: str
    slot: int


class JumpPrograms(NamedTuple):
    """Conjunctions that are programs."""

    conjunction: I64  # (K) ascending
    leaves: I64  # (K)
    jump: I32  # (J, 2) of the leaves of all, see ``layout.Predicates``
    tokens: I64  # (K)
    tree: I32  # (T) tokens of all

    def take(self, which: I64) -> JumpPrograms:
        """Returns the programs ``which``, in this order."""
        leaves, tokens = self.leaves[which], self.tokens[which]
        jump = rows_of(self.jump, ranges_of(self.leaves)[which], ranges_of(leaves))
        tree = rows_of(self.tree, ranges_of(self.tokens)[which], ranges_of(tokens))
        return JumpPrograms(self.conjunction[which], leaves, jump, tokens, tree)


class LoweredExpressions(NamedTuple):
    """The arrays that indexes are built from."""

    predicates: layout.Predicates
    codes: layout.Codes
    literals: layout.Literals
    rejected: dict[int, Reject]  # by subscription; these have no conjunctions

    def freeze(self) -> LoweredExpressions:
        """Returns the same with contiguous and read-only arrays."""
        return LoweredExpressions(freeze(self.predicates), freeze(self.codes), freeze(self.literals), self.rejected)


class Lowering:
    """A collector of expressions, which then lowers all of them.

    Parameters
    ----------
    attributes : attributes of the forms; pattern attributes are added to it
    session : for timestamp literals without a zone

    Attributes
    ----------
    weights : weights that subscriptions give to attributes, or None; may be set
    priority : of each subscription, or None if none has one; may be set
    rejected : subscriptions that are left out; more may be entered
    computed_parts : computed values that depend on the session
    """

    def __init__(self, attributes: Attributes, session: Session) -> None:
        self.attributes = attributes
        self.session = session
        self.priority: F64 | None = None
        self.rejected: dict[int, Reject] = {}
        self.computed_parts = SessionParts()
        self.weights: AttributeWeights | None = None
        self._literals: layout.Literals | None = None
        self._kept: JumpPrograms | None = None
        self._whole: LoweredExpressions | None = None
        self._leaves = self._conjunctions = 0
        self._is_started = False  # a single insert needs no groups

    @cached_property
    def _merged(self) -> Conjunctions:
        return Conjunctions()

    @property
    def session_parts(self) -> SessionParts:
        """Returns literals and computed values that depend on the session."""
        return SessionParts(self.session.literal).with_others(self.computed_parts)

    def take(self, whole: LoweredExpressions) -> None:
        """Takes all expressions at once, already lowered."""
        self._whole = whole

    def _start(self) -> None:
        self._is_started = True
        self.groups = Groups(self.attributes, self.session)
        self._leaves = 0
        self._leaf_attr, self._leaf_none, self._leaf_sub, self._leaf_weight = Pieces(), Pieces(), Pieces(), Pieces()
        # of conjunctions: subscription, leaves, their ids
        self._owner, self._size, self._leaf = Pieces(), Pieces(), Pieces()
        self._programs: list[JumpPrograms] = []
        self._conjunctions = 0

    def reserve(self, conjunctions: int, predicates: int, intervals: int, weighted: bool) -> None:
        """Makes room for so many more, if their number is known beforehand."""
        self._merged.reserve(conjunctions, predicates, intervals, weighted)

    def add(self, form: Form, subs: Sequence[int], literals: Sequence[Sequence[Any]]) -> None:
        """Adds expressions of one form: subscription ids (dense) and, for each, its literals by
        slot.
        """
        if not self._is_started:
            self._start()
        # Add the tests to their groups; a single subscription adds all tests of a group together.
        m, n = len(subs), len(form.leaves)
        base = self._leaves
        size = [len(c.leaves) for c in form.conjunctions]
        refs = [leaf for c in form.conjunctions for leaf in c.leaves]
        columns = list(zip(*literals, strict=True))
        alone: dict[int, tuple[Group, list[int], list[list[Any]], list[tuple[int, ...]]]] = {}  # by id() of the group
        for j, leaf in enumerate(form.leaves):
            for test in leaf.tests:
                group = self.groups[self.attributes[leaf.attr].type, test.op, test.operands, test.outside]
                slots = tuple([o.slot for o in test.operands])
                if m == 1:
                    row = literals[0]
                    _, leaves, rows, origins = alone.setdefault(id(group), (group, [], [], []))
                    leaves.append(base + j)
                    rows.append([row[o.slot] if o.slot >= 0 else o.value for o in test.operands])
                    origins.append(slots)
                    continue
                values = [columns[o.slot] if o.slot >= 0 else (o.value,) * m for o in test.operands]
                group.add(range(base + j, base + j + m * n, n), values, slots)
        for group, leaves, rows, origins in alone.values():
            group.add_each(leaves, list(zip(*rows, strict=True)), origins)
        # Add the leaves and conjunctions.
        self._weigh(form, m, columns)
        self._leaf_attr.extend([leaf.attr for leaf in form.leaves] * m)
        self._leaf_none.extend([leaf.none for leaf in form.leaves] * m)
        self._size.extend(size * m)
        if m == 1:  # forms of one subscription are common: no arrays of five numbers
            self._leaf_sub.extend([subs[0]] * n)
            self._owner.extend([subs[0]] * len(size))
            self._leaf.extend([base + leaf for leaf in refs])
        else:
            self._leaf_sub.append(np.repeat(subs, n))
            self._owner.append(np.repeat(subs, len(size)))
            self._leaf.append((base + np.arange(m)[:, None] * n + np.array(refs, np.int64)[None, :]).ravel())
        if any(c.jumps for c in form.conjunctions):
            self._programs.append(_programs_of(form, m, self._conjunctions))
        self._conjunctions += m * len(size)
        self._leaves += m * n

    def _weigh(self, form: Form, m: int, columns: Sequence[Sequence[Any]]) -> None:
        """Adds the weights of the leaves of ``m`` expressions, if there are any so far."""
        weights = [leaf.weight for leaf in form.leaves]
        if weights.count(NO_WEIGHT) == len(weights):
            if self._leaf_weight.pieces:
                self._leaf_weight.append(np.zeros(m * len(weights)))
            return
        of_leaf = np.zeros((m, len(weights)))
        for j, weight in enumerate(weights):
            of_leaf[:, j] = columns[weight] if weight >= 0 else WEIGHTS[weight]
        self._add_weights(of_leaf.ravel())

    def _add_weights(self, of_leaf: F64) -> None:
        """Adds the weights of leaves; earlier leaves without weights get 0."""
        if self._leaves and not self._leaf_weight.pieces:
            self._leaf_weight.append(np.zeros(self._leaves))
        self._leaf_weight.append(of_leaf)

    def leaves(self, attr: I64, none: NDArray[np.uint8], sub: I64, weight: NDArray[np.float64] | None) -> int:
        """Adds leaves without a form. Returns the id of the first; the others follow.

        Their tests go to ``groups``. If these leaves have no weights, no leaf may have one.
        """
        if not self._is_started:
            self._start()
        base = self._leaves
        self._leaf_attr.append(attr)
        self._leaf_none.append(none)
        self._leaf_sub.append(sub)
        if weight is not None:
            self._add_weights(weight)
        self._leaves += len(attr)
        return base

    def conjunctions(self, owner: I64, size: I64, leaf: I64, programs: JumpPrograms | None = None) -> None:
        """Adds conjunctions without a form.

        owner, size : subscription and number of leaves of each
        leaf : ids of these leaves
        programs : the programs among them, by their place in ``owner``
        """
        if programs is not None and len(programs.conjunction):
            self._programs.append(programs._replace(conjunction=programs.conjunction + self._conjunctions))
        self._owner.append(owner)
        self._size.append(size)
        self._leaf.append(leaf)
        self._conjunctions += len(owner)

    def _refuse(self, leaf: int, message: str, slot: int) -> None:
        """Rejects the expression of an unreadable literal; of several, the first counts."""
        sub = int(self._sub_of_leaf[leaf])
        if sub not in self.rejected or slot < self.rejected[sub].slot:
            self.rejected[sub] = Reject(message, slot)

    def flush_if_possible(self) -> None:
        """Flushes earlier additions, if none of them must be in one piece with later ones."""
        if self._is_started and not self._programs and self.groups.are_numbers:
            self.flush()

    def flush(self) -> None:
        """Turns all additions into merged predicates, and frees the rest.

        Later additions must belong to later subscriptions. Programs, string literals and patterns
        must be all in one piece: a literal's label depends on all of them.
        """
        # Make the intervals of the leaves.
        if not self._is_started:
            self._start()
        self._sub_of_leaf = self._leaf_sub.array()
        leaf_attr = self._leaf_attr.array()
        weight = self._leaf_weight.array(np.float64)
        if self.weights is not None:
            self.weights.enter(weight, self._sub_of_leaf, leaf_attr, self.attributes)
        leaf, lo, hi, self._literals = self.groups.intervals(leaf_attr, self._refuse)
        leaf, lo, hi = solve(self.attributes, leaf_attr, leaf, lo, hi)
        # At 50 million predicates each of these arrays takes 400 MB, and fresh memory is slow: free
        # them early.
        del self.groups, self._leaf_sub, self._sub_of_leaf
        run_first, run_lo, run_hi = _runs(self._leaves, leaf, lo, hi)
        del leaf, lo, hi
        owner, size = self._owner.array(), self._size.array()
        refs = self._leaf.array()
        del self._owner, self._size, self._leaf
        # Mark the programs.
        program, programs = np.zeros(self._conjunctions, np.uint8), self._programs
        joined = JumpPrograms(*map(np.concatenate, zip(*programs, strict=True))) if programs else None
        if joined is not None:
            program[joined.conjunction] = 1
        # Leave out rejected subscriptions, and sort by subscription. Some were rejected before any
        # piece was added, and belong to later ones.
        out = list(self.rejected)
        order = np.flatnonzero(~np.isin(owner, out)) if out else np.arange(len(owner))
        if np.any(owner[1:] < owner[:-1]):
            order = order[np.argsort(owner[order], kind="stable")]
        start = ranges_of(size)
        if len(order) < len(owner) or np.any(order[1:] < order[:-1]):
            begin, start = start[:-1][order], ranges_of(size[order])
            refs, owner, program = rows_of(refs, begin, start), owner[order], program[order]
        if joined is not None and program.any():
            self._kept = joined.take(np.searchsorted(joined.conjunction, order[program.astype(bool)]))
        # Merge the leaves of each conjunction.
        leaves = LeafTable(leaf_attr, self._leaf_none.array(np.uint8), weight, run_first, run_lo, run_hi)
        self._merged.add(owner, program, start, refs, leaves, self._multi())
        self._start()

    def _multi(self) -> NDArray[np.uint8]:
        return np.frombuffer(bytes(self.attributes.multi), np.uint8).copy()

    def finish(self) -> LoweredExpressions:
        """Lowers all additions."""
        if self._whole is not None:
            predicates = add_given(self._whole.predicates, {"priority": self.priority})
            return self._whole._replace(predicates=predicates)
        if self._conjunctions or self._literals is None:
            self.flush()
        assert self._literals is not None
        codes, keep, program, first, pred, weight, code_lo, code_hi, owner = self._merged.code(self._multi())
        repeated = np.zeros(len(owner), np.uint8)
        if np.any(owner[1:] == owner[:-1]):  # a kernel that is not called is not compiled
            # a dropped conjunction repeats none
            find_repeats(first, pred, weight, code_lo, code_hi, owner, program | (1 - keep), repeated)
        predicates = EMPTY._replace(
            first=first, pred=pred, run_lo=code_lo, run_hi=code_hi, owner=owner, weight=weight,
            **_programs(self._kept, program),
        )  # fmt: skip
        left = keep > repeated  # neither dropped nor repeated
        if not left.all():
            predicates = take(predicates, np.flatnonzero(left))
        predicates = add_given(predicates, {"priority": self.priority})
        return LoweredExpressions(predicates, codes, self._literals, self.rejected).freeze()


def _programs_of(form: Form, m: int, first: int) -> JumpPrograms:
    """Returns the programs of ``m`` expressions of a form, with ``first`` as their first
    conjunction.
    """
    each = [(i, c) for i, c in enumerate(form.conjunctions) if c.jumps]
    which = np.array([i for i, _ in each])
    leaves, tokens = (
        [len(part) for part in column] for column in zip(*((c.jumps, c.tree) for _, c in each), strict=True)
    )
    jump = np.concatenate([np.array(c.jumps, np.int32) for _, c in each])
    tree = np.concatenate([np.array(c.tree, np.int32) for _, c in each])
    conjunction = (first + np.arange(m)[:, None] * len(form.conjunctions) + which).ravel()
    return JumpPrograms(conjunction, np.tile(leaves, m), np.tile(jump, (m, 1)), np.tile(tokens, m), np.tile(tree, m))


def _runs(leaves: int, leaf: I64, lo: I64, hi: I64) -> tuple[I64, I64, I64]:
    """Returns the run of each leaf, from intervals in any order."""
    run_first, run_lo, run_hi = np.empty(leaves + 1, np.int64), np.empty_like(lo), np.empty_like(hi)
    # Usually, each leaf has one interval
    if len(leaf) == leaves and np.bincount(leaf, minlength=1).max() < 2 and not np.any(lo > hi):
        run_first[:] = np.arange(leaves + 1)
        run_lo[leaf], run_hi[leaf] = lo, hi
        return run_first, run_lo, run_hi
    group_intervals(leaf, lo, hi, run_first, run_lo, run_hi)
    merge_runs(run_first, run_lo, run_hi, np.empty(0, np.uint8), run_first, run_lo, run_hi)
    return run_first, run_lo, run_hi


def _programs(kept: JumpPrograms | None, program: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Returns the columns of ``layout.Predicates`` for programs, if there are any."""
    if kept is None or not program.any():
        return {}
    places = np.flatnonzero(program)
    jump_first, size = np.full(len(program), -1), np.zeros(len(program), np.int64)
    jump_first[places] = ranges_of(kept.leaves)[:-1]
    size[places] = kept.tokens
    return {"jump_first": jump_first, "jump": kept.jump, "tree_first": ranges_of(size), "tree": kept.tree}
