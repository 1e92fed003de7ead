"""The matcher: it holds subscriptions, and finds the matches of batches of events."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, cast, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.pieces import concat
from colmatch.errors import EventError, OptionError, Rejected, SubscriptionError, show_value
from colmatch.events.computed.modes import moded_value, sized_column
from colmatch.events.required import LACKS
from colmatch.events.rows import events_of
from colmatch.events.special.clock import clock_of
from colmatch.explain import Explanation, explain, explain_many
from colmatch.given.arguments import check_choice, check_flag
from colmatch.given.incoming import Columns, Event, Events
from colmatch.given.language import Language, LanguageName, Missing
from colmatch.given.options import Options
from colmatch.given.session import ANSI, LEGACY_SIZES, ZONE
from colmatch.kernels.sink import ANY, COUNTS
from colmatch.kinds.registry import KINDS, IndexName, is_in_pages
from colmatch.kinds.settings import Settings
from colmatch.matching.checks.findings import Checks, find
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.reasons import By, check_by
from colmatch.matching.report import NOISY, Report, check_share
from colmatch.matching.request import INVALID, Invalid, Keep, SomeIds, SomeTags, Time, Unknown, among_of
from colmatch.matching.single import SingleEvents
from colmatch.matching.subset import Subset, SubsetSource, subset_of
from colmatch.matching.topk.arguments import Score, TopK, check_topk
from colmatch.matching.verification import check_indexes, differences
from colmatch.matching.workers import Workers
from colmatch.paged.header import is_pages
from colmatch.show.names import Listed
from colmatch.show.notebook import Figures, bytes_of, fold_body, table
from colmatch.store import saved
from colmatch.subscriptions.change import (
    Change,
    Deletion,
    Way,
    definitions_in,
    read_deletion,
    read_one_way,
    read_ways,
)
from colmatch.subscriptions.definitions import join_definitions, read_definitions
from colmatch.subscriptions.given import GivenSubscriptions, Subscriptions, Tags, name_columns, tags_apart
from colmatch.subscriptions.intake import Collecting, Errors, read_errors
from colmatch.subscriptions.parameters import fill
from colmatch.updates.initial import build_parts, check_options, take_in
from colmatch.updates.memory_set import MemorySet
from colmatch.updates.read_back import Changes, Subscription, Sync, read_subscription, read_table, without
from colmatch.updates.records import of_restored
from colmatch.updates.redefinition import Redefinition
from colmatch.updates.set import SubscriptionSet

__all__ = ["Changes", "Matcher", "Rejected", "Subscription", "index_kinds"]


def index_kinds() -> list[IndexName]:
    """Returns the names of the index kinds."""
    return cast(list[IndexName], list(KINDS))


class Matcher(Listed):
    """An indexed set of subscriptions, made by ``Matcher.build`` or ``Matcher.open``.

    Several threads may use a matcher at once; each thread gets its own working memory. ``insert``,
    ``replace``, ``upsert``, ``delete``, ``update``, ``redefine``, ``sync`` and ``restore`` are
    updates. A batch of events sees a whole update or none of it.
    Every batch that begins after the update sees it.

    Attributes
    ----------
    schema : the events' columns

    Examples
    --------
    >>> import colmatch as cm
    >>> import pyarrow as pa
    >>> rules = {"cheap": "price < 100", "beach": "dest IN ('LIS', 'NCE')"}
    >>> matcher = cm.Matcher.build(rules, {"price": "double", "dest": "string"})
    >>> offers = pa.table({"price": [89.5, 310.0], "dest": ["LIS", "NCE"]})
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
        subscriptions: Subscriptions,
        schema: Columns,
        index: IndexName | Settings = "auto",
        options: Options | Mapping[str, Any] | None = None,
        errors: Errors = "raise",
        sample: Events | None = None,
        language: LanguageName = "sql",
        missing: Missing | None = None,
        constants: Mapping[Any, Any] | None = None,
        tags: Tags | None = None,
        progress: bool = False,
        parameters: Mapping[str, Any] | None = None,
        define: Mapping[str, Any] | None = None,
        max_rejected: int | float | None = None,
        id: str | None = None,
        expression: str | None = None,
    ) -> Matcher:
        """Indexes subscriptions for events of a schema.

        Parameters
        ----------
        subscriptions : ``{id: text}``, an iterable of ``(id, text or expression)``, or a
            ``PredicateTable``. Or an Arrow table with columns ``id`` and ``expression``: any object
            with the Arrow C stream or array protocol, a dataset, or a table of Delta, Iceberg,
            Lance or Hudi. Ids are int64 or strings, and unique
        schema : anything that ``Schema`` takes, such as ``{name: type}``, a schema of Arrow or
            Spark, a table or data frame. Or a text: ``"age bigint, city string"``. In the language
            of be-tree, also anything that ``colmatch.betree.Domains`` takes. An event with NULL in
            a non-nullable field matches nothing
        index : name of an index kind, or its settings from ``colmatch.index``. ``"auto"`` picks the
            kind with the lowest estimated time per event
        sample : events as ``match`` takes them, similar to the events to come. The index counts in
            them how often values occur; a few thousand are enough. The matcher and its saved form
            keep up to 4,096 of them, and updates that build an index count them again
        errors : ``"raise"`` the first error, or ``"collect"``: leave bad expressions out and list
            them in ``rejected``
        language : language of the expressions: ``"sql"``, or ``"betree"``, the language of the
            be-tree library
        missing : truth of a predicate on a missing value: ``"unknown"``, as in SQL, or ``"false"``.
            With ``"false"``, every predicate but IS NULL is false, also ``<>`` and ``NOT IN``, and
            NOT turns false into true. The default is unknown in SQL and false in be-tree's language
        constants : constants for be-tree expressions: ``{id: {"flight_id": 7}}``. A table of
            subscriptions has them in its column ``constants``
        tags : tags of the subscriptions: ``{id: ["tenant-7"]}``, or a table (id, tags).
            ``match(events, tags=...)`` selects subscriptions by their tags. A table of expressions
            has tags in its column ``tags``: lists of strings, or a string for a single tag. A text
            names another column for them
        options : ``Options``, or a mapping of some of them
        progress : show a bar on standard error while expressions are read
        parameters : values for ``:name`` in texts: ``{"limit": 5}``. A list is for ``IN :ids``.
            The value becomes a part of the text, and is what ``explain`` shows
        define : definitions: conditions by name, ``{"staff": "team = 'ops'"}``. Expressions, and
            other definitions, use a name like a Boolean column: ``staff AND price > 10``. In a
            table of subscriptions, a row whose column ``define`` has a name is a definition
        max_rejected : with ``errors="collect"``, how many expressions may be left out, or which
            share of all: ``0.01``. By default at most all but one
        id, expression : names of the columns of a table that have the ids and the expressions; by
            default ``id`` and ``expression``

        Raises
        ------
        ExpressionError : an expression or definition is invalid. The message names it, the place
            and the reason
        SubscriptionError : more expressions are invalid than ``max_rejected``, or all are
        SubscriptionError, SchemaError, OptionError : an argument cannot be used
        """
        requested = Language.read_arguments(language, missing)
        named = fill(name_columns(subscriptions, id, expression, tags), parameters, requested)
        tolerated = read_errors(errors, max_rejected, is_whole=True)
        intake = take_in(
            named,
            schema,
            index,
            options,
            tolerated,
            requested,
            constants,
            tags_apart(tags),
            progress,
            define=define,
        )
        if not is_in_pages(intake.requested):
            return cls(MemorySet(build_parts(intake, sample)))
        from colmatch.paged.paged_set import build_file

        return cls(build_file(intake, sample))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the matcher to one file, atomically.

        Readers of an older file under that name are not disturbed. Saving a matcher to its own file
        folds its journal in. Any other file is a copy without a journal.

        Raises
        ------
        StoreError : ``path`` cannot be the name of a file, or is a folder, a pipe or a device. Or
            its journal is in use, or holds updates that this matcher lacks
        OSError : as from the built-in ``open``. After any error, ``path`` is unchanged

        Examples
        --------
        >>> matcher.save("alerts.cm")
        >>> len(cm.Matcher.open("alerts.cm"))
        2
        """
        name = saved.file_name(path)
        if isinstance(self._set, MemorySet):
            from colmatch.paged.replace_lock import lock_pages

            with lock_pages(name):
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
        """Opens a saved matcher, or a file of pages (index ``pbtree``).

        Parameters
        ----------
        mmap : memory-map the arrays instead of reading them, so that processes share one copy
        verify : check all checksums, which reads the file once
        journal : write each update to ``path`` + ``".journal"`` before the call returns. Opening
            applies the journal's updates again, until ``save`` to the same path folds them in. A
            lock keeps the journal to one matcher, until the matcher is closed or its process ends.
            Other matchers see the last save
        fsync : write to the disk before the call returns, so that updates survive a power cut
        cache_bytes : size of the page cache of a file of pages, by default as it was built. Pages
            are read and checked when they are needed, so ``mmap`` and ``verify`` have no effect.
            Such a file holds its updates without a journal
        trusted : use the arrays of a file unchecked, because you have written it yourself. By
            default they are checked first, so that a crafted file cannot make kernels read outside
            them. An index without such a check is rebuilt (the guide, docs/files.md, "Files from
            elsewhere")
        options : options to change on opening: any that a running matcher can change. The time zone
            can change if no expression depends on it. An ``Options`` sets its non-default values; a
            mapping sets its entries. Everything else stays as built

        Raises
        ------
        OptionError : ``options`` change an option that the index was built with. Or
            ``cache_bytes`` is not a valid size, or the file is not a file of pages. Or ``journal``
            is set for a file of pages, or ``fsync`` without ``journal`` for another file
        StoreError : the file is damaged, foreign, or of another format version. Or ``path`` cannot
            be the name of a file. Or the journal is in use, of another save, or damaged (the
            message has the place)
        OSError : as from the built-in ``open``
        """
        flags = {"mmap": mmap, "verify": verify, "journal": journal, "fsync": fsync, "trusted": trusted}
        mmap, verify, journal, fsync, trusted = (check_flag(f"{flag}={{}}", value) for flag, value in flags.items())
        name = saved.file_name(path)
        if is_pages(name):
            if journal:
                raise OptionError(f"journal=True: {name} is a file of pages, in which updates are at once")
            from colmatch.paged.paged_set import PagedSet

            return cls(PagedSet(name, cache_bytes=cache_bytes, fsync=fsync))._with(options)
        if cache_bytes is not None:
            raise OptionError(
                f"cache_bytes={show_value(cache_bytes)}: {name} is no file of pages, so there is no cache"
            )
        if fsync and not journal:
            raise OptionError("fsync=True goes with journal=True: without a journal, updates are in memory alone")
        return cls(saved.load(name, mmap, verify, journal, fsync, trusted))._with(options)

    def _with(self, options: Options | Mapping[str, Any] | None) -> Matcher:
        """Returns this matcher with options changed on opening; closes it on an error."""
        try:
            if options is not None:
                opened = self.options.opened_with(options, self._set.now.session_parts.zone)
                self._set.options = check_options(self._set.requested, opened)
        except BaseException:
            self.close()
            raise
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (saved.to_bytes(self._set.parts()),)

    # Changing

    def insert(
        self,
        subscriptions: Subscriptions,
        errors: Errors = "raise",
        constants: Mapping[Any, Any] | None = None,
        tags: Tags | None = None,
        parameters: Mapping[str, Any] | None = None,
        max_rejected: int | float | None = None,
        id: str | None = None,
        expression: str | None = None,
    ) -> None:
        """Adds subscriptions: all of them, or none after an error.

        Parameters
        ----------
        subscriptions : as ``build`` takes them. They are read before the update begins, so their
            source may itself update the matcher. Ids have the type of the present ids; an empty
            matcher takes either type
        errors : ``"raise"`` the first error, or ``"collect"``: leave bad expressions out and list
            them in ``rejected``
        constants, tags, parameters, id, expression : as for ``build``
        max_rejected : with ``errors="collect"``, how many expressions may be left out, or which
            share of those given; by default any number

        Raises
        ------
        SubscriptionError : an id is already present, given twice, or of another type. Or more
            expressions are invalid than ``max_rejected``
        ExpressionError : an expression is invalid
        OptionError : the matcher is closed, or another update of the same thread is not finished,
            as in a signal handler. Or the index kind refuses the subscriptions. Up to 512 at a time
            are checked only when they are merged. Another kind then matches the refused ones, and
            ``stats()`` has the reason
        StoreError : the journal cannot be written. The matcher is unchanged

        Examples
        --------
        >>> matcher.insert({"dear": "price > 300"})
        >>> matcher.match_one({"price": 310.0})
        ['dear']
        """
        named = name_columns(subscriptions, id, expression, tags)
        self._update(self._change(Way.INSERT, named, constants, tags, parameters), read_errors(errors, max_rejected))

    def replace(
        self,
        subscriptions: Subscriptions,
        errors: Errors = "raise",
        constants: Mapping[Any, Any] | None = None,
        tags: Tags | None = None,
        parameters: Mapping[str, Any] | None = None,
        max_rejected: int | float | None = None,
        id: str | None = None,
        expression: str | None = None,
    ) -> None:
        """Replaces subscriptions by others with the same ids: all of them, or none after an error.

        Arguments and errors are as for ``insert``, but each id must be present. A bad expression
        that is left out does not remove the old subscription. The new subscription has only its own
        tags; the old tags are dropped.

        Examples
        --------
        >>> matcher.replace({"cheap": "price < 50"})
        >>> matcher.match_one({"price": 89.5})
        []
        """
        named = name_columns(subscriptions, id, expression, tags)
        self._update(self._change(Way.REPLACE, named, constants, tags, parameters), read_errors(errors, max_rejected))

    def upsert(
        self,
        subscriptions: Subscriptions,
        errors: Errors = "raise",
        constants: Mapping[Any, Any] | None = None,
        tags: Tags | None = None,
        parameters: Mapping[str, Any] | None = None,
        max_rejected: int | float | None = None,
        id: str | None = None,
        expression: str | None = None,
    ) -> None:
        """Adds subscriptions, and replaces those with the same ids: all of them, or none.

        Arguments and errors are as for ``replace``, but an id may have a subscription or none.

        Examples
        --------
        >>> matcher.upsert({"cheap": "price < 50", "dear": "price > 300"})
        >>> matcher.match_one({"price": 310.0})
        ['dear']
        """
        named = name_columns(subscriptions, id, expression, tags)
        self._update(self._change(Way.UPSERT, named, constants, tags, parameters), read_errors(errors, max_rejected))

    def _change(
        self, way: Way, subscriptions: Any, constants: Any, tags: Any, parameters: Any, feed: bool = False
    ) -> Change:
        return read_one_way(way, subscriptions, self._set.language, constants, tags_apart(tags), parameters, feed)

    def delete(self, ids: SomeIds | None = None, *, tags: SomeTags | None = None) -> None:
        """Removes subscriptions: all of them, or none after an error.

        Parameters
        ----------
        ids : any iterable, an Arrow array, or a ``Subset`` of this matcher
        tags : remove the subscriptions with any of these tags; with ``ids``, those of them alone. A
            tag without subscriptions is no error

        Raises
        ------
        SubscriptionError : an id has no subscription; ids of a ``Subset`` need none
        OptionError, StoreError : as from ``insert``; or neither argument is given

        Examples
        --------
        >>> matcher.delete(["cheap"])
        >>> len(matcher)
        1
        """
        self._set.update(Change(self._deletion(ids, tags), None), "raise")

    def _deletion(self, ids: Any, tags: Any) -> Deletion:
        return read_deletion(ids, tags, ids.criteria if isinstance(ids, Subset) else None)

    def update(
        self,
        *,
        insert: Subscriptions | None = None,
        replace: Subscriptions | None = None,
        upsert: Subscriptions | None = None,
        delete: SomeIds | None = None,
        delete_tags: SomeTags | None = None,
        define: Mapping[str, Any] | None = None,
        errors: Errors = "raise",
        constants: Mapping[Any, Any] | None = None,
        tags: Tags | None = None,
        parameters: Mapping[str, Any] | None = None,
        max_rejected: int | float | None = None,
        id: str | None = None,
        expression: str | None = None,
    ) -> None:
        """Makes several changes in one step: all of them, or none after an error.

        A batch of events sees the subscriptions before the update, or after it. The journal has the
        update as one record. Deletions come first, so an id that is deleted can be inserted again.

        Parameters
        ----------
        insert, replace, upsert : subscriptions as the methods of these names take them, all texts
            or all ``PredicateTable``. An id is in one of them
        delete, delete_tags : ids and tags, as ``delete`` takes them. With both, of these ids those
            with any of these tags
        define : definitions to change, as ``redefine`` takes them. Subscriptions that use them
            change with them
        errors, constants, tags, parameters, max_rejected, id, expression : as for ``insert``, for
            all new subscriptions

        Raises
        ------
        SubscriptionError : as from the methods of these names; or an id is given twice
        ExpressionError, OptionError, StoreError : as from ``insert``; or nothing is given

        Examples
        --------
        >>> matcher.update(delete=["cheap"], insert={"dear": "price > 300"})
        >>> matcher.ids.to_pylist()
        ['beach', 'dear']
        """
        deletion = None if delete is delete_tags is None else self._deletion(delete, delete_tags)
        tables = {Way.REPLACE: replace, Way.UPSERT: upsert, Way.INSERT: insert}
        ways = {way: name_columns(table, id, expression, tags) for way, table in tables.items()}
        definitions = read_definitions(define)
        is_alone = bool(definitions) and insert is replace is upsert is deletion is None
        change = Change(None, None)
        if not is_alone:
            change = read_ways(ways, deletion, self._set.language, constants, tags_apart(tags), parameters)
        self._update(change, read_errors(errors, max_rejected), definitions)

    def redefine(self, define: Mapping[str, Any]) -> None:
        """Changes definitions, and the subscriptions that use them, in one step.

        Parameters
        ----------
        define : conditions by name, as ``build`` takes them: new definitions, and others for known
            names. None removes a definition

        Raises
        ------
        ExpressionError : a definition is invalid, or a subscription is with the new definitions.
            Nothing is changed
        OptionError : texts of subscriptions were not kept (``PredicateTable``,
            ``Options(keep_texts=False)``), so nobody knows which use a definition; or as from
            ``insert``
        SchemaError : a definition has the name of a column
        StoreError : the journal cannot be written. The matcher is unchanged

        Examples
        --------
        >>> matcher.redefine({"south": "dest IN ('LIS', 'NCE')"})
        >>> matcher.insert({"sun": "south AND price < 80"})
        >>> matcher.redefine({"south": "dest = 'LIS'"})
        >>> matcher.definitions
        {'south': "dest = 'LIS'"}
        """
        self.update(define=define)

    @property
    def definitions(self) -> dict[str, str]:
        """The texts of the definitions, by name."""
        return dict(self._set.now.definitions)

    def _update(
        self,
        request: Change | Sync,
        errors: Literal["raise"] | Collecting,
        define: Mapping[str, str | None] = MappingProxyType({}),
    ) -> list[Rejected]:
        """Makes an update, with the definitions in its table and those of ``define``."""
        changes = join_definitions(definitions_in([request.given]), define)
        if not changes:
            return self._set.update(request, errors)
        schema, language = self._set.schema, self._set.language
        redefinition = Redefinition(request, changes, schema, language, errors != "raise", self.options.keep_texts)
        return self._set.update(redefinition, errors)

    def sync(
        self,
        subscriptions: Subscriptions,
        errors: Errors = "raise",
        constants: Mapping[Any, Any] | None = None,
        tags: Tags | None = None,
        parameters: Mapping[str, Any] | None = None,
        max_rejected: int | float | None = None,
        id: str | None = None,
        expression: str | None = None,
    ) -> Changes:
        """Makes the subscriptions those of a table, in one step, and returns what has changed.

        Subscriptions that the table lacks are deleted. Those with another expression, weights,
        priority or tags are replaced, and all others stay as they are. If the table has
        definitions, the same holds for them.

        A change feed of Delta Lake, a table with the columns ``_change_type`` and
        ``_commit_version``, changes only its own rows: the last change of each id, or of the name
        of a definition, counts.

        Parameters
        ----------
        subscriptions : as ``build`` takes them, but no ``PredicateTable``; or a change feed
        errors, constants, tags, parameters, id, expression : as for ``insert``. A bad expression
            that is left out does not remove the old subscription
        max_rejected : as for ``build``: all of a table bad is an error, too

        Returns
        -------
        Changes : three arrays of ids: ``added``, ``changed``, ``removed``

        Raises
        ------
        OptionError : a subscription has no text to compare with (``Options(keep_texts=False)``); or
            as from ``insert``
        ExpressionError, SubscriptionError, StoreError : as from ``insert``

        Examples
        --------
        >>> changes = matcher.sync({"cheap": "price < 90", "beach": "dest IN ('LIS', 'NCE')"})
        >>> changes.changed.to_pylist(), len(changes.added), len(changes.removed)
        (['cheap'], 0, 0)
        """
        named = name_columns(subscriptions, id, expression, tags)
        given = self._change(Way.UPSERT, named, constants, tags, parameters, feed=True).given
        if not isinstance(given, GivenSubscriptions):
            raise SubscriptionError("sync() compares texts: a PredicateTable has none")
        sync = Sync(given)
        tolerated = read_errors(errors, max_rejected, given.deleted is None, len(given.ids))
        rejected = {entry.id for entry in self._update(sync, tolerated)}
        return without(sync.changes, rejected) if rejected else sync.changes

    def snapshot(self) -> Matcher:
        """Returns a matcher with the present subscriptions, which keeps them.

        Updates of this matcher do not change the snapshot. It can be matched, explained, saved and
        updated like any matcher; its updates change nothing here, and it has no journal. Nothing is
        copied: the snapshot shares the arrays, which never change.

        Raises OptionError: this is a matcher in a file of pages. ``save`` makes a copy of it.

        Examples
        --------
        >>> before = matcher.snapshot()
        >>> matcher.delete(["cheap"])
        >>> len(matcher), len(before)
        (1, 2)
        """
        return Matcher(self._in_memory("snapshot()").snapshot())

    def restore(self, snapshot: Matcher) -> None:
        """Makes the subscriptions of a snapshot those of this matcher, as one update.

        The snapshot may have been updated, so a release can be tried before it is made. It may be
        of another process: any matcher with the same schema, language and build options will do.
        Nothing is copied, but a journal gets the whole snapshot as one record.

        Raises
        ------
        OptionError : ``snapshot`` is no such matcher, or one of both is in a file of pages; or as
            from ``insert``
        StoreError : the journal cannot be written. The matcher is unchanged

        Examples
        --------
        >>> before = matcher.snapshot()
        >>> matcher.delete(["cheap"])
        >>> matcher.restore(before)
        >>> len(matcher)
        2
        """
        if not isinstance(snapshot, Matcher):
            raise OptionError(f"restore() takes a matcher, as snapshot() returns it, not {show_value(snapshot)}")
        own, other = self._in_memory("restore()"), snapshot._in_memory("restore()")
        if own.schema != other.schema or own.language != other.language:
            raise OptionError("restore(): the snapshot has another schema or language than this matcher")
        own.options.with_settings(other.options)
        parts = other.parts()
        own.restore(parts.version, lambda: of_restored(saved.to_bytes(parts)))

    def _in_memory(self, call: str) -> MemorySet:
        if not isinstance(self._set, MemorySet):
            raise OptionError(f"{call}: a file of pages has one state alone; save() makes a copy of it")
        return self._set

    def compact(self, sample: Events | None = None) -> None:
        """Merges all subscriptions into one index, without the deleted ones.

        Other merges run in the background, during batches and updates. This merge is finished when
        the call returns.

        Parameters
        ----------
        sample : events that replace the sample of ``build``, as a separate update. The index is
            rebuilt with them in any case. An empty sample counts nothing. The default is the
            observed events, if ``Options(observe=...)`` keeps any

        Raises
        ------
        EventError : the events of the sample do not fit the schema
        OptionError : the index kind refuses the subscriptions, or the matcher is closed. The
            matcher is unchanged, as after any other error
        """
        self._set.compact(sample)

    def close(self) -> None:
        """Stops a running merge and releases the journal.

        A closed matcher can still be matched, saved and copied; it refuses updates. A matcher that
        is never closed ends with its process.
        """
        self._set.close()

    def __enter__(self) -> Matcher:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Reading back

    def expression(self, id: int | str) -> str:
        """Returns the text of a subscription, as it was given.

        A condition of the builder is the text that means the same.

        Raises SubscriptionError: the id has no subscription, or its text was not kept
        (``PredicateTable``, ``Options(keep_texts=False)``).

        Examples
        --------
        >>> matcher.expression("cheap")
        'price < 100'
        """
        return self[id].expression

    def __getitem__(self, id: int | str) -> Subscription:
        """Returns the subscription of an id: expression, tags, weights, priority, constants.

        Raises SubscriptionError: as from ``expression``.
        """
        return read_subscription(self._set.parts_of(id).version, id)

    def __contains__(self, id: object) -> bool:
        """Returns whether an id has a subscription."""
        return isinstance(id, (int, str)) and self._set.has(id)

    def __iter__(self) -> Iterator[int | str]:
        """Iterates over the present ids, in the order of ``ids``."""
        return iter(self.ids.to_pylist())

    def to_table(self) -> pa.Table:
        """Returns all subscriptions as a table, from which ``build`` makes the same matcher.

        Returns
        -------
        pyarrow.Table : columns (id: int64 or string, expression: large_string), in the order of
            ``ids``. Where a subscription has some, also weights: map<string, double>, priority:
            double, constants: map<string, int64>, and tags: list<string>

        Raises
        ------
        SubscriptionError : the text of a subscription was not kept, as for ``expression``

        Examples
        --------
        >>> matcher.to_table().to_pylist()[0]
        {'id': 'cheap', 'expression': 'price < 100'}
        """
        return read_table(self._set.parts().version)

    def verify(self, events: Events) -> pa.Table:
        """Compares the matches of the index with those of a scan of the same subscriptions.

        A service may call this now and then with some of its events. The scan is a second index, so
        it takes time and memory for all subscriptions.

        Parameters
        ----------
        events : as ``match`` takes them; some thousands are enough

        Returns
        -------
        pyarrow.Table : columns (event: int64 number of the row, subscription: type of the ids,
            found: bool), one row for each difference: ``found`` is True where the index has a match
            that the scan lacks. Without a fault there are no rows

        Raises
        ------
        StoreError : the index leads outside its arrays. ``scan`` and ``bitslice``, the kinds that
            ``auto`` chooses, are checked for that; a damaged index of another kind may end the
            process, as it may in ``match``
        EventError : as from ``match``

        Examples
        --------
        >>> matcher.verify(offers).num_rows
        0
        """
        if isinstance(self._set, MemorySet):
            parts = self._set.snapshot().parts()
            check_indexes(parts)
            return differences(Workers(MemorySet(parts)), lambda: parts, events)
        return differences(self._workers, self._set.parts, events)

    def check(
        self,
        checks: Checks = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        sample: Events | None = None,
    ) -> pa.Table:
        """Checks the subscriptions for mistakes, such as rules that can never match.

        Each finding is proven, or the row says that it is undecided, and why. An example is an
        event that ``match`` has confirmed.

        Parameters
        ----------
        checks : names of checks, or one name. ``"never"``: no event matches. ``"always"``: each
            event matches. ``"duplicate"``: the normal form is that of the earlier subscription
            ``other``. ``"contained"``: each event that it matches, ``other`` matches too.
            ``"overlaps"``: some event matches it and ``other``; needs ``ids`` or ``tags``. ``"dead
            column"``: it needs a column that is NULL in all of the sample. ``"odd literal"``: no
            event of the sample has a literal of its ``=`` or IN. The default is the first three,
            and with a sample the last two. Among a million subscriptions, ``never`` and
            ``duplicate`` took 2.1 s together and ``always`` 1.0 s, ``contained`` 0.56 s for each
            subscription, and ``overlaps`` 2 minutes for each of ``ids`` (processor time, AMD EPYC,
            2026-11-29, ``bench_check``). Without ``ids`` and ``tags``, ``contained`` leaves out
            what follows from its other rows: if A is in B, and B in C, no row says that A is in C
        ids, tags : check these subscriptions alone, as for ``subset``; an id without a subscription
            is an error. ``never`` and ``always`` then answer for each, also with ``disproven``
        sample : events as ``match`` takes them; all are kept in memory. An event of it may be an
            example

        Returns
        -------
        pyarrow.Table : columns (id: type of the ids, finding: string, other: type of the ids,
            status: string, ``proven``, ``disproven`` or ``undecided``, reason: string, example:
            struct of the events' columns). Rows have the order of the checks above, then of
            ``Matcher.ids``. ``contained`` leaves out duplicates, and subscriptions that always or
            never match. With ``Options(ansi=True)``, a subscription with a value that can fail is
            undecided where a proof would need that it does not fail

        Raises
        ------
        OptionError : a check has another name, or lacks the ``ids`` or the ``sample`` that it
            needs, or ``tags`` is no list of strings, or the sample has no event for a check that
            compares with it
        SubscriptionError : an id has no subscription
        EventError : the sample does not fit the schema

        Examples
        --------
        >>> matcher.insert({"odd": "price < 5 AND price > 9", "less": "price < 50"})
        >>> found = matcher.check(["never", "contained"])
        >>> found.select(["id", "finding"]).to_pylist()
        [{'id': 'odd', 'finding': 'never'}, {'id': 'less', 'finding': 'contained'}]
        >>> found["other"].to_pylist()
        [None, 'cheap']
        """
        return find(self._set.parts(), checks, ids, tags, sample)

    # State

    def __len__(self) -> int:
        return len(self._set.now)

    def __repr__(self) -> str:
        attributes, index = self._set.now.attributes.used, self.index
        shown = repr(index.kind if index.is_default else index)
        return f"Matcher({len(self):,} subscriptions, {attributes} attributes, index={shown})"

    def _repr_html_(self) -> str:
        stats, fields = self.stats(), self.schema.arrow
        schema = fold_body(f"{len(fields)} columns", table((field.name, field.type) for field in fields))
        memory = f"{bytes_of(stats['bytes'])}, {stats['bytes_per_subscription']:,.1f} bytes a subscription"
        rows = {
            "kind": self.index, "subscriptions": stats["subscriptions"], "attributes": stats["attributes"],
            "schema": schema, "memory": memory, "updates": stats["updates"], "why this kind": stats["reason"],
        }  # fmt: skip
        return table(rows.items(), "colmatch.Matcher")

    @property
    def options(self) -> Options:
        """The options of the matcher. Options in ``options.RUNNING`` can be changed.

        Raises
        ------
        OptionError : the new options change one that the index was built with, or do not suit its
            kind
        """
        return self._set.options

    @options.setter
    def options(self, options: Options) -> None:
        self._set.options = check_options(self._set.requested, self._set.options.with_settings(options))

    @property
    def language(self) -> LanguageName:
        """The language of the expressions: sql or betree."""
        return self._set.language.name

    @property
    def missing(self) -> Missing:
        """The truth of a predicate on a missing value: unknown or false."""
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
        """Columns and struct fields that the expressions use, such as ``("user", "age")``."""
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
        """Top-level columns that events must have.

        They are the columns that the expressions use, and the columns that the schema declares not
        nullable. Events may lack all others.
        """
        return self.columns_with()

    def explain(self, event: Event | Events, id: int | str, *, now: Time | None = None) -> Explanation:
        """Explains why a subscription is true, or not, for one event, in the words of its text.

        Parameters
        ----------
        event : a mapping from column to value, or an object, as for ``match_one``; absent columns
            are NULL. Or one row of anything that ``match`` takes
        id : id of the subscription
        now : as for ``match``

        Raises
        ------
        SubscriptionError : the id has no subscription
        EventError : the event is not one row, or does not fit the schema. Or the row lacks a column
            that this subscription uses

        Examples
        --------
        >>> print(matcher.explain({"price": 310.0}, "cheap"))
        subscription 'cheap': does not match
        └─ False   price < 100   [310.0]
        """
        parts = self._set.parts_of(id)
        return explain(parts, event, id, clock_of(now, parts.schema, parts.options.timezone))

    def explain_many(
        self, events: Events, ids: SomeIds | None = None, *, tags: SomeTags | None = None, now: Time | None = None
    ) -> pa.Table:
        """Explains some subscriptions for each of some events.

        The time depends on these alone, and not on how many other subscriptions there are.

        Parameters
        ----------
        events : as ``match`` takes them
        ids, tags : as for ``subset``; an id without a subscription is left out
        now : as for ``match``

        Returns
        -------
        pyarrow.Table : columns (event: int64 number of the row, subscription: type of the ids,
            matched: bool, explanation: string, the expression with the value behind each part), one
            row for each event and subscription, by event

        Raises
        ------
        SubscriptionError : ``ids`` is not a list of ids, or has another type than the matcher's ids
        OptionError : ``tags`` is not a list of strings, or neither argument is given
        EventError : an event does not fit the schema, or lacks a column that a subscription uses

        Examples
        --------
        >>> matcher.explain_many(offers, ["cheap"])["explanation"].to_pylist()[1]
        'price < 100 [310.0]'
        """
        among = self.subset(ids, tags)
        given, needed = among.criteria
        named = among.ids if given is None or needed else given.array
        present = [id for id in dict.fromkeys(named.to_pylist()) if self._set.has(id)]
        clock = clock_of(now, self.schema, self.options.timezone)
        return explain_many(self._set.parts_of, events_of(events, self.schema), present, self._set.now.id_type, clock)

    def stats(self) -> dict[str, Any]:
        """Returns sizes, the bytes of each array, and the index kind with its settings and reason.

        ``costs`` estimates the nanoseconds an event with each kind, which ``index="auto"``
        compares. ``segments`` lists the segments, the oldest first. A segment is a group of
        subscriptions that are indexed together. ``updates`` and ``merges`` count the updates and
        merges since the build. ``merge_error`` is the error of the last merge, or None.
        ``journal`` has path, records and bytes, or is None.
        """
        return Figures(self._set.stats())

    @property
    def rejected(self) -> list[Rejected]:
        """The subscriptions that were left out with ``errors="collect"``, one entry for each id.

        An entry is removed when its id is inserted, replaced or deleted. An update keeps all its
        entries, and drops the oldest others beyond 10,000 in all.
        """
        return list(self._set.now.rejected.values())

    @property
    def spark_settings(self) -> dict[str, str]:
        """Settings of Spark that change the meaning of the expressions, and a part of one for each.

        - ``spark.sql.session.timeZone``: a timestamp literal that was read in the zone of the
          options, or a value computed in that zone, such as ``hour(at)``. It stays when its
          subscription is deleted
        - ``spark.sql.ansi.enabled``: a computed value with a result that depends on it. If it was
          solved for its column, it stays when its subscription is deleted
        - ``spark.sql.legacy.sizeOfNull``: a column that is passed to ``size``
        """
        now = self._set.now
        zone, ansi = now.session_parts
        parts = {ZONE: zone, ANSI: ansi or moded_value(now.attributes), LEGACY_SIZES: sized_column(now.attributes)}
        return {setting: part for setting, part in parts.items() if part is not None}

    @property
    def version(self) -> int:
        """The number of updates that have been made."""
        return self._set.now.updates

    # Matching

    def columns_with(
        self,
        ranges: RangeNames | None = None,
        now: Time | None = None,
        k: int | None = None,
        score: Score | None = None,
        event_weights: Any = None,
    ) -> list[str]:
        """Returns the top-level columns that events need for a call with these arguments.

        Arguments are as for ``match``, and with ``k`` as for ``match_topk``.

        Raises OptionError: the call would raise it, or there is a score, or event weights, without
        ``k``.

        Examples
        --------
        >>> matcher.columns
        ['price', 'dest']
        >>> matcher.columns_with(k=1, event_weights={"price": "hurry"})
        ['price', 'dest', 'hurry']
        """
        columns = self._workers.columns(self._workers.request(ranges, now=now))
        topk = self._topk_if(k, score, event_weights)
        return columns if topk is None else list(dict.fromkeys([*columns, *topk.columns]))

    def subset(self, ids: SomeIds | None = None, tags: SomeTags | None = None) -> Subset:
        """Makes a subset of the subscriptions, to be passed as ``ids=``, or to ``match`` itself.

        An id without a subscription matches nothing and is no error. The subset follows the
        matcher: a batch sees the subscriptions that have these ids or tags when it begins. A
        prepared subset saves looking the ids up again in each call.

        Parameters
        ----------
        ids : any iterable, or an array of Arrow or numpy; by default the ids of all subscriptions
        tags : keep only subscriptions with any of these tags, as for ``match``; by default all

        Raises
        ------
        SubscriptionError : ``ids`` is not a list of ids, or has another type than the matcher's ids
        OptionError : ``tags`` is not a list of strings, or neither argument is given

        Examples
        --------
        >>> mine = matcher.subset(["beach"])
        >>> matcher.count(offers, ids=mine).tolist()
        [1, 1]
        """
        selection = subset_of(ids, tags, self._set.now, SubsetSource(lambda: self._set.now, self.match))
        if selection is None:
            raise OptionError("a subset is of some ids, or of some tags: say which")
        return selection

    @overload
    def match(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        invalid: Literal["skip", "raise"] = "skip",
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pa.Table: ...

    @overload
    def match(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        invalid: Literal["collect"],
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> tuple[pa.Table, pa.Table]: ...

    def match(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        invalid: Invalid = "skip",
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> Any:
        """Finds the subscriptions that are true for each event.

        Parameters
        ----------
        events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``, a dataset, a lazy
            query of polars, or a table of Delta, Iceberg, Lance or Hudi. It has all columns that
            the expressions use (``columns``), unless ``Options(missing_columns="null")``. Or a list
            of events as ``match_one`` takes them: the schema gives their types, an absent name is
            NULL, and names that nothing needs are left out. All rows of a table, data frame or list
            see the same updates. A reader also sees updates made between its batches
        ranges : ``{"price": ("price_low", "price_high")}``: attributes with a range instead of a
            value. Each names two columns or struct fields, the low and the high end, both included.
            The ends have the attribute's type; the attribute needs no column. One NULL end is no
            bound; two NULL ends are a NULL value. A subscription matches if it is true for some
            value of each range. ``betree`` and ``bestar`` visit only predicates that meet the
            ranges, and ``scan`` has its own kernel. All other kinds look at every condition of
            every subscription
        invalid : treatment of an event with NULL in a column that the schema declares not nullable.
            Such an event never matches. ``"skip"`` does nothing more, ``"raise"`` raises an error,
            and ``"collect"`` also returns a table of these events with the reasons
        keep : columns of the events to add to the result: a name, or several. Each match repeats
            its row's values. Upper and lower case may differ
        ids : search only subscriptions with these ids: anything that ``subset`` takes or returns
        tags : search only subscriptions with any of these tags: an iterable of strings, or an array
            of Arrow. With ``ids``, a subscription needs one of the ids and one of the tags. A tag
            without subscriptions is no error
        now : current time for the special functions, one for all events: a datetime, or seconds
            since 1970-01-01 in UTC. It replaces their clock columns and the column ``now``, which
            events then need not have. Whole-number clock columns get whole seconds. A datetime
            without a zone is read in ``Options(timezone=...)``

        Returns
        -------
        pyarrow.Table : columns (event: int64 number of the row, subscription: type of the ids, and
            the kept columns under the events' names), ordered by event. String views and run-end
            encoded columns become plain ones. The subscriptions of one event have the order of
            ``Matcher.ids`` with every kind, unless ``Options(order="any")``. With
            ``invalid="collect"``, a pair of this table and a table (event, column: the one with
            NULL, reason), ordered by event

        Raises
        ------
        EventError : a column is absent or does not fit the schema. Or a range begins above its end,
            or ``keep`` names no column. Or an expression does not support the ranges. Examples are
            a text pattern that is no prefix, and an AND of ORs with too many conditions on ranges
        OptionError : ``ranges`` is not such a mapping, or names no scalar column of the schema; or
            ``invalid``, ``tags`` or ``now`` cannot be used

        Examples
        --------
        >>> matcher.match(offers).to_pydict()
        {'event': [0, 0, 1], 'subscription': ['cheap', 'beach', 'beach']}
        """
        invalid = check_choice("invalid={}", invalid, INVALID)
        plain_request = self._workers.request(ranges, ids, tags, now)
        source, request, schema = self._workers.keep_columns(events, keep, plain_request, self._set.now.result_schema)
        if invalid == "skip":
            return pa.Table.from_batches(self._workers.pairs(source, request, schema), schema)
        pair_batches: list[pa.RecordBatch] = []
        lacking: list[pa.RecordBatch] = []
        for pairs, lacks in self._workers.pairs_and_lacks(source, request, schema):
            if lacks.num_rows and invalid == "raise":
                event, column, reason = (field[0].as_py() for field in lacks)
                raise EventError(reason, column=f"column {column!r}", event=event)
            pair_batches.append(pairs)
            lacking.append(lacks)
        matches = pa.Table.from_batches(pair_batches, schema)
        return matches if invalid == "raise" else (matches, pa.Table.from_batches(lacking, LACKS))

    def match_batches(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pa.RecordBatchReader:
        """Returns a reader of the result of ``match``, piece by piece.

        Memory does not grow with the size of the input. Matching begins when the first piece is
        read. DuckDB, polars and others read the reader as a table.

        Examples
        --------
        >>> [batch.num_rows for batch in matcher.match_batches(offers)]
        [3]
        """
        plain_request = self._workers.request(ranges, ids, tags, now)
        source, request, schema = self._workers.keep_columns(events, keep, plain_request, self._set.now.result_schema)
        return pa.RecordBatchReader.from_batches(schema, self._workers.pairs(source, request, schema))

    def match_lists(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pa.ChunkedArray[Any]:
        """Returns the ids that match each event: list<id> array, one list per row, in row order.

        Ids within a list have the order of ``match``. ``ranges``, ``ids``, ``tags`` and ``now`` are
        as for ``match``. The array has no index of a data frame; the guide shows how to add one.

        Examples
        --------
        >>> matcher.match_lists(offers).to_pylist()
        [['cheap', 'beach'], ['beach']]
        """
        type = self._set.now.id_type
        lists = self._workers.lists(events, type, self._workers.request(ranges, ids, tags, now))
        return pa.chunked_array(list(lists), pa.list_(type))

    def count(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> NDArray[np.int64]:
        """Returns the number of subscriptions that match each event: (rows) int64.

        ``ranges``, ``ids``, ``tags`` and ``now`` are as for ``match``.

        Examples
        --------
        >>> matcher.count(offers).tolist()
        [2, 1]
        """
        counts = list(self._workers.counts(events, self._workers.request(ranges, ids, tags, now)))
        return concat(counts)

    def exists(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> NDArray[np.bool_]:
        """Returns True for each event that any subscription matches: (rows) bool.

        Matching of an event stops at its first match; ``bitslice`` stops at the end of the segment.
        ``ranges``, ``ids``, ``tags`` and ``now`` are as for ``match``.

        Examples
        --------
        >>> matcher.exists(offers).tolist()
        [True, True]
        """
        flags = list(self._workers.exists(events, self._workers.request(ranges, ids, tags, now)))
        return concat(flags, np.bool_)

    def hits(
        self,
        events: Events,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pa.Table:
        """Counts the events that each subscription matches, without a table of pairs.

        ``ranges``, ``ids``, ``tags`` and ``now`` are as for ``match``. All events see the
        subscriptions of the moment when the call begins, except in a file of pages.

        Returns
        -------
        pyarrow.Table : columns (subscription: type of the ids, events: int64), one row for each
            subscription with a match. Rows have the order of ``Matcher.ids``; of a file of pages,
            rows are ordered by id

        Examples
        --------
        >>> matcher.hits(offers).to_pylist()
        [{'subscription': 'cheap', 'events': 1}, {'subscription': 'beach', 'events': 2}]
        """
        return self._workers.hits(events, self._workers.request(ranges, ids, tags, now))

    def match_one(
        self,
        event: Event,
        *,
        unknown: Unknown = "raise",
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> list[Any]:
        """Finds the subscriptions that are true for one event, without a table.

        A service that matches each request by itself calls this method. An event of plain columns
        takes a sixth to a quarter of the time of ``match`` with one row (docs/matching.md, "One
        event"). Many events are much faster as one table.

        Parameters
        ----------
        event : a mapping from name to value, a dataclass, a named tuple, a Row of Spark, or a
            pydantic model. Absent names are NULL. Each value is one that ``pyarrow.array`` takes
            for the type of its column. A datetime has a time zone if its column has one
        unknown : ``"raise"`` an error for a name that is not in the schema, such as a misspelt one,
            or ``"ignore"`` the name
        ids, tags, now : as for ``match``

        Returns
        -------
        list : ids, in the order of ``Matcher.ids``. The fast path reads strings, numbers, Booleans
            and dates without Arrow: in columns, structs, lists and maps. It needs expressions
            without special functions, decimals and times, and no ``ids``, ``tags`` or ``now``.
            Everything else is matched as a batch of one row, with the same result

        Raises
        ------
        EventError : a value does not have its column's type, or a name is not in the schema
        OptionError, SubscriptionError : as from ``match``; or ``unknown`` has another value

        Examples
        --------
        >>> matcher.match_one({"price": 89.5})
        ['cheap']
        """
        return self._single.ids(event, unknown, among_of(ids, tags, now))

    def count_one(
        self,
        event: Event,
        *,
        unknown: Unknown = "raise",
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> int:
        """Counts the subscriptions that match one event; arguments as for ``match_one``."""
        return self._single.count(event, unknown, among_of(ids, tags, now))

    def exists_one(
        self,
        event: Event,
        *,
        unknown: Unknown = "raise",
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> bool:
        """Returns True if any subscription matches one event; arguments as for ``match_one``."""
        return self._single.exists(event, unknown, among_of(ids, tags, now))

    def match_topk_one(
        self,
        event: Event,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        unknown: Unknown = "raise",
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> list[tuple[Any, float]]:
        """Finds the most relevant of the subscriptions that are true for one event.

        Returns pairs of id and score, the best first. ``event`` and ``unknown`` are as for
        ``match_one``, the other arguments as for ``match_topk``.
        """
        return self._single.best(event, unknown, self._topk(k, score, event_weights), among_of(ids, tags, now))

    def reasons(
        self,
        events: Events,
        by: By = "attribute",
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pa.Table:
        """Explains why subscriptions match no event, by the one cause that turned each event away.

        A cause is an attribute or a predicate. A cause alone turns an event away if making its
        predicates true would make the subscription true. For a campaign without matches, the table
        shows the condition to relax and the number of matches to gain.

        Parameters
        ----------
        events : as for ``match``. All events see the subscriptions of the moment when the call
            begins
        by : ``"attribute"``, all predicates of a subscription on one attribute together, or
            ``"predicate"``, each predicate by itself. Every predicate in the result needs its text,
            so choose some subscriptions rather than all of millions
        ids, tags, now : as for ``match``

        Returns
        -------
        pyarrow.Table : columns (subscription, attribute, predicate, events: int64). Only
            subscriptions that match none of the events are listed, in the order of ``Matcher.ids``.
            ``attribute`` and ``predicate`` are dictionaries of strings; ``predicate`` exists only
            with ``by="predicate"``. The cause of most events comes first. A last row, with NULL for
            the cause, counts the events without a single cause. Events with NULL in a non-nullable
            column do not count. Predicates are shown as the matcher keeps them, with NOT
            already resolved

        Raises
        ------
        EventError, SubscriptionError, OptionError : as from ``match``; or ``by`` has another value

        Examples
        --------
        >>> matcher.reasons(offers.slice(1)).to_pylist()
        [{'subscription': 'cheap', 'attribute': 'price', 'events': 1}]
        """
        return self._workers.reasons(events, self._workers.request(None, ids, tags, now), check_by(by))

    def report(
        self,
        events: Events,
        *,
        noisy: float = NOISY,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> Report:
        """Reports which rules match too little or too much, what each costs, and unused columns.

        The work of a rule is estimated, since an index shares its work among all rules. An index
        finds a conjunction by one predicate, at best by the one that lets the fewest events
        through. For these events it tests all predicates of the conjunction.

        Parameters
        ----------
        events : as for ``match``: a sample, or the events of a day. All events see the
            subscriptions of the moment when the call begins. A column that is absent is NULL in all
            of them, whatever ``Options.missing_columns`` says
        noisy : a rule that matches more than this share of the events, from 0 to 1, is noisy
        ids, tags, now : as for ``match``

        Returns
        -------
        Report : ``silent``, ``noisy`` and ``dear`` are parts of its table ``rules``, in another
            order. ``rules`` has a row for each subscription, in the order of ``Matcher.ids``, and
            the int64 columns ``matches``, ``conjunctions``, ``predicates``, ``checked`` (events
            that the rarest predicate of each conjunction lets through, summed over conjunctions)
            and ``tests`` (predicates tested for these events, the estimated work). Its column
            ``share`` is a float64: matches by events, NULL without events. ``attributes``
            has a row for each thing that is asked about events: ``attribute``, ``kind``,
            ``predicates`` that ask it, ``events`` that have a value of it. ``unused``
            lists columns of the schema that no kept condition of any subscription reads, whatever
            ``ids`` and ``tags`` are; ``absent`` lists columns that are used and no event has. A
            column that is declared not nullable is used by each subscription

        Raises
        ------
        OptionError : ``noisy`` is no share; or as from ``match``
        EventError, SubscriptionError : as from ``match``

        Examples
        --------
        >>> print(matcher.report(offers))
        events: 2, rules: 2
        rules that match more than 50%: 1: 'beach' 100%
        rules with the most work: 'beach' 67%, 'cheap' 33%
        """
        return self._workers.report(events, self._workers.request(None, ids, tags, now), check_share(noisy))

    def match_topk(
        self,
        events: Events,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ranges: RangeNames | None = None,
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pa.Table:
        """Finds the most relevant of the subscriptions that are true for each event.

        Sadoghi and Jacobsen, "Relevance Matters" (III.C, VI). A true predicate scores its weight.
        An AND combines the scores of its parts, and an OR has the best score of its true parts. The
        default weight and priority are 0. If no subscription has a weight or priority, all scores
        are 0, and the lowest ids come first.

        Parameters
        ----------
        events : as ``match`` takes them
        k : number of subscriptions for each event, at least 1; an event with fewer matches gets
            fewer
        score : ``"dot"`` adds up the weights of the predicates of an AND, each times the event's
            weight of its attribute; ``"sum"`` adds up the predicates' weights alone; ``"max"`` is
            the largest of the products; ``"priority"`` is the subscription's priority alone
        ranges : as for ``match``. A subscription has the best score that it has for any value of
            each range. Every kind then finds all matches and scores them
        ids, tags, now, keep : as for ``match``
        event_weights : weights that events give to attributes, for ``dot`` and ``max``. Either the
            name of a column of maps from attribute to weight, or a mapping with the weight of each
            attribute. There, a weight is the name of a column of numbers, or one number for all
            events. Attributes are named as in a ``PredicateTable`` (``age``, ``user.age``,
            ``attrs['k']``), without ``size(tags)``. A column's weight counts for all attributes of
            the column; an entry's own weight takes precedence. NULL and unnamed attributes weigh 1.
            Weights are numbers from 0 to 1e100. Map keys that name no attribute of the schema are
            ignored

        Returns
        -------
        pyarrow.Table : columns (event: int64 number of the row, subscription: type of the ids,
            score: double, and the kept columns). Rows are ordered by event, then the best first.
            Equal scores are ordered by id, strings by their characters. Scores are sums of doubles
            in no promised order, so their last bit may differ between kinds

        Raises
        ------
        OptionError : ``k``, ``score`` or ``event_weights`` cannot be used, whatever the
            subscriptions are
        EventError : as from ``match``. Or a column of weights is absent, is not numeric, or has a
            negative, infinite or NaN weight

        Examples
        --------
        >>> matcher.match_topk(offers, 1).to_pydict()
        {'event': [0, 1], 'subscription': ['beach', 'beach'], 'score': [0.0, 0.0]}
        """
        return self.match_topk_batches(
            events, k, score, event_weights, ranges=ranges, keep=keep, ids=ids, tags=tags, now=now
        ).read_all()

    def match_topk_batches(
        self,
        events: Events,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ranges: RangeNames | None = None,
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pa.RecordBatchReader:
        """Returns a reader of the result of ``match_topk``, piece by piece.

        The rows of one event are in one piece, unless their kept columns are large.
        """
        topk, plain_request = self._topk(k, score, event_weights), self._workers.request(ranges, ids, tags, now)
        source, request, schema = self._workers.keep_columns(events, keep, plain_request, self._set.now.scored_schema)
        return pa.RecordBatchReader.from_batches(schema, self._workers.best(source, topk, request, schema))

    def counters(
        self,
        events: Events,
        k: int | None = None,
        ranges: RangeNames | None = None,
        score: Score | None = None,
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        exists: bool = False,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> dict[str, int]:
        """Counts the work of the kernels for these events, which is the same on every machine.

        Parameters
        ----------
        k : count the search for the k best of each event
        ranges : as for ``match``
        ids, tags, now : as for ``match``
        exists : count the work of ``exists``; not together with ``k``
        score, event_weights : with ``k``, as for ``match_topk``

        Returns
        -------
        conjunctions : conjunctions that were visited
        candidates : conjunctions that passed the filter of the index kind and were verified. For
            ``opindex``, conjunctions that were counted; for ``pbtree``, all with a complete count
        predicates : predicates evaluated while verifying; for these two kinds also entries that
            were read
        nodes : nodes, postings or pages visited, as the kind defines
        matches : pairs in the result; each counts once, however often a kernel finds it. With
            ``k``, true conjunctions that were scored

        Examples
        --------
        >>> matcher.counters(offers)["matches"]
        3
        """
        exists = check_flag("exists={}", exists)
        if k is not None and exists:
            raise OptionError("give k, to find the best matches, or exists, to find out whether there are any")
        topk = self._topk_if(k, score, event_weights)
        purpose = ANY if exists else COUNTS
        return Figures(self._workers.counters(events, topk, self._workers.request(ranges, ids, tags, now), purpose))

    def _topk(self, k: int, score: Score = "dot", event_weights: Any = None) -> TopK:
        return check_topk(k, score, event_weights, self._set.schema)

    def _topk_if(self, k: int | None, score: Score | None, event_weights: Any) -> TopK | None:
        """Returns the arguments for the best matches; None without ``k``."""
        if k is not None:
            return self._topk(k, "dot" if score is None else score, event_weights)
        for name, value in (("score", score), ("event_weights", event_weights)):
            if value is not None:
                raise OptionError(f"{name}= is for the best matches: give k, too")
        return None


def _in_pages(subscriptions: SubscriptionSet) -> Any:  # a PagedSet
    from colmatch.paged.paged_set import PagedSet

    assert isinstance(subscriptions, PagedSet)
    return subscriptions


def _unpickle(data: bytes) -> Matcher:
    return Matcher(MemorySet(saved.from_bytes(data)))
