"""The reading half of a matcher in a file of pages. Updates are in ``paged_set.py``.

The descriptions of the subscriptions stay in memory once they were read (``metadata.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.errors import StoreError, SubscriptionError, show_value
from colmatch.given.arguments import python_value
from colmatch.given.options import Options
from colmatch.kernels import _forks
from colmatch.kernels.kinds.pbtree.arrays import IDS, TAGS
from colmatch.kernels.layout import U8
from colmatch.kinds.pbtree import KIND, PbtreeSettings
from colmatch.kinds.registry import FEWEST
from colmatch.paged import build, metadata, root_page
from colmatch.paged.cache import StaleError, make_damage_error, read_error
from colmatch.paged.file import PageFile
from colmatch.paged.metadata import Metadata
from colmatch.paged.paged_version import PagedVersion
from colmatch.paged.store import PageStore, places_of
from colmatch.predicates.keys import to_codes
from colmatch.subscriptions.ids import Ids, can_be_id
from colmatch.subscriptions.intake import SubscriptionReader
from colmatch.subscriptions.texts_kept import NO_TEXTS
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.mutex import FairMutex
from colmatch.updates.segments import build_segment
from colmatch.updates.versions import Parts, Version

T = TypeVar("T")
TRIES = 100  # attempts to read while another process changes the file


class PagedReader:
    """Subscriptions in a file of pages, as far as they are read.

    Attributes
    ----------
    lock : held while the cache is in use
    """

    journal = None

    def __init__(
        self,
        path: str,
        requested: PbtreeSettings | None = None,
        options: Options | None = None,
        cache_bytes: int | None = None,
        fsync: bool = False,
    ) -> None:
        self.path = os.path.realpath(path)
        self.lock = _forks.lock()
        self.turn = FairMutex()
        self.requested = requested or PbtreeSettings(path=path)
        self.file = PageFile(self.path, self.requested.cache_bytes, self.requested.fsync)
        self.store = PageStore(self.file)
        self._known: tuple[int, int] | None = None
        self._metadata: Metadata | None = None
        self._closed = False
        self._source: SubscriptionReader | None = None
        self._whole: tuple[tuple[int, int], Version] | None = None
        self.run_on_state(lambda: None)
        if requested is None:
            kept = self.base.requested
            assert isinstance(kept, PbtreeSettings)
            size = kept.cache_bytes if cache_bytes is None else cache_bytes
            self.requested = PbtreeSettings(kept.dnf_budget, path, size, fsync or kept.fsync)
            self.file.fsync = self.requested.fsync
            self.file.cache.set_budget(size)
        self.options = options or self.base.options
        _forks.renew_in_child(self)

    def in_child(self) -> None:
        if _forks.is_held(self.lock):  # the thread that forked goes on with its work
            self.file.is_writer = False
            return
        self.file.begin_anew()
        self.store.begin_anew()
        self._known = None
        if self._metadata is not None:  # it may belong to an update that was not finished
            self._metadata = self._metadata._replace(others=(), literals=(), old=None, version=None)

    # Reading

    def run_on_state(self, work: Callable[[], T]) -> T:
        """Runs ``work`` on the pages of one state, again from the beginning if they change.

        Raises StoreError: the file is damaged, or cannot be read.
        """
        with self.lock:
            first: tuple[int, int] | None = None
            for _ in range(TRIES):
                try:
                    self.file.refresh()
                    self._learn()
                    return work()
                except StaleError as error:
                    state, page = self.file.state, error.page
                    first, is_same = first or state, first is None or first == state
                except OSError as error:
                    raise read_error(self.path, error) from error
            if is_same:
                raise make_damage_error(self.path, page)
            raise StoreError(f"{self.path} is changed by another process faster than it can be read: try again")

    def _learn(self) -> None:
        """Reads the descriptions of the subscriptions if they have changed."""
        if self.file.state != self._known:
            self._metadata = metadata.read(self.store, self._metadata)
            self._known = self.file.state

    @property
    def base(self) -> Parts:
        """A matcher without subscriptions, and with only the recent string literals."""
        assert self._metadata is not None
        return self._metadata.parts

    @property
    def version(self) -> Version:
        """The version of ``base``, with all string literals. For use inside ``reading``."""
        assert self._metadata is not None
        self._metadata = metadata.read_literals(self.store, self._metadata)
        assert self._metadata.version is not None
        return self._metadata.version

    @property
    def schema(self) -> Any:
        return self.base.schema

    @property
    def language(self) -> Any:
        return self.base.language

    @property
    def now(self) -> PagedVersion:
        """Returns the current version."""
        return self.run_on_state(lambda: PagedVersion.of(self, self.base.version, self.store))

    @property
    def id_type(self) -> pa.DataType:
        """The type of ids. For use inside ``reading``."""
        return pa.string() if self.store.root(root_page.TEXT_IDS) else pa.int64()

    def places(self, ids: Ids) -> NDArray[np.int64]:
        """Returns the place of each id's record: page << 16 | word, or -1 for none."""
        out = np.full(len(ids), -1)
        is_text = ids.numbers is None
        if len(ids) and is_text != bool(self.store.root(root_page.TEXT_IDS)):
            return out
        keys = build.id_keys(ids).tolist()
        for i, key in enumerate(keys):
            slots = self.store.slots_of(IDS, key)
            if not len(slots):
                continue
            places = places_of(self.store.slots(slots))
            if is_text:
                stored_ids = self.store.to_keys(places).ids.array.to_pylist()
                places = places[[own == ids[i] for own in stored_ids]]
            if len(places):
                out[i] = places[0]
        return out

    def find_tagged(self, tag: str) -> NDArray[np.int64]:
        """Returns the first slot of each subscription with a tag."""
        slots = self.store.slots_of(TAGS, int(build.hashes_of(pa.array([tag], pa.string()))[0]))
        if not len(slots):
            return slots
        # All slots of a key have the same tag (``_check_tags``), so one record is enough.
        return slots if tag in self.store.to_keys(places_of(self.store.slots(slots[:1]))).tags.names else slots[:0]

    def places_tagged(self, tags: Iterable[str]) -> NDArray[np.int64]:
        """Returns the place of the record of each subscription with any of some tags."""
        slots = np.concatenate([self.find_tagged(tag) for tag in tags] or [np.empty(0, np.int64)])
        return places_of(self.store.slots(slots))

    def all_places(self) -> NDArray[np.int64]:
        """Returns the places of all records in file order, which is also the order of matches."""
        entry = self.store.slots(np.arange(self.store.root(root_page.SLOT_COUNT)))
        return contiguous(np.unique(places_of(entry[entry[:, 2] > 0])))

    def version_of(self, places: NDArray[np.int64]) -> Version:
        """Returns the subscriptions of some records as a version in memory."""
        subscriptions = self.store.to_keys(places)
        version = self.version
        multi: U8 = contiguous(np.array(version.attributes.multi, np.uint8))
        predicates, codes = to_codes(subscriptions.predicates, subscriptions.keys, multi)
        count = len(subscriptions.ids)
        requested = FEWEST.settings.under(self.requested.dnf_budget)
        segment, _ = build_segment(requested, predicates, codes, None, count, count)
        ids = subscriptions.ids if count or not self.store.root(root_page.TEXT_IDS) else Ids(pa.array([], pa.string()))
        return version.with_changes(
            segments=(segment,),
            bases=(0,),
            alive=(count,),
            stale=(0,),
            deleted=DeletedNumbers(),
            gone=0,
            ids=ids,
            tags=subscriptions.tags,
            texts=NO_TEXTS.extended(subscriptions.texts, count),
            updates=self.store.updates,
        )

    def whole(self) -> Version:
        """Returns all subscriptions as a version in memory, kept until the next update."""

        def read_all() -> Version:
            if self._whole is None or self._whole[0] != self.file.state:
                self._whole = self.file.state, self.version_of(self.all_places())
            return self._whole[1]

        return self.run_on_state(read_all)

    def parts_with(self, version: Version) -> Parts:
        """Returns the parts of this matcher, with another version."""
        return replace(self.base, options=self.options, requested=self.requested, version=version)

    def parts(self) -> Parts:
        """Returns the parts of a matcher in memory with the same subscriptions."""
        return replace(self.parts_with(self.whole()), requested=PbtreeSettings(self.requested.dnf_budget))

    def has(self, id: int | str) -> bool:
        """Returns whether an id has a subscription."""
        return bool(self.run_on_state(lambda: self._places_of(id))[0] >= 0)

    def _places_of(self, id: int | str) -> NDArray[np.int64]:
        """Returns the place of an id's record, -1 for none."""
        type, own = self.id_type, python_value(id)
        return self.places(Ids(pa.array([own], type))) if can_be_id(own, type) else np.array([-1])

    def parts_of(self, id: int | str) -> Parts:
        """Returns the parts of this matcher, with only one subscription.

        Raises SubscriptionError: there is no subscription with this id.
        """

        def find() -> Parts:
            places = self._places_of(id)
            if places[0] < 0:
                raise SubscriptionError(f"there is no subscription {show_value(id)}")
            return self.parts_with(self.version_of(places))

        return self.run_on_state(find)

    def stats(self) -> dict[str, Any]:
        """Returns the figures of ``Matcher.stats``."""
        version = self.now
        cache = self.file.cache

        def figures() -> dict[str, Any]:
            root, size = self.store.root, self.file.pages * 4096
            count = root(root_page.SUBSCRIPTIONS)
            return {
                "subscriptions": count,
                "conjunctions": root(root_page.SLOT_COUNT) - root(root_page.FREE_SLOTS),
                "attributes": version.attributes.used,
                "rejected": len(version.rejected),
                "language": self.language.name,
                "missing": self.language.missing,
                "index": KIND.name,
                "settings": self.requested.to_dict(),
                "reason": version.reason,
                "updates": self.store.updates,
                "merges": 0,
                "merging": False,
                "merge_error": None,
                "journal": None,
                "observed": 0,
                "gaps": 0,
                "segments": [{"index": KIND.name, "subscriptions": count, "deleted": 0}],
                "bytes": size,
                "bytes_per_subscription": size / max(count, 1),
                "arrays": {"file": size, "cache": cache.mem.nbytes, "slots": 6 * root(root_page.SLOT_COUNT)},
                "pages": self.file.pages,
                "cache": {
                    "pages": cache.frames, "reads": cache.reads, "hits": cache.hits, "writes": self.file.writes,
                },
                "log_bytes": self.file.log_end,
            }  # fmt: skip

        return self.run_on_state(figures)
