"""A check that Spark's workers can run colmatch, before the first job, with errors of one line.

``check_workers`` runs one task of one row, once for each session. Its error names the workers'
Python and the problem. Workers may differ, and executors may start later. So ``guard_task`` wraps
each task in a function that checks again, and reports the same in one line.

Spark sends functions of a module by name, and a worker without colmatch cannot resolve the name.
Spark sends a nested function whole. So the nested functions here import all modules that they use,
and take their texts from the enclosing function.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from colmatch.errors import DependencyError, OptionError
from colmatch.spark.worker import VERSION_DIGITS
from colmatch.version import __version__

# A setting that a session can change. Without it, workers get no Arrow data.
_BUFFER = "spark.sql.execution.pandas.udf.buffer.size"
_MEMORY = "spark.executor.pyspark.memory"
_MISMATCH = re.compile(r"PYTHON_VERSION_MISMATCH\] Python in worker has different version: ([\d.]+)")
_IN_PIPELINE = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
_SHOWN = 8  # columns in the name of a task
_CAUSE = re.compile(r"^(?:.*: )?([\w.]*(?:Error|Exception)\w*: .+)$", re.MULTILINE)

_good: set[tuple[str, ...]] = set()  # sessions with workers that can run colmatch: id, Python, settings


def guard_task(
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], name: str = "match"
) -> Callable[..., Any]:
    """Wraps a task, pickled as a reference to colmatch's modules, in a function for ``mapInArrow``.

    name : name of the function, which ``explain()`` of a DataFrame shows

    Raises RuntimeError in the worker: it has another version of colmatch, or none.
    """
    pickled, fault = pickle.dumps(task), _fault(__version__)

    def run(partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle

        message = fault()
        if message:
            raise RuntimeError(f"{message}. Give all workers the same Python environment")
        yield from pickle.loads(pickled)(partition)

    run.__name__ = name
    return run


def task_name(verb: str, index: str, hash: str, columns: Sequence[str]) -> str:
    """Returns the name of a task for ``explain()``: the index, its version and the columns.

    index : the caller's name for the index
    hash : content hash of the version
    """
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return f"{verb} {os.path.basename(index)} version {hash[:VERSION_DIGITS]} on {', '.join(columns[:_SHOWN])}{more}"


@contextmanager
def refuse_pipelines() -> Iterator[None]:
    """Replaces Spark's error in a query function of a declarative pipeline by one that helps.

    Raises OptionError: Spark analyses and runs nothing there.
    """
    try:
        yield
    except PySparkException as error:
        if _IN_PIPELINE not in str(error):
            raise
        raise OptionError(
            "this is a query function of a declarative pipeline, in which Spark runs nothing and names no columns: call hits or "
            "register before it, and use the column or the SQL function in it; match, match_topk and totals do not work there"
        ) from None


def check_workers(spark: SparkSession, classic: bool) -> None:
    """Checks that a worker of a session can run colmatch, once for each session.

    Raises
    ------
    DependencyError : it cannot; the message names its Python and the remedy
    """
    context = spark.sparkContext if classic else None
    executable = context.pythonExec if context else ""
    name = str(context.applicationId) if context else spark.session_id  # type: ignore[attr-defined]
    session = (name, executable, context.pythonVer if context else "", _setting(spark, _BUFFER))
    if session in _good:
        return
    advice, memory = _advice(executable), _setting(spark, _MEMORY)
    if memory:
        advice = f"if workers lack memory, raise {_MEMORY}, which is {memory}, to 1g or more; otherwise, {advice}"
    fault = _fault(__version__)

    def look(partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for _ in partition:
            yield pyarrow.record_batch({"fault": [fault()]})

    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(look, "fault string").collect()
    except Exception as error:
        if _IN_PIPELINE in str(error):
            raise
        cause, known = _cause(str(error))
        raise DependencyError(f"Spark's workers cannot run colmatch: {cause}: {advice}") from (None if known else error)
    if rows[0].fault:
        raise DependencyError(f"Spark's workers cannot run colmatch: {rows[0].fault}: {advice}")
    _good.add(session)


def _setting(spark: SparkSession, name: str) -> str:
    try:
        return spark.conf.get(name) or ""
    except Exception:  # it is not set, or the server is another than Spark
        return ""


def _fault(wanted: str) -> Callable[[], str]:
    """Returns a function that describes why a worker cannot run this version of colmatch.

    The description is "" if the worker can. The first call in a process imports colmatch.
    """

    def fault() -> str:
        import socket
        import sys

        try:
            from colmatch.version import __version__ as found

            lacks = f"has colmatch {found}, and the driver has {wanted}"
            if found == wanted:
                import colmatch.spark.worker  # noqa: F401

                return ""
        except ImportError as error:
            lacks = f"cannot import colmatch ({error})"
        return f"the Python {sys.executable} on {socket.gethostname()} {lacks}"

    return fault


def _advice(executable: str) -> str:
    """Returns advice; ``executable`` is the Python of a classic session, "" with Connect."""
    python = f"a Python {sys.version_info[0]}.{sys.version_info[1]} with colmatch {__version__}"
    if not executable:
        return f"set PYSPARK_PYTHON, where the Connect server is started, to {python}"
    path = os.environ.get("PYSPARK_PYTHON")
    now = f"it is {path}" if path else f"it is not set, so workers run {executable} of the PATH"
    return f"before the session starts, set PYSPARK_PYTHON to {python} ({now})"


def _cause(said: str) -> tuple[str, bool]:
    """Returns the cause of an error of Spark in one line, and True if the error names the cause."""
    said = said.partition("\n\tat ")[0]
    other = _MISMATCH.search(said)
    if other:
        return f"they run Python {other[1]}, and the driver {sys.version_info[0]}.{sys.version_info[1]}", True
    causes = _CAUSE.findall(said)
    return (causes[-1] if causes else said.strip().partition("\n")[0]), bool(causes)
