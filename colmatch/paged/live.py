"""The counterpart of ``updates/live.py`` for a matcher that lives in a file of pages.

An update changes pages in the cache and is in the log when the call returns; what goes wrong before
leaves the file as it was. What describes the subscriptions (schema, attributes, string literals,
what was rejected) is one chain of pages: a saved matcher without subscriptions.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.errors import OptionError, StoreError, SubscriptionError, shown
from colmatch.events.sample import kept_events
from colmatch.indexing.pbtree import KIND, PbtreeSettings
from colmatch.indexing.registry import FEWEST
from colmatch.kernels.layout import U8
from colmatch.options import Options
from colmatch.paged import build, store
from colmatch.paged.cache import StaleError, read_error
from colmatch.paged.file import ROOT, PageFile, header_bytes
from colmatch.paged.records import Keyed, coded, packed, slots_needed, tags_of, unpacked
from colmatch.paged.state import PagedVersion
from colmatch.paged.store import PageStore
from colmatch.schema import Attributes
from colmatch.store import saved
from colmatch.store.replacing import replacing
from colmatch.subscriptions.ids import Ids, can_be_id, listed, plain_id, wanted_ids
from colmatch.subscriptions.intake import Errors, Intake, Source, read
from colmatch.subscriptions.rejected import following
from colmatch.subscriptions.tags import NO_TAGS, Tags
from colmatch.updates import literals
from colmatch.updates.combined import combine
from colmatch.updates.deleted import Deleted
from colmatch.updates.initial import Given, indexed_parts
from colmatch.updates.segments import indexed
from colmatch.updates.turn import Turn
from colmatch.updates.versions import Parts, Version

T = TypeVar("T")
TRIES = 100  # times that reading begins again while another process changes the file
PIECE = 8192  # records that are read at once


class PagedSet:
    """Subscriptions in a file of pages.

    Attributes
    ----------
    base : all that is not in pages of its own: a matcher without subscriptions
    lock : held by who uses the cache
    """

    journal = None

    def __init__(self, path: str, asked: PbtreeSettings | None = None, options: Options | None = None) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.turn = Turn()
        settings = asked or PbtreeSettings(path=path)
        self._settings = settings
        self.file = PageFile(path, settings.cache_bytes, settings.fsync)
        self.store = PageStore(self.file)
        self._known: tuple[int, int] | None = None
        self._blob = -1
        self._closed = False
        self._source: Source | None = None
        self._whole: tuple[tuple[int, int], Version] | None = None
        self.base: Parts
        self.reading(lambda: None)
        if asked is None:
            kept = self.base.asked
            assert isinstance(kept, PbtreeSettings)
            self._settings = PbtreeSettings(kept.dnf_budget, path, kept.cache_bytes, kept.fsync)
            self.file.fsync = kept.fsync
            self.file.cache.budget(kept.cache_bytes)
        self.options = options or self.base.options
        self._pid = os.getpid()

    # Reading

    def reading(self, work: Callable[[], T]) -> T:
        """Does something with the pages of one state, from the beginning if others change them.

        Raises
        ------
        StoreError : the file is damaged, or cannot be read
        """
        with self.lock:
            for _ in range(TRIES):
                try:
                    self.file.refresh()
                    self._learn()
                    return work()
                except StaleError:
                    continue
                except OSError as error:
                    raise read_error(self.path, error) from error
            raise StoreError(f"{self.path} is changed by another process faster than it can be read: try again")

    def _learn(self) -> None:
        """Reads what describes the subscriptions, where it has changed."""
        state = self.file.generation, self.file.stamp
        if state == self._known:
            return
        page, size = self.store.root(store.BLOB_PAGE), self.store.root(store.BLOB_BYTES)
        if page != self._blob or not self.file.is_writer:
            data = self.store.read_chain(page).tobytes()[:size]
            self.base = saved.from_bytes(data)
            self._blob = page
        self._known = state

    @property
    def schema(self) -> Any:
        return self.base.schema

    @property
    def asked(self) -> PbtreeSettings:
        return self._settings

    @property
    def language(self) -> Any:
        return self.base.language

    @property
    def now(self) -> PagedVersion:
        """What is there now."""
        return self.reading(lambda: PagedVersion.of(self, self.base.version, self.store))

    def places(self, ids: Ids) -> NDArray[np.int64]:
        """Returns where the record of each id is: page << 16 | word, -1 where there is none."""
        out = np.full(len(ids), -1)
        is_text = ids.numbers is None
        if len(ids) and is_text != bool(self.store.root(store.TEXT_IDS)):
            return out
        keys = build.id_keys(ids).tolist()
        for i, key in enumerate(keys):
            slots = self.store.slots_of(0, key)
            if not len(slots):
                continue
            entry = self.store.slots(slots).astype(np.int64)
            places = entry[:, 2] << 16 | entry[:, 3]
            if is_text:
                found = unpacked(*self.store.records(places >> 16, places & 0xFFFF)).ids.array.to_pylist()
                places = places[[own == ids[i] for own in found]]
            if len(places):
                out[i] = places[0]
        return out

    def all_places(self) -> NDArray[np.int64]:
        """Returns where all records are, in the order of their first slots."""
        count = self.store.root(store.SLOT_COUNT)
        entry = self.store.slots(np.arange(count)).astype(np.int64)
        places = np.where(entry[:, 2] > 0, entry[:, 2] << 16 | entry[:, 3], -1)
        distinct, first = np.unique(places, return_index=True)
        return places[np.sort(first[distinct >= 0])]

    def keyed(self, places: NDArray[np.int64]) -> Keyed:
        """Returns the subscriptions of some records."""
        return unpacked(*self.store.records(places >> 16, places & 0xFFFF))

    def version_of(self, places: NDArray[np.int64]) -> Version:
        """Returns some subscriptions as a version in memory."""
        some = self.keyed(places)
        version = self.base.version
        multi: U8 = contiguous(np.array(version.attributes.multi, np.uint8))
        predicates, codes = coded(some, multi)
        count = len(some.ids)
        asked = FEWEST.settings.under(self._settings.dnf_budget)
        segment, _ = indexed(asked, predicates, codes, None, count, count)
        ids = some.ids if count or not self.store.root(store.TEXT_IDS) else Ids(pa.array([], pa.string()))
        return version.changed(
            segments=(segment,),
            bases=(0,),
            living=(count,),
            found_dead=(0,),
            deleted=Deleted(),
            gone=0,
            ids=ids,
            tags=_tags([tags_of(text) for text in some.tags]) if any(some.tags) else NO_TAGS,
            updates=self.store.updates,
        )

    def whole(self) -> Version:
        """Returns all subscriptions as a version in memory, which stays until the next update."""

        def read_all() -> Version:
            state = self.file.generation, self.file.stamp
            known = self._whole
            if known is None or known[0] != state:
                known = state, self.version_of(self.all_places())
                self._whole = known
            return known[1]

        return self.reading(read_all)

    def parts(self) -> Parts:
        """Returns what a matcher in memory is made of that has the same subscriptions."""
        asked = PbtreeSettings(self._settings.dnf_budget)
        return Parts(
            schema=self.schema, options=self.options, asked=asked, version=self.whole(), language=self.language
        )

    def parts_of(self, id: int | str) -> Parts:
        """Returns as ``parts`` with one subscription alone.

        Raises
        ------
        SubscriptionError : there is none
        """

        def find() -> Parts:
            type = self.now.id_type
            own = plain_id(id)
            places = self.places(Ids(pa.array([own], type))) if can_be_id(own, type) else np.array([-1])
            if places[0] < 0:
                raise SubscriptionError(f"there is no subscription {shown(id)}")
            version = self.version_of(places)
            return Parts(
                schema=self.schema, options=self.options, asked=self._settings, version=version, language=self.language
            )

        return self.reading(find)

    # Changing

    @contextmanager
    def _updating(self) -> Iterator[None]:
        """Makes one update of what is done inside, or none."""
        self._check_open()
        with self.turn.take(), self.lock:
            self._check_open()
            was_writer = self.file.is_writer
            self.file.begin_writing()
            if not was_writer:
                self._known = None
                self._blob = -1
                self.store.forget_needed()
            self.reading(lambda: None)
            base, blob, pages = self.base, self._blob, self.file.pages
            self.file.cache.hold()
            try:
                yield
                words = self.file.edit(ROOT)
                updates = self.store.updates + 1
                words[store.UPDATES], words[store.UPDATES_HIGH] = updates & 0xFFFFFFFF, updates >> 32
                self.file.commit()
            except BaseException as error:
                self.file.give_up(pages)
                self.store.forget_needed()
                self.base, self._blob, self._source = base, blob, None
                if isinstance(error, _Nothing):
                    return
                raise
            self.store.keep_needed()
            self._known = self.file.generation, self.file.stamp

    def _check_open(self) -> None:
        if self._closed:
            raise OptionError("the matcher is closed and takes no updates any more: open or build another one")
        if self._pid != os.getpid():
            raise OptionError(f"{self.path} was opened before this process was forked: open it again to update it")

    def insert(
        self, subscriptions: Any, errors: Errors, replace: bool, constants: Any = None, tags: Any = None
    ) -> None:
        """Inserts as ``Matcher.insert`` and ``replace`` do."""
        self._check_open()
        given = read(subscriptions, self.language, constants, tags)
        with self._updating():
            source = self._source_of()
            new = source.take_in(given, errors)
            type = self.now.id_type
            if len(new.ids) and new.ids.type != type and self.store.root(store.SUBSCRIPTIONS):
                raise SubscriptionError(f"the ids of this matcher are {type}, those given are {new.ids.type}")
            old = self.places(new.ids)
            if (old >= 0).any() and not replace:
                known = new.ids[int((old >= 0).argmax())]
                raise SubscriptionError(
                    f"subscription {shown(known)} is there already: nothing was inserted; replace() exchanges it"
                )
            if not len(new.ids) and not new.rejected:
                raise _Nothing
            self._remove(np.unique(old[old >= 0]))
            self._add(new, source)

    def delete(self, ids: Any) -> None:
        """Deletes as ``Matcher.delete`` does."""
        self._check_open()
        values = listed(ids)
        with self._updating():
            wanted = wanted_ids(values, self.now.id_type)
            old = self.places(wanted)
            if (old < 0).any():
                raise SubscriptionError(
                    f"there is no subscription {shown(wanted[int(old.argmin())])}: nothing was deleted"
                )
            if not len(old):
                raise _Nothing
            self._remove(np.unique(old))
            version = self.base.version
            rejected = following(version.rejected, wanted, ())
            if rejected is not version.rejected:
                self._describe(version.changed(rejected=rejected))

    def _source_of(self) -> Source:
        if self._source is None:
            attributes = Attributes(list(self.base.version.attributes))
            self._source = Source(self.schema, self.options, attributes, self._settings.budget, self.language)
        return self._source

    def _remove(self, places: NDArray[np.int64]) -> None:
        """Takes the subscriptions of some records away."""
        for begin in range(0, len(places), PIECE):
            some = places[begin : begin + PIECE]
            known = self.keyed(some)
            self.store.change(build.all_entries(known), False)
            self.store.give_slots(known.slots.tolist())
            for place in some.tolist():
                self.store.remove_record(place >> 16, place & 0xFFFF)
        self.store.set_root(store.SUBSCRIPTIONS, self.store.root(store.SUBSCRIPTIONS) - len(places))

    def _add(self, new: Intake, source: Source) -> None:
        """Enters subscriptions, and what describes them."""
        version, attributes = self.base.version, source.attributes
        count = len(attributes)
        predicates, codes, own, _ = new.lowered
        known, codes, move = literals.joined(version.literals, codes, own, count)
        if move is not None:
            self._rebuild_with(move)
        if len(new.ids):
            _, without = slots_needed(predicates.owner, len(new.ids))
            slots = self.store.take_slots(len(predicates.owner) + len(without))
            some = build.keyed(predicates, codes, new.ids, new.tags, slots)
            entries = build.all_entries(some)
            self.store.change(entries, True)
            words, first = packed(some)
            spots = [self.store.write_record(words[a:b]) for a, b in zip(first[:-1].tolist(), first[1:].tolist())]
            page, word = np.array(spots, np.int64).T
            self.store.set_slots(slots.tolist(), build.slot_entries(some, page, word))
            self.store.set_needed(slots.tolist(), entries.needed.tolist())
            self.store.set_root(store.SUBSCRIPTIONS, self.store.root(store.SUBSCRIPTIONS) + len(new.ids))
            self.store.set_root(store.TEXT_IDS, int(new.ids.numbers is None))
            self.store.set_root(store.TREE_COUNT, max(self.store.root(store.TREE_COUNT), count + 3))
        changes: dict[str, Any] = {}
        if known is not version.literals:
            changes["literals"] = known
        if len(version.attributes) < count:
            changes["attributes"] = Attributes(list(attributes))
        if version.local_literal is None and new.local_literal is not None:
            changes["local_literal"] = new.local_literal
        rejected = following(version.rejected, new.ids, new.rejected)
        if rejected is not version.rejected:
            changes["rejected"] = rejected
        if changes:
            self._describe(self.base.version.changed(**changes))

    def _rebuild_with(self, move: literals.Move) -> None:
        """Gives all predicates the keys that string literals have now."""
        places = self.all_places()
        version = self.version_of(places)
        codes = freeze(literals.moved(version.segments[0].codes, move))
        predicates = version.segments[0].predicates
        old = self.keyed(places)
        new = build.keyed(predicates, codes, old.ids, NO_TAGS, old.slots)._replace(tags=old.tags)
        self.store.change(build.all_entries(old), False)
        self.store.change(build.all_entries(new), True)
        words, first = packed(new)
        for i, place in enumerate(places.tolist()):  # of the same lengths
            self.store.write_over(place >> 16, place & 0xFFFF, words[first[i] : first[i + 1]])

    def _describe(self, version: Version) -> None:
        """Writes what describes the subscriptions."""
        self.base = Parts(
            schema=self.schema, options=self.options, asked=self._settings, version=version, language=self.language
        )
        data = saved.to_bytes(self.base)
        self.store.remove_chain(self.store.root(store.BLOB_PAGE))
        self._blob = self.store.write_chain(build.words_of(data))
        self.store.set_root(store.BLOB_PAGE, self._blob)
        self.store.set_root(store.BLOB_BYTES, len(data))

    def compact(self, sample: Any) -> None:
        """Writes the file anew, as ``Matcher.compact`` does."""
        self._check_open()
        version = self.now
        kept = version.sample
        if sample is not None:
            lenient = self.options.missing_columns == "null"
            kept = kept_events(
                sample, self.options.batch_rows, self.schema.arrow.names, version.attributes, version.literals, lenient
            )
        with self.turn.take(), self.lock:
            self.file.begin_writing()
            self._known = None
            whole = self.whole()
            segment = combine(whole.segments, whole.bases, whole.live(), dense=True)
            parts = Parts(
                schema=self.schema,
                options=self.options,
                asked=self._settings,
                version=self.base.version.changed(sample=kept),
                language=self.language,
            )
            some = build.keyed(segment.by_subscription(), segment.codes, whole.ids, whole.tags)
            updates = self.store.updates + (sample is not None)
            made = build.made(some, len(whole.attributes), saved.to_bytes(parts), updates)
            generation = build.next_generation(self.file.log, self.file.generation)
            build.write(self.path, made, generation, self.file.stamp + 1)
            self.file.close_writing()
            self.file.begin_writing()
            self._known = None
            self._blob = -1
            self._whole = None
            self.reading(lambda: None)

    def save(self, path: str) -> None:
        """Writes a copy of the file to a path; to its own, what is in the log goes to the file."""
        with self.turn.take(), self.lock:
            if os.path.realpath(path) == os.path.realpath(self.path):
                self.file.begin_writing()
                self.file.checkpoint()
                return
            self.reading(lambda: self._copy(path))

    def _copy(self, path: str) -> None:
        whole = self.file.read_all
        with replacing(path) as file:
            generation, stamp = self.file.generation + 2, self.file.stamp
            for number in sorted((generation, generation + 1), key=lambda n: n % 2):
                file.write(header_bytes(number, stamp, self.file.pages))
            for begin in range(ROOT, self.file.pages, 256):
                pages = np.arange(begin, min(begin + 256, self.file.pages))
                file.write(whole(pages).tobytes())

    def close(self) -> None:
        """Copies what is in the log to the file, and lets go of it."""
        with self.lock:
            if self.file.is_writer and self._pid == os.getpid():
                with suppress(OSError):  # all is in the log
                    self.file.checkpoint()
                self.file.close_writing()
            self._closed = True

    def stats(self) -> dict[str, Any]:
        """Returns what ``Matcher.stats`` does."""
        version = self.now
        cache = self.file.cache

        def told() -> dict[str, Any]:
            root, size = self.store.root, self.file.pages * 4096
            count = root(store.SUBSCRIPTIONS)
            return {
                "subscriptions": count,
                "conjunctions": root(store.SLOT_COUNT) - root(store.FREE_SLOTS),
                "attributes": version.attributes.used,
                "rejected": len(version.rejected),
                "language": self.language.name,
                "missing": self.language.missing,
                "index": KIND.name,
                "settings": self._settings.to_dict(),
                "reason": version.reason,
                "updates": self.store.updates,
                "merges": 0,
                "merging": False,
                "merge_error": None,
                "journal": None,
                "gaps": 0,
                "segments": [{"index": KIND.name, "subscriptions": count, "deleted": 0}],
                "bytes": size,
                "bytes_per_subscription": size / max(count, 1),
                "arrays": {"file": size, "cache": cache.mem.nbytes, "slots": 6 * root(store.SLOT_COUNT)},
                "pages": self.file.pages,
                "cache": {
                    "pages": cache.frames, "reads": cache.reads, "hits": cache.hits, "writes": self.file.writes,
                },
                "log_bytes": self.file.log_end,
            }  # fmt: skip

        return self.reading(told)


def _tags(lists: list[list[str]]) -> Tags:
    return Tags.of_lists(pa.array(lists, pa.large_list(pa.string())))


class _Nothing(Exception):
    """An update changes nothing."""


def built(given: Given, sample: Any) -> PagedSet:
    """Makes a file of what was taken in, in the place of what has its name.

    Raises
    ------
    StoreError : it cannot be written, or is being changed by another
    """
    asked = given.asked
    assert isinstance(asked, PbtreeSettings)
    path = asked.path
    few = given._replace(asked=FEWEST.settings.under(asked.dnf_budget))
    parts = indexed_parts(few, sample)
    version = parts.version
    segment = version.segments[0]
    some = build.keyed(segment.predicates, segment.codes, version.ids, version.tags)
    nothing = combine((), (), np.empty(0, bool))
    empty, _ = indexed(few.asked, nothing, nothing.codes, None, 0, 0)
    base = Parts(
        schema=parts.schema,
        options=parts.options,
        asked=asked,
        version=version.changed(
            segments=(empty,), bases=(0,), living=(0,), ids=version.ids.slice(0, 0), tags=NO_TAGS, reason="asked for"
        ),
        language=parts.language,
    )
    with build.lock_of(path) as log:
        generation = build.next_generation(log, _generation_of(path))
        made = build.made(some, len(version.attributes), saved.to_bytes(base), 0)
        del some, segment, version, parts
        build.write(path, made, generation, 1)
    return PagedSet(path, asked, given.options)


def _generation_of(path: str) -> int:
    try:
        return PageFile(path, 0).generation
    except (OSError, StoreError):
        return 0


def opened(path: str) -> PagedSet:
    """Opens a file of pages."""
    return PagedSet(path)
