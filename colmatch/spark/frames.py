"""A matcher over a Spark DataFrame, batch or streaming, classic or Connect.

``match`` selects the columns that the expressions use, checks their names and types, sees to it
that the workers can read the index, and hands the rest to ``mapInArrow``; ``worker.py`` is what
then runs. Everything that can be wrong is found here, before a job starts.

The index travels as a file:

- a classic session with a local master reads it where it is. It is linked (not copied) into a
  folder of this process first where the file system allows, so that a query keeps its version when
  the index is replaced under it, up to eight times;
- any other session has it sent to its workers once, as an artifact whose name carries the content
  hash, since Spark refuses a name twice;
- with ``shared=True`` the workers open the path that was given: right for an index on a file system
  that all of them mount.

Kernels are compiled once for each machine and kept on disk (``kernels/_jit.py``). ``match`` runs
one row of NULLs through the matcher, so workers on this machine find them compiled. The first
workers on another machine compile them into the user's cache folder there, which takes seconds; to
spare them that, call ``colmatch.kernels._jit.copy_cache(folder)`` for a folder that they see, and
set ``spark.executorEnv.COLMATCH_CACHE_DIR`` to it. Where nothing can be read or written, each
worker compiles for itself.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from colmatch.errors import DependencyError, EventError, OptionError, StoreError, near, shown

try:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import ArrayType, DataType, DoubleType, LongType, StringType, StructField, StructType
except ImportError as error:
    raise DependencyError(f'colmatch.spark needs PySpark 4: pip install "colmatch[spark]" ({error})') from error

from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.session import same_zone
from colmatch.spark.worker import IndexFile, Task, TopKOptions
from colmatch.store.file import content_hash
from colmatch.store.saved import file_name

VERSIONS_KEPT = 8  # of one index, in this process: a link holds the disk space of what it names

# names of the artifacts that a session has
_sent: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()
# version of the matcher, file, its hash
_saves: weakref.WeakKeyDictionary[Matcher, tuple[int, Path, str]] = weakref.WeakKeyDictionary()
_links: dict[Path, list[Path]] = {}  # path that was given -> links to its versions, the newest last


def match(
    df: DataFrame,
    matcher: Matcher | str | os.PathLike[str],
    keep: Sequence[str] = (),
    mode: Literal["pairs", "list"] = "pairs",
    shared: bool | None = None,
    ranges: RangeNames | None = None,
) -> DataFrame:
    """Matches each row of ``df`` against all subscriptions.

    Parameters
    ----------
    df : events; may be streaming. Columns that neither the expressions nor ``keep`` name are
        dropped before they reach Python
    matcher : path of a saved matcher, or a matcher, which is saved once to a temporary file that
        lives as long as this process
    keep : columns of ``df`` that go into the result, as many times as their row matches
    mode : ``"pairs"`` gives a row for each match, with the column ``subscription``; ``"list"`` a
        row for each event, with the column ``subscriptions``, an array that is empty where nothing
        matches
    shared : True when workers can open the given path, False to have the file sent to them, None to
        send it unless ``df`` belongs to a classic session with a local master
    ranges : attributes that are ranges in the events, as for ``Matcher.match``

    Returns
    -------
    DataFrame : the kept columns, then the ids: long or string, as in the matcher

    Raises
    ------
    EventError : a column that the expressions or ``keep`` name is missing, or has a type that the
        matcher was not built for
    OptionError : ``keep``, ``mode``, ``shared`` or ``ranges`` cannot be used; or timestamp literals
        without a zone were read in another zone than that of the session,
        ``spark.sql.session.timeZone``
    StoreError, OSError : the path does not hold a matcher

    colmatch must be installed on the workers.
    """
    _check_arguments(matcher, mode, shared)
    return _matched(df, matcher, keep, mode == "list", shared, ranges=ranges)


def match_topk(
    df: DataFrame,
    matcher: Matcher | str | os.PathLike[str],
    k: int,
    score: str = "dot",
    event_weights: str | Mapping[str, str | float] | None = None,
    keep: Sequence[str] = (),
    shared: bool | None = None,
) -> DataFrame:
    """Finds the most relevant subscriptions among those that are true for each row of ``df``.

    Parameters
    ----------
    df, matcher, keep, shared : as for ``match``
    k, score, event_weights : as for ``Matcher.match_topk``; columns of weights are those of ``df``

    Returns
    -------
    DataFrame : the kept columns, ``subscription`` and ``score``, a row for each of the best
    matches. Spark promises no order of rows: sort by what is kept of an event and by ``score``

    Raises
    ------
    OptionError : ``k``, ``score`` or ``event_weights`` cannot be used, or as from ``match``
    EventError, StoreError, OSError : as from ``match``. What a worker finds wrong with a weight is
        an EventError in the job that fails, which counts events within their partition
    """
    _check_arguments(matcher, "pairs", shared)
    if isinstance(event_weights, Mapping):
        event_weights = dict(event_weights)
    return _matched(df, matcher, keep, False, shared, TopKOptions(k, score, event_weights))


def _matched(
    df: DataFrame,
    matcher: Matcher | str | os.PathLike[str],
    keep: Sequence[str],
    lists: bool,
    shared: bool | None,
    best: TopKOptions | None = None,
    ranges: RangeNames | None = None,
) -> DataFrame:
    results = ["subscriptions" if lists else "subscription"] + ["score"] * (best is not None)
    kept = _names(keep)
    if not isinstance(df, DataFrame):
        raise EventError(f"events are a Spark DataFrame here, not {type(df).__name__}: Matcher.match takes others")
    columns = _ColumnNames(df)
    _check_kept(kept, columns, results)
    given, file, hash, opened = _opened(matcher)
    _check_zone(df, opened)
    # What is kept comes first, so the worker needs only its number; what is used may be among it.
    sent = [columns.find(name, "keep") for name in kept]
    used: list[tuple[int, str]] = []

    def use(name: str, wanted_by: str) -> None:
        found = columns.find(name, wanted_by)
        if found not in sent:
            sent.append(found)
        used.append((sent.index(found), name))

    lenient = opened.options.missing_columns == "null"
    for name in opened.columns_with(ranges):
        if not lenient or name in columns:
            use(name, "an expression" if ranges is None else "an expression or a range")
    if best is not None:
        for name in opened.columns_of_weights(best.k, best.score, best.event_weights):
            if name not in [other for _, other in used]:
                use(name, "event_weights")
    # Under names of our own, since mapInArrow does not quote a name with a dot in it.
    events = (
        df.select(*[columns.column(name).alias(f"c{i}") for i, name in enumerate(sent)])
        if sent
        else df.selectExpr("true AS c0")
    )
    _check_types(events, used, opened, best, ranges)

    id = LongType() if pa.types.is_integer(opened.ids.type) else StringType()
    answer: DataType = ArrayType(id, containsNull=False) if lists else id
    fields = zip(sent[: len(kept)], events.schema.fields)
    schema = StructType([StructField(name, field.dataType, field.nullable, field.metadata) for name, field in fields])
    for name, one in zip(results, (answer, DoubleType())):
        schema.add(name, one, nullable=False)
    index = _reach(df, given, file, hash, shared)
    task = Task(index, len(kept), tuple(used), lists, tuple(schema.names), best, ranges and dict(ranges))
    return events.mapInArrow(task, schema)


def _check_arguments(matcher: object, mode: str, shared: bool | None) -> None:
    """Checks what can be checked without the DataFrame."""
    if mode not in ("pairs", "list"):
        raise OptionError(f"mode={mode!r}: 'pairs' or 'list' is needed")
    if isinstance(matcher, Matcher) and shared:
        raise OptionError(
            "shared=True needs a path that the workers see: call matcher.save(path) there and pass the path"
        )


def _names(keep: object) -> list[str]:
    """Returns the columns that ``keep`` names."""
    kept: list[Any] = [keep] if isinstance(keep, str) or not isinstance(keep, Iterable) else list(keep)
    if not all(isinstance(name, str) for name in kept):
        raise OptionError(f"keep={shown(keep)}: names of columns are needed")
    return kept


def _check_kept(kept: list[str], columns: _ColumnNames, results: list[str]) -> None:
    """Checks that no column is kept twice, nor one that is called as the result."""
    for name in kept:
        if columns.folded(name) in results:
            raise OptionError(
                f"keep has {name!r}, which is a name of the result: rename the column, df.withColumnRenamed({name!r}, …)"
            )
    for name, times in Counter(map(columns.folded, kept)).items():
        if times > 1:
            raise OptionError(f"keep has {name!r} {times} times")


def _opened(matcher: Matcher | str | os.PathLike[str]) -> tuple[Path, Path, str, Matcher]:
    """Returns the path that was given, a file of the same matcher, its hash, and the matcher."""
    if isinstance(matcher, Matcher):
        file, hash = _saved(matcher)
        return file, file, hash, matcher
    given = Path(os.path.abspath(file_name(matcher)))
    file, hash = _pinned(given)
    opened = Matcher.open(file, mmap=True)
    if content_hash(file) != hash:
        raise StoreError(f"{given} was replaced while it was read: call match again")
    return given, file, hash, opened


class _ColumnNames:
    """The names of a DataFrame's columns, looked up as Spark does.

    Case does not matter, unless ``spark.sql.caseSensitive`` says so.
    """

    def __init__(self, df: DataFrame) -> None:
        self.df = df
        self.sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
        self.names: dict[str, list[str]] = {}
        for name in df.columns:
            self.names.setdefault(self.folded(name), []).append(name)

    def __contains__(self, name: str) -> bool:
        return self.folded(name) in self.names

    def folded(self, name: str) -> str:
        """Returns the name as it is compared with others."""
        return name if self.sensitive else name.lower()

    def find(self, name: str, wanted_by: str) -> str:
        """Returns the name as the DataFrame has it."""
        found = self.names.get(self.folded(name), [])
        if len(found) == 1:
            return found[0]
        if found:
            raise EventError(
                f"the DataFrame has {len(found)} columns called {name!r}, which {wanted_by} names: rename all but one"
            )
        raise EventError(
            f"the DataFrame has no column {name!r}, which {wanted_by} names: {near(name, self.df.columns, 'it')}"
        )

    def column(self, name: str) -> Column:
        """Returns a column, quoted: a dot in a name would be read as a struct's field."""
        return self.df["`" + name.replace("`", "``") + "`"]


def _check_zone(df: DataFrame, matcher: Matcher) -> None:
    """Checks that the session has the zone in which literals were read, if any was."""
    read, session, literal = (
        matcher.options.timezone,
        df.sparkSession.conf.get("spark.sql.session.timeZone") or "",
        matcher.local_literal,
    )
    if literal is not None and not same_zone(read, session):
        raise OptionError(
            f"parts of timestamps or timestamp literals, {literal!r} for one, were read in the zone {read!r}, and the zone of this session "
            f"is {session!r}: "
            f"build the matcher with Options(timezone={session!r}), or set spark.sql.session.timeZone to {read!r}, "
            "or give both columns and literals a zone"
        )


def _check_types(
    events: DataFrame,
    used: list[tuple[int, str]],
    matcher: Matcher,
    best: TopKOptions | None,
    ranges: RangeNames | None,
) -> None:
    """Raises what a worker would raise on its first batch.

    The matcher gets a row of NULLs of the types that Spark will send.
    """
    for i, name in used:
        if " collate " in (type := events.schema.fields[i].dataType.simpleString()):
            raise EventError(
                f"column {name!r} is {type}, expressions compare strings by bytes: cast it to STRING COLLATE UTF8_BINARY"
            )
    try:
        types = to_arrow_schema(
            events.schema, timezone=events.sparkSession.conf.get("spark.sql.session.timeZone")
        ).types
    except PySparkException as error:
        raise EventError(f"Spark cannot hand over these columns as Arrow: {error}") from error
    nulls = pa.record_batch([pa.nulls(1, type) for type in types], names=events.columns)
    row = nulls.select([i for i, _ in used]).rename_columns([name for _, name in used])
    if best is None:
        matcher.match(row, ranges)
    else:
        matcher.match_topk(row, best.k, best.score, best.event_weights)


def _reach(df: DataFrame, given: Path, file: Path, hash: str, shared: bool | None) -> IndexFile:
    """Makes an index readable for workers: ``file``, which the caller calls ``given``."""
    if shared:
        return IndexFile(hash, str(given), str(given), artifact=False)
    spark = df.sparkSession
    if (
        shared is None
        and isinstance(df, ClassicDataFrame)
        and (spark.conf.get("spark.master") or "").startswith("local")
    ):
        return IndexFile(hash, str(given), str(file), artifact=False)
    name = f"colmatch-{hash}"
    names = _sent.setdefault(spark, set())
    if name not in names:
        if file.name != name:
            file = Path(shutil.copyfile(file, _folder() / name))
        spark.addArtifact(str(file), file=True)
        names.add(name)
    return IndexFile(hash, str(given), name, artifact=True)


def _saved(matcher: Matcher) -> tuple[Path, str]:
    """Saves a matcher, once for each of its versions; returns the file and its content hash."""
    saved = _saves.get(matcher)
    version = matcher.version  # before it is saved: an update in between makes this save look old, not new
    if saved is None or saved[0] != version:
        new = _folder() / f"new-{os.urandom(8).hex()}"
        matcher.save(new)
        hash = content_hash(new)
        saved = _saves[matcher] = version, new.replace(_folder() / f"colmatch-{hash}"), hash
    return saved[1:]


def _pinned(path: Path) -> tuple[Path, str]:
    """Links an index under its content hash; returns the link and that hash.

    The link keeps this version when the index is replaced. It is the path itself on another file
    system than the temporary folder, or where links are not allowed.
    """
    new = _folder() / f"link-{os.urandom(8).hex()}"
    try:
        os.link(os.path.realpath(path), new)
    except OSError:
        return path, content_hash(path)
    try:
        hash = content_hash(new)
        link = new.replace(_folder() / f"colmatch-{hash}")
    finally:
        new.unlink(missing_ok=True)  # also when it was to replace a link to the same file, which does nothing
    links = _links[path] = [*(old for old in _links.get(path, []) if old != link), link]
    for old in links[:-VERSIONS_KEPT]:
        links.remove(old)
        if not any(old in others for others in [*_links.values(), [file for _, file, _ in _saves.values()]]):
            old.unlink(missing_ok=True)
    return link, hash


@cache
def _folder() -> Path:
    """Makes a folder for files that live as long as this process, since jobs read them."""
    folder = Path(tempfile.mkdtemp(prefix="colmatch-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not a forked child
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
