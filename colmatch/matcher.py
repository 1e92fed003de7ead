"""The matcher: subscriptions in, and for batches of events, who matches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, get_args, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arguments import checked_choice, checked_flag
from colmatch.charts import Chart, draw
from colmatch.errors import EventError, OptionError, Rejected, shown
from colmatch.events.clock import clock_of
from colmatch.events.modes import moded_value, sized_column
from colmatch.events.required import LACKS
from colmatch.explain import Explanation, explain
from colmatch.incoming import Event, Events
from colmatch.indexing.registry import KINDS, IndexName, is_in_pages
from colmatch.indexing.settings import Settings
from colmatch.kernels.sink import ANY, COUNTS
from colmatch.language import Language, LanguageName, Missing
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.reasons import By, checked_by
from colmatch.matching.request import Among, Invalid, Keep, Unknown
from colmatch.matching.single import SingleEvents
from colmatch.matching.subset import Subset, subset_of
from colmatch.matching.topk.arguments import Score, TopK, checked_topk
from colmatch.matching.workers import Workers
from colmatch.notebook import Figures, bytes_of, folded, table
from colmatch.options import Options
from colmatch.paged.header import is_pages
from colmatch.store import saved
from colmatch.subscriptions.intake import Errors
from colmatch.updates.initial import indexed_parts, suited, taken_in
from colmatch.updates.memory_set import MemorySet
from colmatch.updates.set import SubscriptionSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Matcher", "Rejected", "kinds"]


def kinds() -> list[IndexName]:
    """Returns the names of the index kinds."""
    return cast(list[IndexName], list(KINDS))


class Matcher:
    """A set of subscriptions, indexed: made by ``Matcher.build`` or ``Matcher.open``.

    A matcher may be used by several threads at once; each gets working memory of its own.
    ``insert``, ``delete`` and ``replace`` change it: a batch of events sees all of such an update
    or nothing of it, and every batch that begins after it sees it.

    Attributes
    ----------
    schema : the events' columns
    """

    def __init__(self, subscriptions: SubscriptionSet) -> None:
        self.schema = subscriptions.schema
        self._set = subscriptions
        self._workers: Workers
        if isinstance(subscriptions, MemorySet):
            self._workers = Workers(subscriptions)
        else:  # pages are imported when they are used
            from colmatch.paged.workers import PagedWorkers

            self._workers = PagedWorkers(_in_pages(subscriptions))
        self._single = SingleEvents(subscriptions, self._workers)

    # Making

    @classmethod
    def build(
        cls,
        subscriptions: Any,
        schema: Any,
        index: IndexName | Settings = "auto",
        options: Options | Mapping[str, Any] | None = None,
        errors: Errors = "raise",
        sample: Events | None = None,
        language: LanguageName = "sql",
        missing: Missing | None = None,
        constants: Any = None,
        tags: Any = None,
        progress: bool = False,
    ) -> Matcher:
        """Indexes subscriptions for events of a schema.

        Parameters
        ----------
        subscriptions : ``{id: text}``, an iterable of ``(id, text or expression)``, an Arrow table
            with columns ``id`` and ``expression`` (any object with the Arrow C stream or array
            protocol), or a ``PredicateTable``. Ids are int64 or strings, and unique
        schema : what ``Schema`` takes: a schema of Arrow or Spark, a table or data frame, ``{name:
            type}``, a text such as ``"age bigint, city string"``; or, in the language of be-tree,
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
        options : ``Options``, or a mapping of some of them
        progress : show a bar on standard error while expressions are read

        Raises
        ------
        ExpressionError : an expression cannot be understood; says which, where and why
        SubscriptionError, SchemaError, OptionError : the arguments cannot be used
        """
        requested = Language.asked_for(language, missing)
        given = taken_in(subscriptions, schema, index, options, errors, requested, constants, tags, progress)
        if not is_in_pages(given.requested):
            return cls(MemorySet(indexed_parts(given, sample)))
        from colmatch.paged.paged_set import built

        return cls(built(given, sample))

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
        name = saved.file_name(path)
        if isinstance(self._set, MemorySet):
            from colmatch.paged.replace_lock import unpaged

            with unpaged(name):
                saved.save(name, self._set)
        else:
            _in_pages(self._set).save(name)

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
        options: Options | Mapping[str, Any] | None = None,
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
        trusted : take the arrays of a file as they are, because you have written it yourself. By
            default they are checked first, so that no crafted file leads out of them. An index that
            cannot be checked so is made anew (the guide, docs/files.md, "Files from elsewhere")
        options : what belongs to who opens it: options that can be changed, and the time zone where
            nothing depends on it. Of an ``Options``, what is not the default is set; a mapping sets
            what it names. All else is as it was built

        Raises
        ------
        OptionError : ``options`` differ in what the index was built with; ``cache_bytes`` is no
            size of a cache, or the file has none; or ``journal`` is asked for where there are pages
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
            from colmatch.paged.paged_set import PagedSet

            return cls(PagedSet(name, cache_bytes=cache_bytes, fsync=fsync))._with(options)
        if cache_bytes is not None:
            raise OptionError(f"cache_bytes={shown(cache_bytes)}: {name} is no file of pages, so there is no cache")
        return cls(saved.load(name, mmap, verify, journal, fsync, trusted))._with(options)

    def _with(self, options: Options | Mapping[str, Any] | None) -> Matcher:
        """Returns this matcher with options of who opens it; else it is closed."""
        try:
            if options is not None:
                opened = self.options.opened_with(options, self.local_literal)
                self._set.options = suited(self._set.requested, opened)
        except BaseException:
            self.close()
            raise
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (saved.to_bytes(self._set.parts()),)

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
        self._set.insert(subscriptions, errors, replace=False, constants=constants, tags=tags)

    def replace(self, subscriptions: Any, errors: Errors = "raise", constants: Any = None, tags: Any = None) -> None:
        """Adds subscriptions in the place of those that have the same ids, in one step.

        Arguments and errors are those of ``insert``, but an id may be there already or not. What is
        left out as bad leaves what it would have replaced. A subscription has the tags that come
        with it, and none of the one that it replaces.
        """
        self._set.insert(subscriptions, errors, replace=True, constants=constants, tags=tags)

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
        self._set.delete(ids)

    def compact(self, sample: Events | None = None) -> None:
        """Merges all subscriptions into one index, without those that were deleted.

        Merges are made beside batches and updates as they are due; this one has ended when the
        call returns.

        Parameters
        ----------
        sample : events that take the place of those of ``build``, as there; an update of its own.
            The index is built anew with them in any case. An empty sample counts nothing. By
            default they are the events that were observed, if ``Options(observe=...)`` says so

        Raises
        ------
        EventError : the events of the sample do not fit the schema
        OptionError : the kind of index refuses the subscriptions, or the matcher is closed. Nothing
            has changed then, as with any other error
        """
        self._set.compact(sample)

    def close(self) -> None:
        """Ends what runs beside the caller: a merge is given up, and the journal let go of.

        Batches can still be matched, saved and copied; updates are refused. What is not closed ends
        with its process.
        """
        self._set.close()

    def __enter__(self) -> Matcher:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Asking what there is

    def __len__(self) -> int:
        return len(self._set.now)

    def __repr__(self) -> str:
        attributes, index = self._set.now.attributes.used, self.index
        shown = repr(index.kind if index.is_default else index)
        return f"Matcher({len(self):,} subscriptions, {attributes} attributes, index={shown})"

    def _repr_html_(self) -> str:
        stats, fields = self.stats(), self.schema.arrow
        schema = folded(f"{len(fields)} columns", table((field.name, field.type) for field in fields))
        memory = f"{bytes_of(stats['bytes'])}, {stats['bytes_per_subscription']:,.1f} bytes a subscription"
        rows = {
            "kind": self.index, "subscriptions": stats["subscriptions"], "attributes": stats["attributes"],
            "schema": schema, "memory": memory, "updates": stats["updates"], "why this kind": stats["reason"],
        }  # fmt: skip
        return table(rows.items(), "colmatch.Matcher")

    @property
    def options(self) -> Options:
        """The options that it was built with; those of ``options.RUNNING`` can be changed.

        Raises
        ------
        OptionError : an option differs that the index was built with, or does not suit its kind
        """
        return self._set.options

    @options.setter
    def options(self, options: Options) -> None:
        self._set.options = suited(self._set.requested, self._set.options.with_settings(options))

    @property
    def language(self) -> LanguageName:
        """The language of the expressions: sql or betree."""
        return self._set.language.name

    @property
    def missing(self) -> Missing:
        """Returns what is said of a value that is missing: unknown or false."""
        return self._set.language.missing

    @property
    def ids(self) -> pa.Array[Any]:
        """The id of each subscription, as an int64 or string array."""
        now = self._set.now
        return now.ids.array.filter(now.live()) if now.gone else now.ids.array

    @property
    def tags(self) -> pa.ListArray[Any]:
        """The tags of each subscription, in the order of ``ids``: lists of strings."""
        now = self._set.now
        return now.tags.lists(now.live())

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """Columns that the expressions use, and fields of structs, such as ``("user", "age")``."""
        return list(dict.fromkeys(path for attribute in self._set.now.attributes for path in attribute.paths))

    @property
    def index(self) -> Settings:
        """The kind of index and its settings, as ``build`` takes them."""
        return self._set.now.index.settings

    @property
    def kind(self) -> str:
        """The name of the index kind."""
        return self._set.now.index.kind.name

    @property
    def columns(self) -> list[str]:
        """Top-level columns that events need; all others may be left out of them.

        They are those that the expressions use, and those that must be defined: that the schema
        declares not nullable.
        """
        return self.columns_with()

    def explain(self, event: Event | Events, id: int | str, *, now: Any = None) -> Explanation:
        """Explains why a subscription is true, or not, for one event.

        Parameters
        ----------
        event : a mapping from column to value, or an object, as for ``match_one``: a name that it
            lacks is NULL; or anything with one row that ``match`` takes
        id : of the subscription
        now : as for ``match``

        Raises
        ------
        SubscriptionError : there is no such subscription
        EventError : not one row, or it does not fit the schema, or the row lacks a column that
            this subscription uses
        """
        parts = self._set.parts_of(id)
        return explain(parts, event, id, clock_of(now, parts.schema, parts.options.timezone))

    def plot(self, what: Chart = "sizes", ax: Axes | None = None) -> Axes:
        """Draws where the memory is, or what an event is estimated to cost with each kind of index.

        Parameters
        ----------
        what : ``"sizes"``, megabytes of the arrays of each part; ``"costs"``, microseconds an event
            as ``index="auto"`` compares them, on a logarithmic axis
        ax : Axes of matplotlib to draw into; by default those of a new figure

        Returns
        -------
        Axes : those that were drawn into

        Raises
        ------
        DependencyError : matplotlib is not installed
        OptionError : ``what`` is something else, or costs are asked for of a file of pages
        """
        return draw(self.stats(), what, ax)

    def stats(self) -> dict[str, Any]:
        """Returns sizes, the bytes of each array, the kind of index, its settings and why.

        ``segments`` lists what is indexed together, the oldest first. ``updates`` and ``merges``
        count what was done since the build. ``merge_error`` is what the last merge failed with, and
        ``journal`` has path, records and bytes; either may be None.
        """
        return Figures(self._set.stats())

    @property
    def rejected(self) -> list[Rejected]:
        """The subscriptions that were left out with ``errors="collect"``, one entry for each id.

        An entry goes when its id is inserted, replaced or deleted. An update keeps all that it
        leaves out, and of older entries so many that there are 10,000 at most.
        """
        return list(self._set.now.rejected.values())

    @property
    def local_literal(self) -> str | None:
        """A timestamp literal that was read in ``Options.timezone``, None where there was none.

        Or what is computed by its clocks: ``hour(at)``. It stays known when it is deleted.
        """
        return self._set.now.local_literal

    @property
    def moded_value(self) -> str | None:
        """A computed value that means something else with the other ``Options.ansi``, or None."""
        return moded_value(self._set.now.attributes)

    @property
    def sized_column(self) -> str | None:
        """A list or map whose ``size`` is asked for, None where there is none."""
        return sized_column(self._set.now.attributes)

    @property
    def version(self) -> int:
        """The number of updates that have been made."""
        return self._set.now.updates

    # Matching

    def columns_with(self, ranges: RangeNames | None = None, now: Any = None) -> list[str]:
        """Returns the top-level columns that events need if ranges, or the time, are given."""
        return self._workers.columns(self._workers.request(ranges, {"now": now}))

    def subset(self, ids: Any = None, tags: Any = None) -> Subset:
        """Prepares some subscriptions to be matched among: what ``ids=`` takes.

        That an id has no subscription is no error: it matches nothing. The subset follows the
        matcher: what has one of its ids, or tags, when a batch begins is in it, be it inserted or
        replaced since. Where many events are matched among the same ids, this spares looking them
        up again.

        Parameters
        ----------
        ids : any iterable, or an array of Arrow or numpy; by default those of all subscriptions
        tags : of these, those that have any of these tags, as for ``match``; by default all

        Raises
        ------
        SubscriptionError : they are no list of ids, or of another type than those of the matcher
        OptionError : ``tags`` is no list of strings, or nothing is said
        """
        found = subset_of(ids, tags, self._set.now)
        if found is None:
            raise OptionError("a subset is of some ids, or of some tags: say which")
        return found

    @overload
    def match(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        invalid: Literal["skip", "raise"] = "skip",
        keep: Keep = None,
        **among: Unpack[Among],
    ) -> pa.Table: ...

    @overload
    def match(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        invalid: Literal["collect"],
        keep: Keep = None,
        **among: Unpack[Among],
    ) -> tuple[pa.Table, pa.Table]: ...

    def match(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        invalid: Invalid = "skip",
        keep: Keep = None,
        **among: Unpack[Among],
    ) -> Any:
        """Finds which subscriptions are true for which events.

        Parameters
        ----------
        events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``, with all columns
            that the expressions use (``columns``) unless ``Options(missing_columns="null")``. All
            rows of a table or data frame see the same updates. A reader, which has no length, sees
            those that are made between its batches
        ranges : ``{"price": ("price_low", "price_high")}``: columns or fields of structs that are
            ranges in the events, from the value of one column to that of another, both included.
            These have the attribute's type; the attribute need have no column of its own. NULL is
            no bound, NULL twice is NULL. A subscription matches if it is true of some value of each
            range. ``betree`` and ``bestar`` visit only what ranges meet, ``scan`` has a kernel of
            its own; with all other kinds every condition of every subscription is looked at

        invalid : what becomes of an event that lacks what must be defined, a column that the schema
            declares not nullable. It matches nothing: with ``"skip"``, that is all; ``"raise"`` is
            an error; with ``"collect"`` a second table is returned, which says which and why
        keep : columns of the events that go into the result, as many times as their row matches:
            a name, or several. A name that differs in case alone will do
        ids : only subscriptions that have one of these are found: what ``subset`` takes or returns
        tags : only subscriptions that have any of these tags are found: an iterable of strings, or
            an array of Arrow. With ``ids``, a subscription needs one of the ids and one of the
            tags. A tag that no subscription has is no error
        now : what time it is for all events, for the special functions: a datetime, or seconds
            since 1970 began in UTC. Their clocks and ``now`` need no columns then, and columns of
            these names count for nothing. Columns of whole numbers have whole seconds. A datetime
            without a zone is one in ``Options(timezone=...)``

        Returns
        -------
        pyarrow.Table : columns (event: int64 number of the row, subscription: type of the ids, and
            the columns that are kept, as the events have them), ordered by event. The subscriptions
            of one event are in the order of ``Matcher.ids``, whatever kind the index is, unless
            ``Options(order="any")`` says that any order will do. With ``invalid="collect"`` a pair
            of this and a table (event, column: what it lacks, reason), ordered by event

        Raises
        ------
        EventError : a column is not there, or does not fit the schema; a range begins above its
            end; or some expression cannot be asked of ranges: a text pattern that is no prefix, or
            an AND of ORs with too many conditions on them; or ``keep`` names no column
        OptionError : ``ranges`` is no such mapping, or what it names is no scalar of the schema; or
            ``invalid``, ``tags`` or ``now`` is something else
        """
        invalid = checked_choice("invalid={}", invalid, get_args(Invalid))
        asked = self._workers.request(ranges, among)
        given, request, schema = self._workers.keeping(events, keep, asked, self._set.now.result_schema)
        if invalid == "skip":
            return pa.Table.from_batches(self._workers.pairs(given, request, schema), schema)
        found: list[pa.RecordBatch] = []
        lacking: list[pa.RecordBatch] = []
        for pairs, lacks in self._workers.pairs_and_lacks(given, request, schema):
            if lacks.num_rows and invalid == "raise":
                event, column, reason = (field[0].as_py() for field in lacks)
                raise EventError(reason, column=f"column {column!r}", event=event)
            found.append(pairs)
            lacking.append(lacks)
        matches = pa.Table.from_batches(found, schema)
        return matches if invalid == "raise" else (matches, pa.Table.from_batches(lacking, LACKS))

    def match_batches(
        self, events: Events, ranges: RangeNames | None = None, *, keep: Keep = None, **among: Unpack[Among]
    ) -> pa.RecordBatchReader:
        """Returns a reader of what ``match`` returns, piece by piece as results come.

        Memory does not follow the size of the input. Nothing is matched before the first piece is
        read. DuckDB, polars and others read it as a table.
        """
        asked = self._workers.request(ranges, among)
        given, request, schema = self._workers.keeping(events, keep, asked, self._set.now.result_schema)
        return pa.RecordBatchReader.from_batches(schema, self._workers.pairs(given, request, schema))

    def match_lists(
        self, events: Events, ranges: RangeNames | None = None, **among: Unpack[Among]
    ) -> pa.ChunkedArray[Any]:
        """Returns the ids that match each event: list<id> array, one list a row, in row order.

        Ids within a list are in the order that ``match`` has. ``ranges``, ``ids``, ``tags`` and
        ``now`` as for ``match``. A frame's index is not in them: the guide says how to add it.
        """
        type = self._set.now.id_type
        lists = self._workers.lists(events, type, self._workers.request(ranges, among))
        return pa.chunked_array(list(lists), pa.list_(type))

    def count(self, events: Events, ranges: RangeNames | None = None, **among: Unpack[Among]) -> NDArray[np.int64]:
        """Returns the number of subscriptions that match each event: (rows) int64.

        ``ranges``, ``ids``, ``tags`` and ``now`` as for ``match``.
        """
        counts = list(self._workers.counts(events, self._workers.request(ranges, among)))
        return np.concatenate(counts) if counts else np.empty(0, np.int64)

    def exists(self, events: Events, ranges: RangeNames | None = None, **among: Unpack[Among]) -> NDArray[np.bool_]:
        """Says of each event whether any subscription matches it: (rows) bool.

        An event is left at its first match, by ``bitslice`` at the end of its segment. ``ranges``,
        ``ids``, ``tags`` and ``now`` as for ``match``.
        """
        found = list(self._workers.exists(events, self._workers.request(ranges, among)))
        return np.concatenate(found) if found else np.empty(0, np.bool_)

    def hits(self, events: Events, ranges: RangeNames | None = None, **among: Unpack[Among]) -> pa.Table:
        """Counts the events that each subscription matches, without a table of pairs.

        ``ranges``, ``ids``, ``tags`` and ``now`` as for ``match``. All events are matched with the
        subscriptions that there are when it begins, unless they live in pages.

        Returns
        -------
        pyarrow.Table : columns (subscription: type of the ids, events: int64) of those that match
            any, in the order of ``Matcher.ids``; of those in pages, by id
        """
        return self._workers.hits(events, self._workers.request(ranges, among))

    def match_one(self, event: Event, *, unknown: Unknown = "raise", **among: Unpack[Among]) -> list[Any]:
        """Finds which subscriptions are true for one event, which needs no table.

        A service that matches each request by itself calls this. An event of plain columns takes a
        sixth to a quarter of the time of ``match`` with one row, and one that needs Arrow up to six
        times as long (docs/matching.md, "One event"). Many events at once are quicker by far as a
        table.

        Parameters
        ----------
        event : a mapping from name to value, a dataclass, a named tuple, a Row of Spark, or a
            pydantic model. What is not there is NULL. Values are what ``pyarrow.array`` takes for
            the type of the column; a datetime has a time zone where its column has one
        unknown : ``"raise"``: a key that the schema has not is an error, so that none is misspelt;
            ``"ignore"``: it is left out
        ids, tags, now : as for ``match``

        Returns
        -------
        list : ids, in the order of ``Matcher.ids``. Strings, numbers, Booleans and dates in columns
            that are no lists, maps and structs are read without Arrow, as long as no expression has
            patterns, computed values or special functions, and no ``ids``, ``tags`` or ``now`` are
            given; all else is matched as a batch of one row, and found just the same

        Raises
        ------
        EventError : a value is not of its column's type, or a key is not in the schema
        OptionError, SubscriptionError : as from ``match``; or ``unknown`` is something else
        """
        return self._single.ids(event, unknown, among)

    def count_one(self, event: Event, *, unknown: Unknown = "raise", **among: Unpack[Among]) -> int:
        """Returns how many subscriptions match one event; arguments are those of ``match_one``."""
        return self._single.count(event, unknown, among)

    def exists_one(self, event: Event, *, unknown: Unknown = "raise", **among: Unpack[Among]) -> bool:
        """Says whether any subscription matches one event; arguments are those of ``match_one``."""
        return self._single.exists(event, unknown, among)

    def match_topk_one(
        self,
        event: Event,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        unknown: Unknown = "raise",
        **among: Unpack[Among],
    ) -> list[tuple[Any, float]]:
        """Finds the most relevant subscriptions among those that are true for one event.

        Returns pairs of id and score, the best first. ``event`` and ``unknown`` are as for
        ``match_one``, all else as for ``match_topk``.
        """
        return self._single.best(event, unknown, self._topk(k, score, event_weights), among)

    def reasons(self, events: Events, by: By = "attribute", **among: Unpack[Among]) -> pa.Table:
        """Says why subscriptions match none of the events: what alone has turned events away.

        A subscription would be true of such an event, were what is named true of it: for a campaign
        that gets nothing, what is to be relaxed, and how much that would bring.

        Parameters
        ----------
        events : as for ``match``, all matched with the subscriptions that there are when it begins
        by : ``"attribute"``, all that a subscription says of one attribute together, or
            ``"predicate"``, each predicate by itself. Its text is made once for each of those that
            are told, so ask for some subscriptions rather than for all of millions
        ids, tags, now : as for ``match``

        Returns
        -------
        pyarrow.Table : columns (subscription, attribute, predicate, events: int64) for each
            subscription that matches none of the events, in the order of ``Matcher.ids``; names are
            dictionaries of strings, and ``predicate`` is there only by predicate. What alone turned
            most events away comes first. A last row with NULL for a name tells how many events no
            single one has turned away. Events that lack what must be defined do not count.
            Predicates are those that ``explain`` shows: negations have gone into them

        Raises
        ------
        EventError, SubscriptionError, OptionError : as from ``match``; or ``by`` is something else
        """
        return self._workers.reasons(events, self._workers.request(None, among), checked_by(by))

    def match_topk(
        self,
        events: Events,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        keep: Keep = None,
        **among: Unpack[Among],
    ) -> pa.Table:
        """Finds the most relevant subscriptions among those that are true for each event.

        Sadoghi and Jacobsen, "Relevance Matters" (III.C, VI). What is true is scored: a predicate
        by its weight, an AND by its parts, an OR by the best of its parts that are true. What has
        no weight weighs 0, and a subscription without a priority has 0: where no subscription has
        any, or none has any longer, all scores are 0, and the best are those of the lowest ids.

        Parameters
        ----------
        events : as ``match`` takes them
        k : how many are wanted for each event, at least 1; there are fewer where fewer match
        score : ``"dot"`` adds up the weights of the predicates of an AND, each times what the event
            gives to its attribute; ``"sum"`` adds up their weights alone; ``"max"`` is the largest
            of the products; ``"priority"`` that of the subscription, whatever is true
        ids, tags, now, keep : as for ``match``
        event_weights : what events give to attributes, for ``dot`` and ``max``: the name of a
            column of maps from name to weight, or a mapping from name to the name of a column of
            numbers, or to a number for all events. Names are those of a ``PredicateTable``:
            ``age``, ``user.age``, ``attrs['k']``, but for ``size(tags)``; that of a column counts
            for all that is asked of it, that of an entry before it. NULL, and what is not named, is
            1. Weights are numbers from 0 to 1e100. Keys of a map that name nothing else of the
            schema mean nothing

        Returns
        -------
        pyarrow.Table : columns (event: int64 number of the row, subscription: type of the ids,
            score: double, and the columns that are kept), ordered by event, then the best first;
            equal scores by id, strings by their characters. Scores are sums of doubles in no
            promised order: the last bit may differ between kinds

        Raises
        ------
        OptionError : ``k``, ``score`` or ``event_weights`` cannot be used. It does not depend on
            the subscriptions that are there
        EventError : as from ``match``; or a column of weights is not there, has no numbers, or one
            that is negative, infinite or NaN
        """
        return self.match_topk_batches(events, k, score, event_weights, keep=keep, **among).read_all()

    def match_topk_batches(
        self,
        events: Events,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        keep: Keep = None,
        **among: Unpack[Among],
    ) -> pa.RecordBatchReader:
        """Returns a reader of what ``match_topk`` returns, piece by piece as results come.

        The rows of one event are in one piece, unless they have much that is kept.
        """
        topk, asked = self._topk(k, score, event_weights), self._workers.request(None, among)
        given, request, schema = self._workers.keeping(events, keep, asked, self._set.now.scored_schema)
        return pa.RecordBatchReader.from_batches(schema, self._workers.best(given, topk, request, schema))

    def counters(
        self,
        events: Events,
        k: int | None = None,
        ranges: RangeNames | None = None,
        score: Score | None = None,
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        exists: bool = False,
        **among: Unpack[Among],
    ) -> dict[str, int]:
        """Counts what the kernels look at for these events, which is the same on every machine.

        Parameters
        ----------
        k : what is looked at to find the k best of each event
        ranges : as for ``match``; not together with ``k``
        ids, tags, now : as for ``match``
        exists : what is looked at for ``exists``; not together with ``k``
        score, event_weights : with ``k``, as for ``match_topk``

        Returns
        -------
        conjunctions : looked at
        candidates : conjunctions that passed the filter of the kind of index and were verified; of
            ``opindex`` those that were counted, of ``pbtree`` those whose count was complete
        predicates : evaluated while verifying; of these two kinds also entries that were read
        nodes : nodes, postings or pages visited, as the kind defines
        matches : pairs that are returned: each counts once, however often a kernel finds it. With
            ``k``, true conjunctions that were scored
        """
        exists = checked_flag("exists={}", exists)
        if k is not None and ranges is not None:
            raise OptionError("the best matches are found for values, not for ranges: give k or ranges, not both")
        if k is not None and exists:
            raise OptionError("give k, to find the best matches, or exists, to find out whether there are any")
        for name, given in (("score", score), ("event_weights", event_weights)):
            if k is None and given is not None:
                raise OptionError(f"{name}= is for the best matches: give k, too")
        topk = None if k is None else self._topk(k, "dot" if score is None else score, event_weights)
        wanted = ANY if exists else COUNTS
        return Figures(self._workers.counters(events, topk, self._workers.request(ranges, among), wanted))

    def columns_of_weights(self, k: int, score: Score = "dot", event_weights: Any = None) -> list[str]:
        """Returns the columns of the events that ``match_topk`` needs for event weights."""
        return self._topk(k, score, event_weights).columns

    def _topk(self, k: int, score: Score = "dot", event_weights: Any = None) -> TopK:
        return checked_topk(k, score, event_weights, self._set.schema)


def _in_pages(subscriptions: SubscriptionSet) -> Any:  # a PagedSet
    from colmatch.paged.paged_set import PagedSet

    assert isinstance(subscriptions, PagedSet)
    return subscriptions


def _unpickle(data: bytes) -> Matcher:
    return Matcher(MemorySet(saved.from_bytes(data)))
