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
import re
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
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
    from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType
except ImportError as error:
    raise DependencyError(f'colmatch.spark needs PySpark 4: pip install "colmatch[spark]" ({error})') from error

from colmatch.matcher import Matcher
from colmatch.session import same_zone
from colmatch.spark.worker import IndexFile, Task
from colmatch.store.file import content_hash
from colmatch.store.saved import file_name

JAVA_LEAST = 17
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

    Returns
    -------
    DataFrame : the kept columns, then the ids: long or string, as in the matcher

    Raises
    ------
    EventError : a column that the expressions or ``keep`` name is missing, or has a type that the
        matcher was not built for
    OptionError : ``keep``, ``mode`` or ``shared`` cannot be used; or timestamp literals without a
        zone were read in another zone than that of the session, ``spark.sql.session.timeZone``
    StoreError, OSError : the path does not hold a matcher

    colmatch must be installed on the workers.
    """
    result = _check_arguments(matcher, mode, shared)
    kept = _names(keep)
    if not isinstance(df, DataFrame):
        raise EventError(f"events are a Spark DataFrame here, not {type(df).__name__}: Matcher.match takes others")
    columns = _ColumnNames(df)
    _check_kept(kept, columns, result)
    given, file, hash, opened = _opened(matcher)
    _check_zone(df, opened)
    # What is kept comes first, so the worker needs only its number; what is used may be among it.
    sent = [columns.find(name, "keep") for name in kept]
    used = []
    lenient = opened.options.missing_columns == "null"
    for name in opened.columns:
        if lenient and name not in columns:
            continue
        found = columns.find(name, "an expression")
        if found not in sent:
            sent.append(found)
        used.append((sent.index(found), name))
    # Under names of our own, since mapInArrow does not quote a name with a dot in it.
    events = (
        df.select(*[columns.column(name).alias(f"c{i}") for i, name in enumerate(sent)])
        if sent
        else df.selectExpr("true AS c0")
    )
    _check_types(events, used, opened)

    id = LongType() if pa.types.is_integer(opened.ids.type) else StringType()
    answer: DataType = id if mode == "pairs" else ArrayType(id, containsNull=False)
    fields = zip(sent[: len(kept)], events.schema.fields)
    schema = StructType([StructField(name, field.dataType, field.nullable, field.metadata) for name, field in fields])
    schema.add(result, answer, nullable=False)
    index = _reach(df, given, file, hash, shared)
    task = Task(index, len(kept), tuple(used), mode == "list", tuple(schema.names))
    return events.mapInArrow(task, schema)


def _check_arguments(matcher: object, mode: str, shared: bool | None) -> str:
    """Checks what can be checked without the DataFrame, and returns the name of the result."""
    if mode not in ("pairs", "list"):
        raise OptionError(f"mode={mode!r}: 'pairs' or 'list' is needed")
    if isinstance(matcher, Matcher) and shared:
        raise OptionError(
            "shared=True needs a path that the workers see: call matcher.save(path) there and pass the path"
        )
    return "subscription" if mode == "pairs" else "subscriptions"


def _names(keep: object) -> list[str]:
    """Returns the columns that ``keep`` names."""
    kept: list[Any] = [keep] if isinstance(keep, str) or not isinstance(keep, Iterable) else list(keep)
    if not all(isinstance(name, str) for name in kept):
        raise OptionError(f"keep={shown(keep)}: names of columns are needed")
    return kept


def _check_kept(kept: list[str], columns: _ColumnNames, result: str) -> None:
    """Checks that no column is kept twice, nor one that is called as the result."""
    for name in kept:
        if columns.folded(name) == result:
            raise OptionError(
                f"keep has {name!r}, which is the name of the result: rename the column, df.withColumnRenamed({name!r}, …)"
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
            f"timestamp literals, {literal!r} for one, were read in the zone {read!r}, and the zone of this session is {session!r}: "
            f"build the matcher with Options(timezone={session!r}), or set spark.sql.session.timeZone to {read!r}, "
            "or give both columns and literals a zone"
        )


def _check_types(events: DataFrame, used: list[tuple[int, str]], matcher: Matcher) -> None:
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
    matcher.match(nulls.select([i for i, _ in used]).rename_columns([name for _, name in used]))


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


def local_session(cores: int | str = "*", **config: str | int | bool) -> SparkSession:
    """Makes a classic session on this machine that is ready for ``match``.

    Java is there, and workers run this Python.

    Parameters
    ----------
    cores : of the session; ``"*"`` for all
    config : further settings, with ``__`` for the dots of their names: ``spark__ui__enabled=False``

    Raises
    ------
    DependencyError : Java is absent or too old
    """
    check_java()
    # Workers take the first python3 on the PATH otherwise, which is seldom the one that has
    # colmatch.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in config.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()


def check_java() -> None:
    """Checks that the Java that Spark would start is there and new enough.

    Only sessions that start Spark on this machine need it.

    Raises
    ------
    DependencyError : it is not, saying what to install; PySpark itself says no more than
        JAVA_GATEWAY_EXITED
    """
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    install = (
        f"install Java {JAVA_LEAST} or later (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
        "conda: conda install openjdk=17) and set JAVA_HOME"
    )
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        where = f"JAVA_HOME={home}" if home else "the PATH"
        raise DependencyError(f"Spark needs Java, and there is none at {where} ({error}): {install}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    if version and int(version[1]) < JAVA_LEAST:
        raise DependencyError(f"Spark needs Java {JAVA_LEAST}, and {java} is {version[1]}: {install}")
