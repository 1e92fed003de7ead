"""The counterpart of ``updates/memory_set.py`` for a matcher that lives in a file of pages.

An update changes pages in the cache, and is in the log when the call returns. An error before that
leaves the file as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze
from colmatch.errors import OptionError, Rejected
from colmatch.events.sample import keep_events
from colmatch.given.schema import Attributes, definitions_of, with_definitions
from colmatch.kernels.kinds.pbtree.arrays import TAGS
from colmatch.kinds.pbtree import PbtreeSettings
from colmatch.kinds.registry import FEWEST
from colmatch.paged import build, metadata, root_page
from colmatch.paged.cache import write_error
from colmatch.paged.file import ROOT
from colmatch.paged.header import headers
from colmatch.paged.reading import PagedReader
from colmatch.paged.records import pack
from colmatch.paged.replace_lock import taking_place
from colmatch.store.replacing import replacing
from colmatch.subscriptions.change import Change, Deletion
from colmatch.subscriptions.given import GivenSubscriptions
from colmatch.subscriptions.ids import Ids, check_known, check_type, convert_ids
from colmatch.subscriptions.intake import Collecting, Errors, NewSubscriptions, SubscriptionReader
from colmatch.subscriptions.rejected import update_rejected
from colmatch.subscriptions.tags import NO_TAGS, Tags
from colmatch.subscriptions.texts_kept import NO_TEXTS
from colmatch.updates import literals
from colmatch.updates.combined import combine
from colmatch.updates.initial import BuildInput, build_parts
from colmatch.updates.read_back import Sync
from colmatch.updates.redefinition import Redefinition
from colmatch.updates.segments import build_segment
from colmatch.updates.versions import Version

PIECE = 8192  # records read at once


class PagedSet(PagedReader):
    """Subscriptions in a file of pages, with updates."""

    observed = None

    # Changing

    @contextmanager
    def _updating(self) -> Iterator[None]:
        """Commits the changes made inside as one update, or none of them."""
        self._check_open()
        with self.turn.take(), self.lock:
            self._check_open()
            was_writer = self.file.is_writer
            self.file.begin_writing()
            if not was_writer:
                self._known = None
                self.store.forget_needed()
            self.run_on_state(lambda: self.version)
            before, pages, update_number = self._metadata, self.file.pages, self.file.update_number
            self.file.cache.begin_update()
            try:
                yield
                words = self.file.edit(ROOT)
                updates = self.store.updates + 1
                words[root_page.UPDATES], words[root_page.UPDATES_HIGH] = updates & 0xFFFFFFFF, updates >> 32
                self.file.commit()
            except BaseException as error:
                if self.file.update_number == update_number:  # else it is in the log, and a later step was interrupted
                    self.file.roll_back(pages)
                    self.store.forget_needed()
                    self._metadata, self._source = before, None
                if isinstance(error, _Nothing):
                    return
                raise
            finally:
                if self.file.update_number != update_number:
                    self.store.keep_needed()
                    self._known = self.file.state

    def _check_open(self) -> None:
        if self._closed:
            raise OptionError("the matcher is closed and takes no updates any more: open or build another one")

    def update(self, requested: Change | Sync | Redefinition, errors: Errors | Collecting) -> list[Rejected]:
        """Deletes, and then inserts, replaces or upserts, as ``Matcher.update`` does.

        Returns the subscriptions that were left out.
        """
        self._check_open()
        new = None
        with self._updating():
            change = requested if isinstance(requested, Change) else requested.on(self.whole())
            definitions = self.version.definitions if change.definitions is None else change.definitions
            is_empty = definitions == self.version.definitions
            if change.given is not None or not is_empty:
                source = self._source_of(definitions)
                given = GivenSubscriptions(self.version.ids.slice(0, 0), []) if change.given is None else change.given
                new = source.take_in(given, errors)
                if len(new.ids) and self.store.root(root_page.SUBSCRIPTIONS):
                    check_type(self.id_type, new.ids.type)
            if not is_empty:
                self._describe(self.version.with_changes(definitions=definitions))
            if change.deletion is not None:
                ids, places = self._find_targets(change.deletion)
                is_empty &= not len(places)
                self._remove(places)
                self._forget_rejected(ids)
            if new is not None and (len(new.ids) or new.rejected):
                old = self.places(new.ids)
                change.check(new.ids, old)
                self._remove(np.sort(old[old >= 0]))
                self._add(new, source)
                is_empty = False
            if is_empty:
                raise _Nothing
        return [] if new is None else new.rejected

    def _find_targets(self, deletion: Deletion) -> tuple[Ids, NDArray[np.int64]]:
        """Returns ids of subscriptions to delete, and the places of their records, which ascend.

        Raises SubscriptionError: a listed id has no subscription.
        """
        ids, places = deletion.ids, None
        if deletion.listed is not None:
            ids = convert_ids(deletion.listed, self.id_type)
            places = self.places(ids)
            check_known(ids, places)
        elif ids is not None:
            places = self.places(ids) if ids.type == self.id_type else np.empty(0, np.int64)
        for tags in deletion.tags:
            tagged = self.places_tagged(tags)
            places = tagged if places is None else np.intersect1d(places, tagged)
        assert places is not None
        places = np.unique(places[places >= 0])
        return self.store.to_keys(places).ids, places

    def _forget_rejected(self, ids: Ids) -> None:
        version = self.version
        rejected = update_rejected(version.rejected, ids, ())
        if rejected is not version.rejected:
            self._describe(version.with_changes(rejected=rejected))

    def _source_of(self, definitions: Mapping[str, str]) -> SubscriptionReader:
        source = self._source
        if source is None or source.options != self.options or definitions_of(source.schema) != definitions:
            attributes, schema = Attributes(list(self.version.attributes)), with_definitions(self.schema, definitions)
            source = SubscriptionReader(schema, self.options, attributes, self.requested.budget, self.language)
            self._source = source
        return source

    def _remove(self, places: NDArray[np.int64]) -> None:
        """Removes the subscriptions of some records."""
        for begin in range(0, len(places), PIECE):
            part = places[begin : begin + PIECE]
            subscriptions = self.store.to_keys(part)
            self.store.change(build.all_entries(subscriptions), False)
            self.store.free_slots(subscriptions.slots.tolist())
            for place in part.tolist():
                self.store.remove_record(place >> 16, place & 0xFFFF)
        self.store.set_root(root_page.SUBSCRIPTIONS, self.store.root(root_page.SUBSCRIPTIONS) - len(places))

    def _add(self, new: NewSubscriptions, source: SubscriptionReader) -> None:
        """Adds subscriptions and their descriptions."""
        version, attributes = self.version, source.attributes
        count = len(attributes)
        predicates, codes, own, _ = new.lowered
        vocabulary, codes, move = literals.join_literals(version.literals, codes, own, count)
        if move is not None:
            self._rebuild_with(move)
        if len(new.ids):
            subscriptions = build.to_keys(predicates, codes, new.ids, new.tags, new.texts)
            subscriptions = subscriptions._replace(slots=self.store.take_slots(len(subscriptions.slots)))
            self._check_tags(subscriptions.tags)
            entries = build.all_entries(subscriptions)
            self.store.change(entries, True)
            words, first = pack(subscriptions)
            spots = [self.store.write_record(words[a:b]) for a, b in zip(first[:-1].tolist(), first[1:].tolist())]
            page, word = np.array(spots, np.int64).T
            self.store.set_slots(subscriptions.slots.tolist(), build.slot_entries(subscriptions, page, word))
            self.store.set_needed(subscriptions.slots.tolist(), entries.needed.tolist())
            self.store.set_root(root_page.SUBSCRIPTIONS, self.store.root(root_page.SUBSCRIPTIONS) + len(new.ids))
            self.store.set_root(root_page.TEXT_IDS, int(new.ids.numbers is None))
            self.store.set_root(root_page.TREE_COUNT, max(self.store.root(root_page.TREE_COUNT), count + 3))
        changes: dict[str, Any] = {}
        if vocabulary is not version.literals:
            changes["literals"] = vocabulary
        if version.attributes.used < attributes.used:  # some ids may have been free
            changes["attributes"] = Attributes(list(attributes))
        parts = version.session_parts.with_others(new.session_parts)
        if parts != version.session_parts:
            changes["session_parts"] = parts
        rejected = update_rejected(version.rejected, new.ids, new.rejected)
        if rejected is not version.rejected:
            changes["rejected"] = rejected
        if changes:
            self._describe(self.version.with_changes(**changes))

    def _check_tags(self, tags: Tags) -> None:
        """Refuses a tag if another one in the file has the same key."""
        if not len(tags):
            return
        for tag, key in zip(list(tags.names), build.check_tags(tags).tolist(), strict=True):
            if not len(self.find_tagged(tag)) and len(self.store.slots_of(TAGS, key)):
                raise build.make_key_error(tag)

    def _rebuild_with(self, move: literals.Move) -> None:
        """Gives all predicates the new keys of string literals."""
        places = self.all_places()
        version = self.version_of(places)
        codes = freeze(literals.move_keys(version.segments[0].codes, move))
        predicates = version.segments[0].predicates
        old = self.store.to_keys(places)
        new = build.to_keys(predicates, codes, old.ids, old.tags, old.texts, old.slots)
        self.store.change(build.all_entries(old), False)
        self.store.change(build.all_entries(new), True)
        words, first = pack(new)
        for i, place in enumerate(places.tolist()):  # lengths have not changed
            self.store.write_over(place >> 16, place & 0xFFFF, words[first[i] : first[i + 1]])

    def _describe(self, version: Version) -> None:
        """Writes the descriptions of the subscriptions."""
        assert self._metadata is not None
        self._metadata = metadata.write(self.store, self._metadata, self.parts_with(version))

    def compact(self, sample: Any) -> None:
        """Rewrites the file, as ``Matcher.compact`` does."""
        self._check_open()
        version = self.now
        kept = version.sample
        if sample is not None:
            lenient = self.options.missing_columns == "null"
            kept = keep_events(
                sample, self.options.batch_rows, self.schema, version.attributes, version.literals, lenient
            )
        with self.turn.take(), self.lock:
            self.file.begin_writing()
            self._known = None
            whole = self.whole()
            segment = combine(whole.segments, whole.bases, whole.live(), dense=True)
            parts = self.parts_with(self.version.with_changes(sample=kept))
            subscriptions = build.to_keys(
                segment.by_subscription(), segment.codes, whole.ids, whole.tags, whole.all_texts()
            )
            updates = self.store.updates + (sample is not None)
            pages = build.build_pages(subscriptions, len(whole.attributes), metadata.chains_of(parts), updates)
            generation = self.file.generation + 1
            build.write(self.path, pages, generation, self.file.update_number + 1)
            self.file.close_writing()
            self.file.begin_writing()
            self._known = None
            self._whole = None
            self.run_on_state(lambda: None)

    def save(self, path: str) -> None:
        """Writes a copy of the file, or makes a checkpoint if the path is its own."""
        with self.turn.take(), self.lock:
            path = os.path.realpath(path)
            if path == self.path:
                self.file.begin_writing()
                try:
                    self.file.checkpoint()
                except OSError as error:
                    raise write_error(path, error) from error
                return
            self.run_on_state(lambda: self._copy(path))

    def _copy(self, path: str) -> None:
        try:
            with taking_place(path) as generation, replacing(path) as file:
                file.write(headers(generation, self.file.update_number, self.file.pages))
                for begin in range(ROOT, self.file.pages, 256):
                    pages = np.arange(begin, min(begin + 256, self.file.pages))
                    file.write(self.file.read_all(pages).tobytes())
        except OSError as error:
            raise write_error(path, error) from error

    def close(self) -> None:
        """Closes the matcher, with a checkpoint if it is the writer."""
        with self.lock:
            if self.file.is_writer:
                with suppress(OSError):  # all is in the log
                    self.file.checkpoint()
                self.file.close_writing()
            self._closed = True


class _Nothing(Exception):
    """A signal that an update changes nothing."""


def build_file(given: BuildInput, sample: Any) -> PagedSet:
    """Builds a file of pages, which replaces any file of the same name.

    Raises StoreError: the file cannot be written, or another writer is changing it.
    """
    requested = given.requested
    assert isinstance(requested, PbtreeSettings)
    path = os.path.realpath(requested.path)
    few = given._replace(requested=FEWEST.settings.under(requested.dnf_budget))
    parts = build_parts(few, sample)
    version = parts.version
    segment = version.segments[0]
    subscriptions = build.to_keys(segment.predicates, segment.codes, version.ids, version.tags, version.all_texts())
    nothing = combine((), (), np.empty(0, bool))
    empty, _ = build_segment(few.requested, nothing, nothing.codes, None, 0, 0)
    described = version.with_changes(
        segments=(empty,),
        bases=(0,),
        alive=(0,),
        ids=version.ids.slice(0, 0),
        tags=NO_TAGS,
        texts=NO_TEXTS,
        reason="asked for",
    )
    base = replace(parts, requested=requested, version=described)
    with taking_place(path) as generation:
        pages = build.build_pages(subscriptions, len(version.attributes), metadata.chains_of(base), 0)
        del subscriptions, segment, version, parts
        build.write(path, pages, generation, 1)
    return PagedSet(path, requested, given.options)
