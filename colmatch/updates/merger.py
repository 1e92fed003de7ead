"""Merges of segments, in a background thread that exists only while a merge is due.

A merge reads one version and changes nothing. Its result enters the version that is present by
then, with all deletes since the start. A merge that fails leaves everything unchanged. It is tried
again when there is another segment, and ``stats()`` has its error. If the kind refuses the
subscriptions, the younger segments are merged into the kind of the growing segment.

No batch waits for a merge. Kernels release the interpreter's lock, and so does nearly all of numpy.
In a test, a thread did nothing but request the lock during a merge of a million. No step kept the
lock for longer than 6 ms. Before, the test had found ``np.repeat`` (135 ms) and ``np.bincount`` (7
ms for 5 million predicates). Kernels have replaced both. Hints and used attributes of a new segment
are made before the switch (``Segment.prepare``): the first batch took 35 ms longer without that.
"""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from colmatch.errors import OptionError
from colmatch.events.observed import EventWindow
from colmatch.given.options import Options
from colmatch.kernels.layout import U8
from colmatch.kinds.settings import Settings
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.tags import NO_TAGS, Tags
from colmatch.subscriptions.texts_kept import NO_TEXTS, KeptTexts
from colmatch.updates import policy
from colmatch.updates.combined import combine
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.growing import for_few
from colmatch.updates.mutex import FairMutex
from colmatch.updates.segments import Segment, build_segment, count_sample
from colmatch.updates.vacuum import drop_unused, gather_literals
from colmatch.updates.versions import Version

_log = logging.getLogger("colmatch")


class MergeResult(NamedTuple):
    """The result of a merge: one segment in place of several."""

    start: int  # place of the first replaced segment
    segments: tuple[Segment, ...]
    base: int  # number of their first subscription
    left: NDArray[np.bool_]  # whether each number was of a subscription
    segment: Segment
    reason: str
    ids: Ids | None  # of the subscriptions that were left, by new number; None where numbers stay
    tags: Tags  # of the same subscriptions
    texts: KeptTexts  # of the same subscriptions
    seen: U8 | None  # observed events that were counted; None where the sample was counted
    lineage: object  # of the version that was merged


class StoppedError(Exception):
    """A merge was given up, since the matcher is closed."""


class VersionHolder(Protocol):
    """A holder of the present version, as a ``Merger`` needs it: a ``MemorySet``."""

    turn: FairMutex
    now: Version
    requested: Settings
    options: Options
    observed: EventWindow

    def publish_sample(self, after: Version, sample: U8) -> None: ...


class Merger:
    """A merger of the segments of a matcher, for merges that are due.

    Attributes
    ----------
    error : message of the last merge's error, or of the requested kind's refusal; or None
    is_stopped : whether merges have ended for good
    """

    def __init__(self, live: VersionHolder) -> None:
        self._live = weakref.ref(live)
        self.error: str | None = None
        self.is_stopped = False
        self._failed: tuple[Segment, ...] = ()  # segments of a failed merge, which are not tried again
        self._one = FairMutex()  # one merge at a time
        self._thread: threading.Thread | None = None  # in a forked child, it is not alive
        _all.add(self)

    @property
    def is_running(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_alive()

    def start_if_due(self) -> None:
        """Starts a merge in a thread, if one is due.

        If there are too many segments, it first merges at once.
        """
        live = self._live()
        assert live is not None
        while (
            not self.is_stopped
            and live.now.frozen_count > policy.SEGMENTS_MOST
            and self._candidates(live.now) is not None
        ):
            with self._one.take():
                self._merge_due(live)
        if not self.is_stopped and self._candidates(live.now) is not None and not self.is_running:
            self._thread = threading.Thread(target=self._run, args=(live,), name="colmatch-merge", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:  # no more threads: the next update looks again
                _log.warning("segments are not merged: %s", error)

    def compact(self, sample: U8 | None) -> None:
        """Merges all segments. Returns when the merge is done, and raises its errors.

        sample : replaces the present sample, unless it is None
        """
        live = self._live()
        assert live is not None
        done = False
        with self._one.take():
            while not done:  # again if literals got other labels during the merge
                with live.turn.take():
                    live.now = now = live.now.with_changes(growing=False)
                done = len(now.segments) == 1 and not now.gone and not len(now.segments[0].codes.label)
                try:
                    if sample is not None or not done or self._take_observed(live) is not None:
                        done = self._publish(
                            live, self._merge(live, now, 0, now.frozen_count, live.requested, sample), sample
                        )
                except StoppedError:
                    raise OptionError("the matcher was closed while it was compacted: nothing has changed") from None
            self._vacuum(live)
        self.error = None

    def stop(self) -> None:
        """Ends the thread. It gives up a merge after the present step."""
        self.is_stopped = True
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join()

    def _candidates(self, now: Version) -> tuple[int, int] | None:
        span = policy.choose_segments(now)
        return None if span is None or now.segments[: now.frozen_count] == self._failed else span

    def _run(self, live: VersionHolder) -> None:
        """Merges until no merge is due. If there are several threads, one merges."""
        while True:
            self._thread = None  # before the last look, so that a later update sees that no thread merges
            if self.is_stopped or self._candidates(live.now) is None:
                return
            self._thread = threading.current_thread()
            with self._one.take():
                self._merge_due(live)

    def _merge_due(self, live: VersionHolder) -> None:
        """Runs one merge that is due. Its error is kept: nothing has changed then."""
        now = live.now
        span = self._candidates(now)
        if span is None:
            return
        try:
            try:
                result, message = self._merge(live, now, *span, live.requested), None
            except OptionError as refused:  # merge the younger segments in the growing segment's kind
                start, message = max(span[0], 1), str(refused)
                if span[1] - start < 2:
                    raise
                result = self._merge(live, now, start, span[1], for_few(live.requested))
            self._publish(live, result)
            self._vacuum(live)
            self.error, self._failed = message, ()
        except StoppedError:
            pass
        except BaseException as error:
            self.error, self._failed = str(error) or type(error).__name__, now.segments[: now.frozen_count]
            _log.warning("segments %d to %d could not be merged: %r", span[0], span[1] - 1, error)

    def _merge(
        self, live: VersionHolder, now: Version, start: int, stop: int, requested: Settings, sample: U8 | None = None
    ) -> MergeResult:
        """Merges neighbouring segments into one. If these are all, numbers have no gaps.

        sample : events to count; if None, the observed events, or else the version's sample
        """
        self._check()
        # Choose the events to count
        observed = self._take_observed(live) if sample is None else None
        counted = next(events for events in (sample, observed, now.sample) if events is not None)
        # Combine the segments
        segments, base = now.segments[start:stop], now.bases[start]
        end = now.bases[stop] if stop < len(now.bases) else len(now.ids)
        left = ~now.deleted.among(base, end - base)
        count, ids, tags, texts = int(np.count_nonzero(left)), None, NO_TAGS, NO_TEXTS
        whole = start == 0 and stop == now.frozen_count
        all = combine(segments, now.bases[start:stop], left, dense=whole)
        self._check()
        # Index the combined segment
        seen = count_sample(counted, now.attributes, all.codes, now.literals)
        self._check()
        segment, reason = build_segment(requested, all, all.codes, seen, count if whole else end - base, count)
        self._check()
        del all
        if whole:
            ids = now.ids.slice(0, end)
            ids = ids.filter(left) if count < end else ids
            ids.prepare()
            tags, texts = now.tags.filter(left), now.texts.filter(left)
        return MergeResult(start, segments, base, left, segment, reason, ids, tags, texts, observed, now.lineage)

    def _take_observed(self, live: VersionHolder) -> U8 | None:
        """Returns the observed events; None where there are too few of them."""
        return live.observed.sample(live.options.observe)

    def _check(self) -> None:
        if self.is_stopped:
            raise StoppedError

    def _publish(self, live: VersionHolder, result: MergeResult, sample: U8 | None = None) -> bool:
        """Replaces the merged segments by the result, with the deletes since the merge began.

        A sample, if there is one, becomes the sample of the version. Returns False if the segments
        have changed: their literals have other labels now, or another version was restored.
        """
        start, stop = result.start, result.start + len(result.segments)
        with live.turn.take():
            now = live.now
            if now.segments[start:stop] != result.segments or now.lineage is not result.lineage:
                return False
            size = len(result.left)
            gone = result.left & now.deleted.among(result.base, size)
            stale = int(np.count_nonzero(gone))
            after = now.with_changes(
                segments=(*now.segments[:start], result.segment, *now.segments[stop:]),
                bases=(*now.bases[: start + 1], *now.bases[stop:]),
                alive=(*now.alive[:start], sum(now.alive[start:stop]), *now.alive[stop:]),
                stale=(*now.stale[:start], stale, *now.stale[stop:]),
                reason=result.reason if start == 0 else now.reason,
                merges=now.merges + 1,
            )
            if result.seen is not None:
                after = after.with_changes(sample=result.seen)
            if result.ids is not None:
                after = _renumber(after, result, gone, size)
            if sample is None:
                live.now = after
            else:
                live.publish_sample(after, sample)
        return True

    def _vacuum(self, live: VersionHolder) -> None:
        """Drops attributes and literals that no segment uses any more."""
        tidy = gather_literals(live.now)
        with live.turn.take():
            live.now = drop_unused(live.now, tidy)


def _renumber(version: Version, result: MergeResult, gone: NDArray[np.bool_], size: int) -> Version:
    """Returns the version with its first ``size`` numbers renumbered without gaps."""
    ids, shift = result.ids, size - result.segment.size
    assert ids is not None
    tail = len(version.ids) - size
    later = np.flatnonzero(version.deleted.among(size, tail)) + result.segment.size
    deleted_bits = np.concatenate([np.flatnonzero(gone[result.left]), later])
    return version.with_changes(
        ids=ids.extended(version.ids.slice(size, len(version.ids))) if tail else ids,
        tags=result.tags.extended(version.tags.from_number(size), result.segment.size),
        texts=result.texts.extended(version.texts.take(np.arange(size, size + tail)), tail) if tail else result.texts,
        bases=(0, *(base - shift for base in version.bases[1:])),
        deleted=DeletedNumbers().with_more(deleted_bits),
        gone=len(deleted_bits),
    )


_all: weakref.WeakSet[Merger] = weakref.WeakSet()


def _stop_all() -> None:
    for merger in list(_all):
        merger.stop()


atexit.register(_stop_all)
