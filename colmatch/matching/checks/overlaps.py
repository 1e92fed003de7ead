"""The check ``overlaps``: which subscriptions match an event that another matches."""

from __future__ import annotations

import numpy as np

from colmatch.arrays.ranges import distinct
from colmatch.kernels.layout import I64, Bools
from colmatch.matching.checks.boxes import Box, Chances, Several, TooManyError
from colmatch.matching.checks.confirm import PIECE
from colmatch.matching.checks.scope import ROUNDS, UNDECIDED, Scope, meets, pieces


class Overlaps:
    """The check of subscriptions that are asked for beside all others."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def add_rows(self) -> None:
        """Adds the rows of the check."""
        for number in self._scope.numbers.tolist():
            found: dict[int, int] = {}
            maybe: set[int] = set()
            boxes = self._scope.boxes(number)
            for box in [{}] if boxes is None else boxes:
                self._overlap(number, box, found, maybe)
            id, other = np.full(len(found), number), np.array(list(found), np.int64)
            self._scope.rows.add("overlaps", id, other, example=np.array(list(found.values()), np.int64))
            unsure = [one for one in sorted(maybe - found.keys()) if self._may_overlap(boxes, self._scope.boxes(one))]
            reasons = [self._scope.examples.why(number, one) for one in unsure]
            self._scope.rows.add(
                "overlaps", np.full(len(unsure), number), np.array(unsure, np.int64), UNDECIDED, reasons
            )

    def _may_overlap(self, some: list[Box] | None, others: list[Box] | None) -> bool:
        if some is None or others is None:
            return True
        both = self._scope.examples.boxes.both
        return any(both(box, other) is not None for box in some for other in others)

    def _overlap(self, number: int, box: Box, found: dict[int, int], maybe: set[int]) -> None:
        """Finds subscriptions that match an event in a box, with places of such events."""
        states = self._scope.states
        inside = self._inside(box)
        fails = states.fails(~states.allow(inside & states.possible) & ~(states.multi & states.none))
        conjunction = np.flatnonzero(~fails & (states.predicates.owner != number))
        owner = states.predicates.owner[conjunction].astype(np.int64)
        maybe.update(owner.tolist())
        chances = Chances(states, inside & states.made)
        for _ in range(ROUNDS):
            is_left = ~np.isin(owner, list(found)) if found else np.ones(len(owner), bool)
            for some in pieces(np.flatnonzero(is_left).tolist(), PIECE):
                self._try_overlaps(number, box, conjunction[some], chances, found)

    def _inside(self, box: Box) -> Bools:
        """Returns which states an event in a box may have, but for attributes of several values."""
        out = np.ones(len(self._scope.states.possible), bool)
        for a, asked in box.items():
            if not isinstance(asked, Several):
                out[self._scope.states.base[a] : self._scope.states.base[a + 1]] = False
                for low, high in asked:
                    out[low : high + 1] = True
        return out

    def _try_overlaps(self, number: int, box: Box, conjunction: I64, chances: Chances, found: dict[int, int]) -> None:
        states, examples = self._scope.states, self._scope.examples
        rng = np.random.default_rng(len(found))
        alone = examples.needs_boxes[conjunction]
        event, state = chances.choose(conjunction[~alone], np.flatnonzero(~alone), rng)
        own = [examples.boxes.pick(box, rng) for _ in range(len(conjunction))]
        for i in np.flatnonzero(alone).tolist():
            own[i] = self._pick_both(box, int(conjunction[i]), rng)
        more = np.repeat(np.arange(len(own)), [len(one) for one in own])
        asked = np.array([one for part in own for one in part], np.int64)
        base, width = states.base, len(states.base)
        attr, known = np.searchsorted(base, asked, "right") - 1, np.searchsorted(base, state, "right") - 1
        several = states.codes.multi[attr] > 0 if len(attr) else np.zeros(0, bool)
        kept = several | ~np.isin(more * width + attr, event * width + known)
        events = examples.make(np.append(event, more[kept]), np.append(state, asked[kept]), len(conjunction))
        other = states.predicates.owner[conjunction].astype(np.int64)
        pairs = examples.match(events, distinct(np.append(other, number)))
        both = np.flatnonzero(
            meets(np.full(len(other), number), pairs.event, pairs.number) & meets(other, pairs.event, pairs.number)
        )
        ids, first = np.unique(other[both], return_index=True)
        new = ~np.isin(ids, list(found)) if found else np.ones(len(ids), bool)
        places = self._scope.rows.keep(events, both[first[new]])
        found.update(zip(ids[new].tolist(), places.tolist(), strict=True))

    def _pick_both(self, box: Box, conjunction: int, rng: np.random.Generator) -> list[int]:
        """Returns states of an event in a box that a conjunction may match."""
        boxes = self._scope.examples.boxes
        try:
            both = [one for other in boxes.of_conjunction(conjunction) if (one := boxes.both(box, other)) is not None]
        except TooManyError:
            both = []
        return boxes.pick(both[rng.integers(len(both))], rng) if both else []
