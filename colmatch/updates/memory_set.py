"""Updates of a matcher that is in use.

A batch takes the present version, and an update makes another version. So a batch that begins after
an update sees all of it, and any other batch sees nothing of it. New subscriptions join the growing
segment, or make a separate segment if they are many. Deleted ones are marked. Segments are merged
in the background (``merger.py``).

An update changes nothing before its version becomes the present one, by one assignment. So an
interrupted update leaves the old version or the new one. If there is a journal, it records
the update before that assignment.

A single insert is eight calls of kernels, and little else. A numpy call of half a microsecond takes
as long as the work itself. With cold caches, as between events, it takes two to five times as long.
One kernel lowers, one finds literals, and one inserts boundaries among the others. One writes
predicates behind the existing ones, and one writes their heads. Three more look up and enter ids.
Kernels take plain arrays: passing a NamedTuple of five read-only arrays takes 2.5 us instead of
0.8. Arrays are frozen once, where they are made. Ids stay numbers, and publishing a version makes
one object.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.errors import ColmatchError, OptionError, Rejected
from colmatch.events.observed import EventWindow
from colmatch.events.sample import keep_events
from colmatch.given.schema import Attributes, definitions_of, with_definitions
from colmatch.kernels.layout import U8, Codes, Literals
from colmatch.kinds.costs import estimates
from colmatch.kinds.registry import FEWEST
from colmatch.kinds.settings import Settings
from colmatch.predicates.columns import attributes_of
from colmatch.subscriptions.change import Change
from colmatch.subscriptions.given import GivenSubscriptions
from colmatch.subscriptions.ids import check_type
from colmatch.subscriptions.intake import Collecting, Errors, NewSubscriptions, SubscriptionReader
from colmatch.subscriptions.rejected import update_all_rejected, update_rejected
from colmatch.subscriptions.tags import NO_TAGS
from colmatch.subscriptions.texts_kept import NO_TEXTS
from colmatch.updates import literals, policy, records, vacuum
from colmatch.updates.combined import combine
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.growing import GrowingSegment
from colmatch.updates.merger import Merger
from colmatch.updates.mutex import FairMutex, Throttle
from colmatch.updates.read_back import Sync, find_targets
from colmatch.updates.redefinition import Redefinition
from colmatch.updates.segments import Segment, build_segment, count_sample
from colmatch.updates.versions import Parts, Version

REPLAYED_MOST = 2**22  # bytes of records that are replayed together


class UpdateLog(Protocol):
    """A record of updates: the journal of a saved matcher."""

    def append(self, before: int, record: bytes) -> None:
        """Writes the record of the update after number ``before``."""

    def close(self) -> None:
        """Ends the journal, which then takes no more records."""

    def stats(self, updates: int) -> dict[str, Any] | None:
        """Returns the journal's entry of ``Matcher.stats`` after this number of updates."""


class MemorySet:
    """The subscriptions of a matcher in use: the present version, updates and merges.

    Attributes
    ----------
    journal : records each update before its version is the present one; None without a journal
    turn : held by the thread that makes a new version
    now : the present version
    observed : some of the last matched events, if the options request them
    """

    def __init__(self, parts: Parts) -> None:
        self.schema = parts.schema
        self.options = parts.options
        self.requested = parts.requested
        self.language = parts.language
        self.now = parts.version
        self.observed = EventWindow(parts.schema.arrow.names)
        self.journal: UpdateLog | None = None
        self._source: SubscriptionReader | None = None
        self._pace = Throttle()
        self.merger = Merger(self)
        self.turn = FairMutex()  # one update at a time

    def parts(self) -> Parts:
        """Returns the parts of a matcher of the present version."""
        return Parts(
            schema=self.schema, options=self.options, requested=self.requested, version=self.now, language=self.language
        )

    def has(self, id: int | str) -> bool:
        """Returns whether an id has a subscription."""
        return self.now.find(id) is not None

    def parts_of(self, id: int | str) -> Parts:
        """Returns parts that contain the subscription of an id, if there is one."""
        return self.parts()

    def stats(self) -> dict[str, Any]:
        """Returns the figures of ``Matcher.stats``."""
        now = self.now
        statistics, sizes = now.statistics(), now.sizes()
        total = sum(sizes.values())
        return {
            **statistics._asdict(),
            "rejected": len(now.rejected),
            "language": self.language.name,
            "missing": self.language.missing,
            "index": now.index.kind.name,
            "settings": now.index.settings.to_dict(),
            "reason": now.reason,
            "costs": estimates(statistics),
            "updates": now.updates,
            "merges": now.merges,
            "merging": self.merger.is_running,
            "merge_error": self.merger.error,
            "journal": None if self.journal is None else self.journal.stats(now.updates),
            "observed": len(self.observed),
            "gaps": now.gone,
            "tags": len(now.tags.names),
            "segments": [
                {"index": segment.index.kind.name, "subscriptions": alive, "deleted": stale}
                for segment, alive, stale in zip(now.segments, now.alive, now.stale, strict=True)
            ],
            "bytes": total,
            "bytes_per_subscription": total / max(statistics.subscriptions, 1),
            "arrays": sizes,
        }

    # Calls of the matcher

    def update(self, requested: Change | Sync | Redefinition, errors: Errors | Collecting) -> list[Rejected]:
        """Deletes, and then inserts, replaces or upserts, as ``Matcher.update`` does.

        Returns the subscriptions that were left out.
        """
        began = perf_counter()
        self._check_open()
        with self.turn.take():
            self._check_open()  # again, since waiting may have taken long
            before, rejected, new, gone = self.now, self.now.rejected, None, None
            change = requested.on(before)
            definitions = before.definitions if change.definitions is None else change.definitions
            if change.given is not None or definitions is not before.definitions:
                # The reader is put back after its work: an interrupted one may be half changed.
                given = GivenSubscriptions(before.ids.slice(0, 0), []) if change.given is None else change.given
                source, self._source = self._source_for(before, definitions), None
                try:
                    new = source.take_in(given, errors)
                except ColmatchError:
                    self._source = source
                    raise
                self._source = source
                if len(new.ids):
                    before = self._of_type(before, new.ids.type)
            after = before
            if change.deletion is not None:
                targets, numbers = find_targets(before, change.deletion)
                if len(numbers):
                    gone, after = targets, self._without(before, numbers)
                    rejected = update_rejected(rejected, targets, ())
            if new is not None:
                if len(new.ids):
                    old, there = after.numbers_of(new.ids)
                    change.check(new.ids, old)
                    after = self._without(after, np.sort(old[old >= 0])) if there else after
                    after = self._with_new(after, new, self.requested)
                rejected = update_rejected(rejected, new.ids, new.rejected)
            if rejected is not before.rejected or definitions is not before.definitions:
                after = after.with_changes(rejected=rejected, definitions=definitions, updates=self.now.updates + 1)
            self._publish(after, lambda: records.of_update(new, gone, change.definitions))
        self.merger.start_if_due()
        self._pace.pause_after(began)
        return [] if new is None else new.rejected

    def snapshot(self) -> MemorySet:
        """Returns the present version as a separate set, as ``Matcher.snapshot`` does."""
        return MemorySet(replace(self.parts(), version=self.now.apart()))

    def restore(self, version: Version, record: Callable[[], bytes]) -> None:
        """Makes a version of another set the present one, as ``Matcher.restore`` does.

        record : makes the record of it for the journal
        """
        with self.turn.take():
            self._check_open()
            now = self.now
            after = version.apart().with_changes(updates=now.updates + 1, merges=now.merges, lineage=object())
            self._source = None  # first, since an interrupted restore must leave no reader of another lineage
            self._publish(after, record)
        self.merger.start_if_due()

    def compact(self, sample: Any) -> None:
        """Merges all segments into one, as ``Matcher.compact`` does."""
        self._check_open()
        kept = None
        if sample is not None:
            now, lenient = self.now, self.options.missing_columns == "null"
            kept = keep_events(sample, self.options.batch_rows, self.schema, now.attributes, now.literals, lenient)
        self.merger.compact(kept)

    def publish_sample(self, after: Version, sample: U8) -> None:
        """Publishes a version that was built with another sample. The caller has the turn."""
        after = after.with_changes(sample=sample, updates=self.now.updates + 1)
        self._publish(after, lambda: records.of_sample(sample))

    def close(self) -> None:
        """Ends the merges and the journal, as ``Matcher.close`` does."""
        self.merger.stop()
        if self.journal is not None:
            with self.turn.take():
                self.journal.close()

    def replay(self, journalled: Iterable[tuple[int, bytes]], read_saved: Callable[[bytes], Parts]) -> None:
        """Repeats updates by their numbers and records, many together.

        read_saved : reads a matcher that was restored

        Raises ValueError, TypeError, KeyError, IndexError, struct.error: a record cannot be
        understood.
        """
        for number, type, together in _batches(journalled):
            with self.turn.take():
                if records.is_restored(together[0]):
                    parts = read_saved(records.restored(together[0]))
                    if parts.schema != self.schema or parts.language != self.language:
                        raise ValueError("a matcher of another schema or language was restored")
                    self.now = parts.version.with_changes(updates=number, merges=self.now.merges, lineage=object())
                else:
                    self.now = self._replayed(number, type, together)
            self.merger.start_if_due()

    def _replayed(self, number: int, type: pa.DataType | None, together: list[bytes]) -> Version:
        """Returns the present version after some updates, the last with a number."""
        before = self.now if type is None else self._of_type(self.now, type)
        change = records.read(together, Attributes(list(before.attributes)))
        if change.sample is not None:
            before = before.with_changes(sample=change.sample)
        old, _ = before.numbers_of(change.touched)
        after = self._without(before, np.unique(old[old >= 0]))
        if len(change.new.ids):
            try:
                after = self._with_new(after, change.new, self.requested)
            except OptionError:  # the kind refuses so many: they came in smaller updates
                few = FEWEST.settings.under(self.requested.dnf_budget)
                after = self._with_new(after, change.new, few)
        rejected = update_all_rejected(before.rejected, change.ids, change.update, change.rejected)
        definitions = before.definitions if change.definitions is None else change.definitions
        return after.with_changes(updates=number, rejected=rejected, definitions=definitions)

    # Steps of updates

    def _publish(self, after: Version, record: Callable[[], bytes]) -> None:
        """Makes another version the present one. Writes its record first."""
        if after is self.now:
            return
        if self.journal is not None:
            self.journal.append(self.now.updates, record())
        self.now = after

    def _check_open(self) -> None:
        if self.merger.is_stopped:
            raise OptionError("the matcher is closed and takes no updates any more: open or build another one")

    def _source_for(self, before: Version, definitions: Mapping[str, str] | None = None) -> SubscriptionReader:
        """Returns the reader of new subscriptions, which knows the ids of attributes.

        definitions : for them, by default those of the version
        """
        definitions = before.definitions if definitions is None else definitions
        source, used = self._source, before.attributes.used
        much = source is not None and policy.is_much(source.attributes.used - used, source.attributes.used)
        options = self.options
        other = source is not None and definitions_of(source.schema) is not definitions
        if source is None or much or other or (source.options is not options and source.options != options):
            # ids that no version uses any more are free for the new reader
            attributes, schema = Attributes(list(before.attributes)), with_definitions(self.schema, definitions)
            source = SubscriptionReader(schema, options, attributes, self.requested.budget, self.language)
        return source

    def _of_type(self, before: Version, type: pa.DataType) -> Version:
        """Returns a version that takes ids of a type. An empty version drops its old ids."""
        old_ids = before.ids
        if old_ids.type is type or old_ids.type == type or not len(old_ids):
            return before
        if len(before):
            check_type(old_ids.type, type)
        nothing = combine((), (), np.empty(0, bool))
        segment, reason = build_segment(self.requested, nothing, nothing.codes, None, 0, 0)
        return before.with_changes(
            segments=(segment,), bases=(0,), growing=False, deleted=DeletedNumbers(), alive=(0,), stale=(0,), gone=0,
            ids=old_ids.slice(0, 0), tags=NO_TAGS, texts=NO_TEXTS, reason=reason,
        )  # fmt: skip

    def _without(self, before: Version, numbers: NDArray[np.int64]) -> Version:
        """Returns a version without the subscriptions of some ascending numbers."""
        if not len(numbers):
            return before
        segments, alive, stale = list(before.segments), list(before.alive), list(before.stale)
        begin = 0
        for i, end in enumerate((*before.bases[1:], len(before.ids))):
            stop = bisect_left(numbers, end, begin)
            if stop == begin:
                continue
            segment = segments[i]
            alive[i] -= stop - begin
            if isinstance(segment, GrowingSegment) and i >= before.frozen_count:
                segments[i] = segment.without(numbers[begin:stop] - before.bases[i])
            else:
                stale[i] += stop - begin
            begin = stop
        return before.with_changes(
            segments=tuple(segments),
            alive=tuple(alive),
            stale=tuple(stale),
            deleted=before.deleted.with_more(numbers),
            gone=before.gone + len(numbers),
            updates=self.now.updates + 1,
        )

    def _with_new(self, before: Version, new: NewSubscriptions, requested: Settings) -> Version:
        """Returns a version with new subscriptions. Many of them make a separate segment."""
        lowered, named, attributes = new.lowered, before.attributes, len(before.attributes)
        if attributes < len(new.attributes):
            attributes = max(attributes, attributes_of(lowered.predicates))
        # Add literals, ids, attributes and tags
        codes, own_literals = _of_attributes(attributes, lowered.codes, lowered.literals)
        vocabulary, codes, move = literals.join_literals(before.literals, codes, own_literals, attributes)
        segments, ids = list(before.segments), before.ids.extended(new.ids)
        if move is not None:
            segments = [segment.with_codes(literals.move_keys(segment.codes, move)) for segment in segments]
        if named.used < new.attributes.used:
            named = vacuum.with_new(named, new.attributes, vacuum.used_attributes(lowered.predicates, codes))
        changes: dict[str, Any] = {
            "attributes": named,
            "literals": vocabulary,
            "session_parts": before.session_parts.with_others(new.session_parts),
            "ids": ids,
            "tags": before.tags.extended(new.tags, len(before.ids)),
            "texts": before.texts.extended(new.texts, len(new.ids)),
            "updates": self.now.updates + 1,
        }
        # Index the subscriptions in a new segment or in the growing one
        last, count = segments[-1], len(new.ids)
        if count > policy.GROWING_MOST:
            seen = count_sample(before.sample, named, codes, vocabulary)
            segment, _ = build_segment(requested, lowered.predicates, codes, seen, count, count)
            return _append_segment(before, [*segments, segment], False, changes)
        by_key = partial(count_sample, before.sample, named, None, vocabulary)
        if before.growing and isinstance(last, GrowingSegment) and last.size + count <= policy.GROWING_MOST:
            base, size = before.bases[-1], last.size
            segments[-1] = last.with_more(
                lowered.predicates, codes, count, lambda: ~before.deleted.among(base, size), by_key
            )
            alive = (*before.alive[:-1], before.alive[-1] + count)
            return before.with_changes(segments=tuple(segments), alive=alive, **changes)
        begun = GrowingSegment.begin(lowered.predicates, codes, self.requested, count, by_key)
        return _append_segment(before, [*segments, begun], True, changes)


def _batches(journalled: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, pa.DataType | None, list[bytes]]]:
    """Yields neighbouring records with ids of one type: last number, type, and records.

    The record of a restored version is alone.
    """
    together: list[bytes] = []
    size, last, type, alone = 0, 0, None, False
    for number, record in journalled:
        own, was_alone, alone = records.id_type(record), alone, records.is_restored(record)
        mixed = size + len(record) > REPLAYED_MOST or (type is not None and own not in (None, type))
        if together and (mixed or alone or was_alone):
            yield last, type, together
            together, size, type = [], 0, None
        together.append(record)
        size, last, type = size + len(record), number, type or own
    if together:
        yield last, type, together


def _append_segment(version: Version, segments: list[Segment], growing: bool, changes: dict[str, Any]) -> Version:
    """Returns a version with one more segment, the last of ``segments``, and other changes."""
    return version.with_changes(
        **changes,
        segments=tuple(segments),
        bases=(*version.bases, len(version.ids)),
        alive=(*version.alive, segments[-1].size),
        stale=(*version.stale, 0),
        growing=growing,
    )


def _of_attributes(attributes: int, codes: Codes, literals: Literals) -> tuple[Codes, Literals]:
    """Returns the codes and literals of the first attributes.

    Later attributes belong to rejected expressions only.
    """
    if attributes >= len(codes.multi):
        return codes, literals
    first, literal_first = codes.first[: attributes + 1], literals.first[: attributes + 1]
    codes = Codes(first, codes.bound[: first[-1]], codes.multi[:attributes])
    return codes, Literals(literal_first, literals.offset[: literal_first[-1] + 1], literals.data)
