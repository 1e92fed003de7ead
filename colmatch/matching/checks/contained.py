"""The checks ``duplicate`` and ``contained``: subscriptions that match what another matches."""

from __future__ import annotations

import numpy as np

from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import I64, Bools
from colmatch.matching.checks.boxes import Box
from colmatch.matching.checks.confirm import PIECE
from colmatch.matching.checks.normal import Forms, duplicates, normal_forms
from colmatch.matching.checks.scope import UNDECIDED, Scope

_MOST_TRUTHS = 1 << 27  # of subscriptions in the events that are compared together
_EVENTS_EACH = 8  # about, for one subscription
# A subscription, one that may contain it, the place of an example, the proof, boxes that are left
Pair = tuple[int, int, int, bool, list[Box]]


class Contained:
    """The checks of subscriptions beside others that match at least the same events.

    An event shows that a subscription is not in others. If no event of a piece shows it, boxes may
    prove the opposite. If they do not, further events are made.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @cached_property
    def _repeats(self) -> tuple[Forms, I64, I64]:
        """Returns all normal forms, repeated subscriptions, and the first one with each form."""
        forms = normal_forms(self._scope.states)
        return forms, *duplicates(self._scope.states, forms)

    def add_duplicates(self) -> None:
        """Adds the rows of ``duplicate``."""
        scope, (_, id, other) = self._scope, self._repeats
        if scope.is_asked:
            kept = np.isin(id, scope.numbers) | np.isin(other, scope.numbers)
            id, other = id[kept], other[kept]
        scope.rows.add("duplicate", id, other)

    def _groups(self) -> I64:
        """Returns a number that subscriptions with equal normal forms share, -1 without any."""
        out = np.full(len(self._scope.version.ids), -1)
        forms, id, other = self._repeats
        out[forms.owner] = forms.owner
        out[id] = other
        return out

    def add_rows(self, always: I64) -> None:
        """Adds the rows of ``contained``, none of them about subscriptions in ``always``.

        Without ids that are asked for, a row that follows from two others is left out: where B is
        in C, and A in B, none says that A is in C.
        """
        scope, groups = self._scope, self._groups()
        plain = groups >= 0
        plain[always] = False
        numbers = scope.numbers[plain[scope.numbers]]
        others, example, size = self._candidates(numbers, groups, plain)
        unmet = [n for n in numbers[example < 0].tolist() if scope.boxes(n) != []]
        scope.rows.add(
            "contained", np.array(unmet, np.int64), status=UNDECIDED, reason=[scope.examples.why(n) for n in unmet]
        )
        # The largest first: what contains a subscription is known before it contains others
        above: dict[int, set[int]] = {}
        pairs: list[Pair] = []
        for i in np.argsort(-size[numbers], kind="stable").tolist():
            number = int(numbers[i])
            known = above[number] = set()
            for other in others[i][np.argsort(size[others[i]], kind="stable")].tolist():
                if other in known and not scope.is_asked:
                    continue
                is_proven, left = scope.contains(number, other)
                pairs.append((number, other, int(example[i]), is_proven, left))
                if is_proven:
                    known |= {other, *above.get(other, ())}
        self._add_pairs(pairs if scope.is_asked else _without_following(pairs, above))

    def _candidates(self, numbers: I64, groups: I64, plain: Bools) -> tuple[list[I64], I64, I64]:
        """Returns for subscriptions which others may contain them, since they match all events that
        they match; the place of such an event, -1 without any; and for all subscriptions how many
        events they match.
        """
        scope, width = self._scope, len(self._scope.version.ids)
        others: list[I64] = []
        example, size = np.full(len(numbers), -1), np.zeros(width, np.int64)
        step = min(max(_MOST_TRUTHS // (_EVENTS_EACH * max(width, 1)), 1), PIECE)
        for piece in (numbers[begin : begin + step] for begin in range(0, len(numbers), step)):
            events, _ = scope.examples.for_subscriptions(piece, fill=True)
            pairs = scope.examples.match(events)
            size += np.bincount(pairs.number, minlength=width)
            truth = np.zeros((events.num_rows, width), bool)
            truth[pairs.event, pairs.number] = True
            packed = np.packbits(truth, axis=1)
            first = np.where(truth[:, piece].any(axis=0), truth[:, piece].argmax(axis=0), -1)
            met = np.flatnonzero(first >= 0)
            example[len(others) + met] = scope.rows.keep(events, first[met])
            for i, number in enumerate(piece.tolist()):
                among = np.bitwise_and.reduce(packed[truth[:, number]], axis=0)
                found = np.unpackbits(among, count=width).astype(bool) if first[i] >= 0 else np.zeros(width, bool)
                others.append(np.flatnonzero(found & plain & (groups != groups[number])))
        return others, example, size

    def _add_pairs(self, pairs: list[Pair]) -> None:
        """Adds rows of pairs: of the proven ones, and of those that no event disproves."""
        scope = self._scope
        inner, outer, example = np.array([pair[:3] for pair in pairs], np.int64).reshape(-1, 3).T
        is_proven = np.array([pair[3] for pair in pairs], bool)
        scope.rows.add("contained", inner[is_proven], outer[is_proven], example=example[is_proven])
        unsure = np.flatnonzero(~is_proven)
        shown, _ = scope.disprove(inner[unsure], outer[unsure], [pairs[i][4] for i in unsure.tolist()], False)
        unsure = np.delete(unsure, shown)
        reasons = [scope.examples.why(*one) for one in zip(inner[unsure].tolist(), outer[unsure].tolist(), strict=True)]
        scope.rows.add("contained", inner[unsure], outer[unsure], UNDECIDED, reasons, example[unsure])


def _without_following(pairs: list[Pair], above: dict[int, set[int]]) -> list[Pair]:
    """Returns pairs without those that follow from proven ones.

    Subscriptions that match equally many events come in any order, so that some are known too late.

    above : proven to contain a subscription, by its number
    """
    proven: dict[int, set[int]] = {number: set() for number in above}
    for number, other, _, is_proven, _ in pairs:
        if is_proven:
            proven[number].add(other)
    kept = []
    for pair in pairs:
        number, other = pair[:2]
        between = proven[number] - {other}
        if any(other in above[one] for one in between) and _leads(proven, between, number, other):
            proven[number].discard(other)
        else:
            kept.append(pair)
    return kept


def _leads(steps: dict[int, set[int]], begin: set[int], without: int, end: int) -> bool:
    """Returns whether steps lead from some numbers to another, and not through ``without``."""
    seen, ahead = {without, *begin}, list(begin)
    while ahead:
        after = steps[ahead.pop()]
        if end in after:
            return True
        ahead += after - seen
        seen |= after
    return False
