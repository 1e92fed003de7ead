"""Updates of a matcher that is in use.

Every batch that begins after an update sees all of it, and every other batch nothing of it.

What comes is lowered by itself, as for a build, and then joined: its literals and boundaries are
put among the known ones, its predicates get their labels and are appended, and the kind of index
enters its conjunctions. What goes leaves a gap in the numbers of subscriptions and is taken out of
the index. Three things need all to be built anew: no room for a label
(``kernels/labels/boundaries.py``), more gaps than subscriptions, and four times as many
subscriptions as the index was built of, since an index estimates what is frequent when it is built,
and goes by that until it is built again.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze
from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import OptionError, SubscriptionError, shown
from colmatch.events.sample import recount_values
from colmatch.indexing.plan import by_speed
from colmatch.indexing.registry import KINDS
from colmatch.indexing.statistics import Statistics
from colmatch.kernels.layout import Codes, Literals, Predicates
from colmatch.options import Options
from colmatch.schema import Attributes, Schema
from colmatch.subscriptions.ids import GrowingIds, can_be_id, listed_ids, plain_id
from colmatch.subscriptions.intake import Errors, Intake, Source
from colmatch.subscriptions.rejected import Rejected
from colmatch.updates import labels
from colmatch.updates.gate import Gate
from colmatch.updates.predicates import GrowingPredicates, attributes_of, selected
from colmatch.updates.versions import Coding, Version

GAPS_LEAST = 256  # gaps that are left alone however few the subscriptions
GROWN = 4  # an index of so many times the subscriptions that it was built of is built anew
GROWN_LEAST = 1000  # subscriptions below which what an index estimates does not matter


class LiveSet:
    """The subscriptions of a matcher in use: its present version, and what changes it.

    Attributes
    ----------
    gate : held by whoever uses the present version's arrays
    now : the present version
    dead : numbers of deleted subscriptions
    stock : how many subscriptions there were when the index was built
    sample : events that are counted whenever it is (``colmatch/events/sample.py``)
    rebuilds : how often all was built anew
    updates : how many have been made
    """

    def __init__(
        self,
        schema: Schema,
        options: Options,
        version: Version,
        dead: NDArray[np.uint32],
        local_literal: str | None,
        stock: int,
        sample: NDArray[np.uint8],
    ) -> None:
        self.schema = schema
        self.options = options
        self.local_literal = local_literal
        self.gate = Gate()
        self.now = version
        self.dead = set(dead.tolist())
        self.stock = stock
        self.sample = sample
        self.rebuilds = 0
        self.updates = 0
        self._turn = threading.Lock()  # one update at a time, though it is lowered while batches run
        self._source: Source | None = None
        self._begin()

    def _begin(self) -> None:
        """Forgets what only updates need, to be made anew when it is needed."""
        self._arrays: Any = self.now.index.arrays
        self._number: dict[int | str, int] | None = None
        self._predicates: GrowingPredicates | None = None
        self._ids: GrowingIds | None = None
        self._order: NDArray[np.int64] | None = None
        self._ordered: NDArray[np.uint32] | None = None

    def __len__(self) -> int:
        return len(self.now.ids) - len(self.dead)

    # What callers ask for

    def insert(self, subscriptions: Any, errors: Errors, replace: bool) -> list[Rejected]:
        """Inserts as ``Matcher.insert`` and ``replace`` do, and returns what was rejected."""
        self._check_kind()
        with self._turn:
            if self._source is None:
                attributes = Attributes(list(self.now.coding.attributes))
                self._source = Source(self.schema, self.options, attributes, self.now.index.settings.budget)
            new = self._source.take_in(subscriptions, errors)
            ids = self._checked(new.ids)
            old = [number for id in ids if (number := self._numbers().get(id)) is not None]
            if old and not replace:
                known = next(id for id in ids if id in self._numbers())
                raise SubscriptionError(
                    f"subscription {shown(known)} is there already: nothing was inserted; replace() exchanges it"
                )
            if ids:
                self._change(old, ids, new)
                self.local_literal = self.local_literal or new.local_literal
            return new.rejected

    def delete(self, ids: Any) -> None:
        """Deletes as ``Matcher.delete`` does."""
        self._check_kind()
        with self._turn:
            old: dict[int, None] = {}
            numbers, type = self._numbers(), self.now.ids.type
            for id in map(plain_id, listed_ids(ids)):
                number = numbers.get(id) if can_be_id(id, type) else None
                if number is None:
                    raise SubscriptionError(f"there is no subscription {shown(id)}: nothing was deleted")
                old[number] = None
            if old:
                self._change(list(old), [], None)

    def number(self, id: object) -> int | None:
        """Returns the number of a subscription, None where there is none.

        The caller holds the gate.
        """
        id, ids = plain_id(id), self.now.ids
        if not can_be_id(id, ids.type):
            return None
        if self._number is not None:
            return self._number.get(id)
        start = 0
        while (at := pc.index(ids.slice(start), pa.scalar(id, ids.type)).as_py()) >= 0:
            if start + at not in self.dead:
                return int(start + at)
            start += at + 1
        return None

    def live_ids(self) -> pa.Array:
        """Returns the ids of the subscriptions that are there."""
        with self.gate.batch():
            ids = self.now.ids
            if not self.dead:
                return ids
            left = np.ones(len(ids), bool)
            left[list(self.dead)] = False
        return ids.filter(pa.array(left))

    # How it is done

    def _check_kind(self) -> None:
        kind = self.now.index.kind
        if kind.insert is None or kind.delete is None:
            now = self.now
            statistics = Statistics.of(len(now.ids), now.predicates, now.coding.codes)
            best, *others = by_speed([kind for kind in KINDS.values() if kind.insert is not None], statistics)
            raise OptionError(
                f"index {kind.name!r} takes no updates: build with index={best!r}, the fastest by estimate of those that do "
                f"(the others are {', '.join(map(repr, others))}), or build anew after changes"
            )

    def _checked(self, ids: pa.Array) -> list[Any]:
        """Returns the ids as a list, if they are of the matcher's type."""
        type = self.now.ids.type
        if len(ids) and len(self.now.ids) and ids.type != type:
            raise SubscriptionError(f"the ids of this matcher are {type}, those given are {ids.type}")
        found: list[Any] = ids.to_pylist()
        return found

    def _numbers(self) -> dict[int | str, int]:
        if self._number is None:
            ids = self.now.ids.to_pylist() if self.now.numbers is None else self.now.numbers.tolist()
            self._number = {id: number for number, id in enumerate(ids) if number not in self.dead}
        return self._number

    def _conjunctions_of(self, subscriptions: list[int]) -> NDArray[np.int64]:
        """Finds the conjunctions of some subscriptions.

        They are found in an order by subscription: that of the conjunctions themselves, in most
        kinds, or one that is made on the first call; what was inserted since comes after it and is
        in order.
        """
        owner = self.now.predicates.owner
        if self._ordered is None:
            self._order = np.argsort(owner, kind="stable") if np.any(owner[1:] < owner[:-1]) else None
            self._ordered = owner if self._order is None else owner[self._order]
        wanted = np.sort(np.array(subscriptions, np.uint32))  # of the same type, or all owners would be converted
        if self._order is None:
            return _places(owner, wanted)
        base = len(self._ordered)
        return np.concatenate([self._order[_places(self._ordered, wanted)], base + _places(owner[base:], wanted)])

    def _change(self, old: list[int], ids: list[Any], new: Intake | None) -> None:
        """Takes out the subscriptions ``old`` and enters ``ids``, in one step as batches see it."""
        numbers = self._numbers()
        gone = [] if not old else self.now.ids.take(pa.array(old, pa.int64())).to_pylist()
        with self.gate.update():
            before = self.now
            kind = before.index.kind
            # Arrays that some batch is to see longer are handed over read-only: the kind then
            # changes a copy.
            arrays = before.index.arrays if before.pins else self._arrays
            self._arrays = before.index.arrays
            coding, predicates, all_ids = before.coding, before.predicates, before.ids
            anew = self._is_due(len(old), len(ids))
            assert kind.insert is not None and kind.delete is not None
            try:
                if old and not anew:
                    arrays = kind.delete(arrays, predicates, self._conjunctions_of(old))
                if new is not None:
                    begin = len(predicates.owner)
                    coding, predicates, all_ids, room = self._join(new, ids, anew)
                    anew = anew or not room
                    if not anew:
                        arrays = kind.insert(arrays, predicates, begin, len(predicates.owner))
                after, rebuilt = Version(coding, predicates, before.index._replace(arrays=arrays), all_ids), None
                if anew:
                    rebuilt = self._rebuilt(after, self.dead.union(old))
            except BaseException:  # what has changed by now cannot be told, but the predicates are as they were
                self._start_again(self._rebuilt(before, self.dead))
                raise
            if rebuilt is None:
                self.now, self._arrays = after, arrays
                self.dead.update(old)
                for id in gone:
                    del numbers[id]
                numbers.update(zip(ids, range(len(before.ids), len(all_ids)), strict=True))
            else:
                self._start_again(rebuilt)
            self.updates += 1

    def _is_due(self, old: int, new: int) -> bool:
        """Says whether an update of so many subscriptions builds all anew."""
        gaps, total = len(self.dead) + old, len(self.now.ids) + new
        return gaps > max(GAPS_LEAST, total // 2) or (new > 0 and total - gaps >= max(GROWN_LEAST, GROWN * self.stock))

    def _join(self, new: Intake, ids: list[Any], anew: bool) -> tuple[Coding, Predicates, pa.Array, bool]:
        """Joins new subscriptions to what is there.

        Returns what events are read with, the predicates, the ids, and whether there was room for
        labels.

        anew : all is to be built anew, and so labels are spaced anew too
        """
        before, coding = self.now, self.now.coding
        lowered = new.lowered
        attributes = max(len(coding.codes.multi), attributes_of(lowered.predicates))
        codes, literals = _of_attributes(attributes, lowered.codes, lowered.literals)
        predicates, join = before.predicates, None
        if not anew:
            with suppress(labels.NoRoomError):
                join = labels.join(coding.codes, coding.literals, codes, literals)
        room = join is not None
        if join is None:
            predicates, join = labels.join_respaced(predicates, coding.codes, coding.literals, codes, literals)
        if join.recoded:
            known = coding.attributes
            if attributes > len(known):
                known = Attributes(new.attributes.members[:attributes])
            coding = Coding(known, join.codes, join.literals)
            if room:
                before.coding = coding  # the codes that it had may have been written over
        if self._predicates is None or self._ids is None or not room:
            self._predicates, self._ids = (
                GrowingPredicates(predicates),
                GrowingIds(before.ids if len(before.ids) else new.ids.slice(0, 0)),
            )
        self._predicates.cut(before.predicates)
        self._ids.cut(len(before.ids))
        self._predicates.append(labels.relabelled(lowered.predicates, codes, join.label), len(before.ids))
        self._ids.append(ids)
        return coding, self._predicates.view(), self._ids.view(), room

    def _rebuilt(self, version: Version, dead: set[int]) -> Version:
        """Builds all of a version anew, without gaps."""
        kind, predicates, ids = version.index.kind, version.predicates, version.ids
        if dead:
            left = np.ones(len(ids), bool)
            left[list(dead)] = False
            predicates = selected(predicates, np.flatnonzero(left[predicates.owner]))
            predicates = predicates._replace(owner=(np.cumsum(left) - 1)[predicates.owner].astype(np.uint32))
            ids = ids.filter(pa.array(left))
        coding = version.coding
        seen = recount_values(self.sample, coding.attributes, coding.codes, coding.literals)
        arrays, predicates = kind.build(freeze(predicates), coding.codes, seen, version.index.settings)
        return Version(coding, predicates, version.index._replace(arrays=arrays), ids)

    def _start_again(self, rebuilt: Version) -> None:
        self.now, self.dead, self.stock = rebuilt, set(), len(rebuilt.ids)
        self.rebuilds += 1
        self._begin()


def _places(owner: NDArray[np.uint32], wanted: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Finds the places of the wanted among ascending owners."""
    start = np.searchsorted(owner, wanted)
    return members(start, ranges_of(np.searchsorted(owner, wanted, "right") - start))


def _of_attributes(attributes: int, codes: Codes, literals: Literals) -> tuple[Codes, Literals]:
    """Returns the codes and literals of the first attributes.

    What comes after them was for expressions that were refused.
    """
    if attributes == len(codes.multi):
        return codes, literals
    first, literal_first = codes.first[: attributes + 1], literals.first[: attributes + 1]
    codes = Codes(first, codes.bound[: first[-1]], codes.multi[:attributes])
    return codes, Literals(literal_first, literals.offset[: literal_first[-1] + 1], literals.data)
