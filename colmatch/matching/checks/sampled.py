"""Columns and literals of rules that no event of a sample has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from colmatch.arrays.ranges import sizes_of
from colmatch.events.reader import Reader
from colmatch.given.schema import Attribute, Attributes, Family, Role
from colmatch.kernels.layout import I64, Bools
from colmatch.lowering.written import LiteralTexts, predicate_text
from colmatch.matching.checks.states import States
from colmatch.predicates.programs import fold_program


class SampledStates:
    """The states that occur in a sample.

    Parameters
    ----------
    batches : events of the sample
    lenient : whether an absent column counts as NULL

    Attributes
    ----------
    rows : number of events
    seen : (S) whether an event has the state
    has : (A) whether an event has a value; of a text pattern, whether it has a text
    """

    def __init__(self, states: States, batches: Sequence[pa.RecordBatch], lenient: bool) -> None:
        self._states = states
        self.rows = sum(batch.num_rows for batch in batches)
        attributes = Attributes(list(states.version.attributes))
        bare = np.arange(len(states.attributes))
        for a, attribute in enumerate(states.attributes):
            if attribute.pattern:
                bare[a] = attributes.intern(Attribute(attribute.path, attribute.role, attribute.type, attribute.key))
        reader = Reader(attributes, states.version.literals.of(len(attributes)), lenient)
        self.seen: Bools = np.zeros(len(states.possible), bool)
        has = np.zeros(len(attributes), bool)
        for batch in batches:
            found = reader.read(batch)
            has |= sizes_of(found.col) > 0
            for a in np.flatnonzero(has[: len(bare)]).tolist():
                bounds = states.codes.bound[states.codes.first[a] : states.codes.first[a + 1]]
                key = found.key[found.col[a] : found.col[a + 1]]
                self.seen[states.base[a] + 1 + np.searchsorted(bounds, key, "right")] = True
        self.has: Bools = has[bare]

    def dead_columns(self) -> tuple[I64, pa.Array]:
        """Returns subscriptions that need a column without a value in any event, and the reasons.

        There is a row for each such column of a subscription.
        """
        states, preds = self._states, self._states.predicates
        dead = np.array([a.role is not Role.CALL and not a.is_free for a in states.attributes], bool) & ~self.has
        runs, base = states.runs, states.base[states.attr]
        needs = np.where(states.multi, ~states.none, True)
        asks = np.flatnonzero(sizes_of(runs.first) > 0)
        needs[asks] &= runs.low[runs.first[asks]] > base[asks]
        unmet = dead[states.attr] & needs
        fails = states.fails(unmet)
        before = np.append(0, np.cumsum(unmet))
        for c in np.flatnonzero(states.programs & (before[preds.first[1:]] > before[preds.first[:-1]])).tolist():
            fails[c] = not self._may_hold(c, unmet)
        # A subscription is dead if all of its conjunctions are
        alive, owner = np.zeros(len(states.version.ids), bool), preds.owner.astype(np.int64)
        alive[owner[~fails]] = True
        of = np.repeat(owner, sizes_of(preds.first))
        names: dict[str, int] = {}
        name = np.array([names.setdefault(self._dead_text(a), len(names)) for a in states.attributes], np.int64)
        rows = np.unique(np.stack([of, name[states.attr]])[:, unmet & ~alive[of]], axis=1)
        texts = pa.array(list(names), pa.string())
        return rows[0], texts.take(pa.array(rows[1]))

    def _dead_text(self, attribute: Attribute) -> str:
        owner = ".".join(attribute.path) if attribute.role is not Role.ENTRY else attribute.name
        state = "empty or NULL" if attribute.role is Role.ELEMENT else "NULL"
        return f"{owner} is {state} in all {self.rows:,} events of the sample"

    def _may_hold(self, c: int, unmet: Bools) -> bool:
        """Returns whether a program can be true while some of its predicates are false."""
        return fold_program(
            self._states.predicates,
            c,
            lambda p: not unmet[p],
            lambda parts, either: any(parts) if either else all(parts),
        )

    def odd_literals(self) -> tuple[I64, pa.Array]:
        """Returns subscriptions with a literal of ``=`` or IN that no event has, and the reasons.

        There is a row for each such literal of a subscription.
        """
        states, runs = self._states, self._states.runs
        _, low, high, _ = states.limits
        roles = (Role.VALUE, Role.ENTRY, Role.ELEMENT, Role.COMPUTED)
        listed = [a.role in roles and not a.pattern and a.type.family is not Family.BOOL for a in states.attributes]
        textual = np.array([a.type.textual for a in states.attributes], bool)
        p = np.repeat(np.arange(len(states.attr)), sizes_of(runs.first))
        of = np.repeat(states.predicates.owner.astype(np.int64), sizes_of(states.predicates.first))[p]
        state = runs.low
        single = (state == runs.high) & (low[state] == high[state]) & np.array(listed, bool)[states.attr[p]]
        single &= ~(states.multi & states.none)[p] & ~self.seen[state] & (state > states.base[states.attr[p]])
        single &= ~textual[states.attr[p]] | (states.key[state] % 2 == 1)
        rows = np.unique(np.stack([of[single], state[single]]), axis=1)
        distinct, place = np.unique(rows[1], return_inverse=True)
        texts = pa.array([self._odd_text(one, int(low[one])) for one in distinct.tolist()], pa.string())
        return rows[0], texts.take(pa.array(place.ravel()))

    def _odd_text(self, state: int, key: int) -> str:
        a = int(np.searchsorted(self._states.base, state, "right")) - 1
        text = predicate_text(self._states.attributes[a], LiteralTexts(self._states.literals, a), [(key, key)], False)
        return f"{text}: no event of the sample has this value"
