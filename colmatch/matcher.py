"""The matcher: subscriptions in, and for batches of events, who matches."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from colmatch.arguments import checked_flag
from colmatch.errors import OptionError, shown
from colmatch.events.clock import clock_of
from colmatch.events.modes import moded_value, sized_column
from colmatch.explain import Explanation, explain
from colmatch.indexing.registry import KINDS, is_in_pages
from colmatch.indexing.settings import Settings
from colmatch.language import Language
from colmatch.matching.matches import Matches
from colmatch.matching.workers import Workers
from colmatch.options import Options
from colmatch.paged.header import is_pages
from colmatch.paged.live import PagedSet, built, opened
from colmatch.paged.place import unpaged
from colmatch.paged.workers import PagedWorkers
from colmatch.store import saved
from colmatch.store.journal import Journal
from colmatch.subscriptions.intake import Errors
from colmatch.subscriptions.rejected import Rejected
from colmatch.updates.initial import indexed_parts, taken_in
from colmatch.updates.live import LiveSet
from colmatch.updates.versions import Parts

__all__ = ["Matcher", "Rejected", "kinds"]


def kinds() -> list[str]:
    """Returns the names of the index kinds."""
    return list(KINDS)


class Matcher(Matches):
    """A set of subscriptions, indexed: made by ``Matcher.build`` or ``Matcher.open``.

    A matcher may be used by several threads at once; each gets working memory of its own.
    ``insert``, ``delete`` and ``replace`` change it: a batch of events sees all of such an update
    or nothing of it, and every batch that begins after it sees it.

    Attributes
    ----------
    schema : the events' columns
    """

    def __init__(self, parts: Parts | PagedSet, journal: Journal | None = None) -> None:
        self.schema = parts.schema
        self._live: LiveSet | PagedSet
        if isinstance(parts, PagedSet):
            self._live = parts
            super().__init__(parts, PagedWorkers(parts))
            return
        self._live = live = LiveSet(parts)
        if journal is not None:
            saved.replay(live, journal)
        super().__init__(live, Workers(live, live.observed))

    # Making

    @classmethod
    def build(
        cls,
        subscriptions: Any,
        schema: Any,
        index: str | Settings = "auto",
        options: Options | None = None,
        errors: Errors = "raise",
        sample: Any = None,
        language: str = "sql",
        missing: str | None = None,
        constants: Any = None,
        tags: Any = None,
    ) -> Matcher:
        """Indexes subscriptions for events of a schema.

        Parameters
        ----------
        subscriptions : ``{id: text}``, an iterable of ``(id, text or expression)``, an Arrow table
            with columns ``id`` and ``expression`` (any object with the Arrow C stream or array
            protocol), or a ``PredicateTable``. Ids are int64 or strings, and unique
        schema : ``pyarrow.Schema``, ``{name: type}`` or ``Schema``; or, in the language of be-tree,
            what ``colmatch.betree.Domains`` takes. An event without a value of a field that is not
            nullable matches nothing
        index : name of a kind of index, ``"auto"`` for that with the lowest estimated time an
            event, or either with settings, as ``colmatch.index`` makes it
        sample : some events, as ``match`` takes them, that are like those to come: they tell which
            values are frequent. A few thousand are enough. Up to 4,096 of them become a part of the
            matcher and of its saved form, and count again with each index that updates build
        errors : ``"raise"`` the first error, or ``"collect"``: leave bad expressions out and list
            them in ``rejected``
        language : of the expressions: ``"sql"``, or ``"betree"``, that of the be-tree library
        missing : what is said of a value that is missing: ``"unknown"``, as in SQL, or ``"false"``:
            then all predicates but IS NULL are false of it, also ``<>`` and ``NOT IN``, and NOT
            makes true of false. By default as in the language: unknown in SQL, false in be-tree's
        constants : ``{id: {"flight_id": 7}}``, with which be-tree's expressions are read; of a
            table, its column ``constants``
        tags : ``{id: ["tenant-7"]}``, or a table (id, tags): what some subscriptions have for tags,
            by which ``match(events, tags=...)`` chooses among them. Of a table of expressions, its
            column ``tags``: lists of strings, or a string for a single one

        Raises
        ------
        ExpressionError : an expression cannot be understood; says which, where and why
        SubscriptionError, SchemaError, OptionError : the arguments cannot be used
        """
        asked = Language.asked_for(language, missing)
        given = taken_in(subscriptions, schema, index, options, errors, asked, constants, tags)
        return cls(built(given, sample) if is_in_pages(given.asked) else indexed_parts(given, sample))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the matcher to one file, atomically.

        Readers of an older file under that name are not disturbed. A journal of the matcher is
        folded in where it is saved to its own file; any other file is a copy without one.

        Raises
        ------
        StoreError : ``path`` cannot be the name of a file, or is a folder, a pipe or a device; or
            it has a journal with updates that are not this matcher's, or that is being written
        OSError : as from the built-in ``open``. Whatever is raised, ``path`` is as it was
        """
        if isinstance(self._live, PagedSet):
            self._live.save(saved.file_name(path))
        else:
            name = saved.file_name(path)
            with unpaged(name):
                saved.save(name, self._live)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = True,
        verify: bool = True,
        journal: bool = False,
        fsync: bool = False,
        cache_bytes: int | None = None,
        trusted: bool = False,
    ) -> Matcher:
        """Opens a saved matcher, or a file of pages that one lives in (index ``pbtree``).

        Parameters
        ----------
        mmap : map the arrays instead of reading them, so that processes share one copy
        verify : check all checksums, which reads the file once
        journal : write each update to ``path`` + ``".journal"`` before the call returns, and do
            those again that are there, until ``save`` to the same path. One matcher at a time is
            open so, until it is closed or its process ends; others see the last save
        fsync : write to the disk before the call returns, so that updates outlast a power cut
        cache_bytes : of a file of pages, what is held of it in memory, by default as it was built.
            Its pages are read when they are needed and checked then, so ``mmap`` and ``verify``
            mean nothing for it, and updates are in it without a journal
        trusted : a file that you have written yourself, whose arrays are taken as they are. By
            default they are looked at first, so that no crafted file leads out of them; the index
            of a kind that cannot be looked at so is made anew (README, "Files from elsewhere")

        Raises
        ------
        OptionError : ``cache_bytes`` is no size of a cache, or the file has none; or ``journal`` is
            asked for where there are pages
        StoreError : the file is damaged, foreign, or of another format version, or ``path`` no name
            of a file; or the journal is in use, damaged (it says where), or of another save
        OSError : as from the built-in ``open``
        """
        flags = {"mmap": mmap, "verify": verify, "journal": journal, "fsync": fsync, "trusted": trusted}
        mmap, verify, journal, fsync, trusted = (checked_flag(f"{flag}={{}}", given) for flag, given in flags.items())
        name = saved.file_name(path)
        if is_pages(name):
            if journal:
                raise OptionError(f"journal=True: {name} is a file of pages, in which updates are at once")
            return cls(opened(name, cache_bytes, fsync))
        if cache_bytes is not None:
            raise OptionError(f"cache_bytes={shown(cache_bytes)}: {name} is no file of pages, so there is no cache")
        return cls(*saved.load(name, mmap, verify, journal, fsync, trusted))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (saved.to_bytes(self._live.parts()),)

    # Changing

    def insert(self, subscriptions: Any, errors: Errors = "raise", constants: Any = None, tags: Any = None) -> None:
        """Adds subscriptions: either all, or with an error none.

        Parameters
        ----------
        subscriptions : as ``build`` takes them. They are read before the update begins, so their
            source may update the matcher itself. Ids are of the type of those that are there; an
            empty matcher takes either type
        errors : ``"raise"`` the first error, or ``"collect"``: leave bad expressions out and list
            them in ``rejected``
        constants, tags : as for ``build``

        Raises
        ------
        SubscriptionError : an id is there already, or given twice, or of another type
        ExpressionError : an expression cannot be understood
        OptionError : the matcher is closed, or another update of the same thread is not finished,
            as in a signal handler; or the kind of index refuses what comes. Of up to 512 at a time,
            it is not asked before they are merged: what it refuses then is matched by another kind,
            and ``stats()`` says so
        StoreError : the journal cannot be written; nothing has changed then
        """
        self._live.insert(subscriptions, errors, replace=False, constants=constants, tags=tags)

    def replace(self, subscriptions: Any, errors: Errors = "raise", constants: Any = None, tags: Any = None) -> None:
        """Adds subscriptions in the place of those that have the same ids, in one step.

        Arguments and errors are those of ``insert``, but an id may be there already or not. What is
        left out as bad leaves what it would have replaced. A subscription has the tags that come
        with it, and none of the one that it replaces.
        """
        self._live.insert(subscriptions, errors, replace=True, constants=constants, tags=tags)

    def delete(self, ids: Any) -> None:
        """Removes subscriptions: either all, or with an error none.

        Parameters
        ----------
        ids : any iterable, or an Arrow array

        Raises
        ------
        SubscriptionError : there is no subscription of some id
        OptionError, StoreError : as from ``insert``
        """
        self._live.delete(ids)

    def compact(self, sample: Any = None) -> None:
        """Merges all subscriptions into one index, without those that were deleted.

        Merges are made beside batches and updates as they are due; this one has ended when the
        call returns.

        Parameters
        ----------
        sample : events that take the place of those of ``build``, as there; an update of its own.
            The index is built anew with them in any case. Where there are none, none count. By
            default they are the events that were observed, if the options say so

        Raises
        ------
        EventError : the events of the sample do not fit the schema
        OptionError : the kind of index refuses the subscriptions, or the matcher is closed. Nothing
            has changed then, as with any other error
        """
        self._live.compact(sample)

    def close(self) -> None:
        """Ends what runs beside the caller: a merge is given up, and the journal let go of.

        Batches can still be matched, saved and copied; updates are refused. What is not closed ends
        with its process.
        """
        self._live.close()

    def __enter__(self) -> Matcher:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Asking

    def __len__(self) -> int:
        return len(self._live.now)

    def __repr__(self) -> str:
        attributes, index = self._live.now.attributes.used, self.index
        shown = repr(index.kind if index.is_default else index)
        return f"Matcher({len(self):,} subscriptions, {attributes} attributes, index={shown})"

    @property
    def options(self) -> Options:
        """The options that it was built with; those of ``options.RUNNING`` can be changed.

        Raises
        ------
        OptionError : an option differs that the index was built with
        """
        return self._live.options

    @options.setter
    def options(self, options: Options) -> None:
        self._live.options = self._live.options.with_settings(options)

    @property
    def language(self) -> str:
        """The language of the expressions: sql or betree."""
        return self._live.language.name

    @property
    def missing(self) -> str:
        """What is said of a value that is missing: unknown or false."""
        return self._live.language.missing

    @property
    def ids(self) -> pa.Array:
        """The id of each subscription, as an int64 or string array."""
        now = self._live.now
        return now.ids.array.filter(now.live()) if now.gone else now.ids.array

    @property
    def tags(self) -> pa.ListArray:
        """The tags of each subscription, in the order of ``ids``: lists of strings."""
        now = self._live.now
        return now.tags.lists(now.live())

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """Columns that the expressions use, and fields of structs, such as ``("user", "age")``."""
        return list(dict.fromkeys(path for attribute in self._live.now.attributes for path in attribute.paths))

    @property
    def index(self) -> Settings:
        """The kind of index and its settings, as ``build`` takes them."""
        return self._live.now.index.settings

    @property
    def kind(self) -> str:
        """The name of the index kind."""
        return self._live.now.index.kind.name

    @property
    def columns(self) -> list[str]:
        """Top-level columns that events need; all others may be left out of them.

        They are those that the expressions use, and those that must be defined: that the schema
        declares not nullable.
        """
        return self.columns_with()

    def explain(self, event: Any, id: int | str, *, now: Any = None) -> Explanation:
        """Explains why a subscription is true, or not, for one event.

        Parameters
        ----------
        event : a mapping from column to value, or anything Arrow-capable with one row
        id : of the subscription
        now : as for ``match``

        Raises
        ------
        SubscriptionError : there is no such subscription
        EventError : not one row, or it does not fit the schema, or lacks a column that this
            subscription uses
        """
        parts = self._live.parts_of(id)
        return explain(parts, event, id, clock_of(now, parts.schema, parts.options.timezone))

    def stats(self) -> dict[str, Any]:
        """Returns sizes, the bytes of each array, the kind of index, its settings and why.

        ``segments`` lists what is indexed together, the oldest first. ``updates`` and ``merges``
        count what was done since the build. ``merge_error`` is what the last merge failed with, and
        ``journal`` has path, records and bytes; either may be None.
        """
        return self._live.stats()

    @property
    def rejected(self) -> list[Rejected]:
        """The subscriptions that were left out with ``errors="collect"``, one entry for each id.

        An entry goes when its id is inserted, replaced or deleted. An update keeps all that it
        leaves out, and of older entries so many that there are 10,000 at most.
        """
        return list(self._live.now.rejected.values())

    @property
    def local_literal(self) -> str | None:
        """A timestamp literal that was read in ``Options.timezone``, None where there was none.

        Or what is computed by its clocks: ``hour(at)``. It stays known when it is deleted.
        """
        return self._live.now.local_literal

    @property
    def moded_value(self) -> str | None:
        """A computed value that means something else with the other ``Options.ansi``, or None."""
        return moded_value(self._live.now.attributes)

    @property
    def sized_column(self) -> str | None:
        """A list or map whose ``size`` is asked for, None where there is none."""
        return sized_column(self._live.now.attributes)

    @property
    def version(self) -> int:
        """The number of updates that have been made."""
        return self._live.now.updates


def _unpickle(data: bytes) -> Matcher:
    return Matcher(saved.from_bytes(data))
