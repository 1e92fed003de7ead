"""Workers that cannot run colmatch, found before the first job and told in one line.

``check_workers`` runs one task of one row in a session, and then never again for that session: it
says which Python the workers run, and what that lacks. Workers may differ, and executors come
later, so ``guarded`` wraps each task in a function that looks again, and says the same in one line.

Spark sends functions of a module by their name, and a worker without colmatch cannot look that up.
It sends a function within a function whole; so those here import all that they use, and take their
words from outside.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from colmatch.errors import DependencyError
from colmatch.version import __version__

# A setting that a session can change, and without which workers get no Arrow data.
_BUFFER = "spark.sql.execution.pandas.udf.buffer.size"
_MISMATCH = re.compile(r"PYTHON_VERSION_MISMATCH\] Python in worker has different version: ([\d.]+)")
_CAUSE = re.compile(r"^(?:.*: )?([\w.]*(?:Error|Exception)\w*: .+)$", re.MULTILINE)

_good: set[tuple[str, ...]] = set()  # sessions whose workers have answered, and with which Python


def guarded(
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], name: str = "match"
) -> Callable[..., Any]:
    """Returns what ``mapInArrow`` calls to run a task that is a reference to colmatch's modules.

    name : of the function, which ``explain()`` of a DataFrame shows

    Raises RuntimeError in the worker: its colmatch is another, or none.
    """
    pickled, fault = pickle.dumps(task), _fault(__version__)

    def run(partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle

        found = fault()
        if found:
            raise RuntimeError(f"{found}. Give all workers the same Python environment")
        yield from pickle.loads(pickled)(partition)

    run.__name__ = name
    return run


def check_workers(spark: SparkSession, classic: bool) -> None:
    """Checks that a worker of a session can run colmatch, once for each session.

    Raises
    ------
    DependencyError : it cannot; says which Python it is, and what to do
    """
    context = spark.sparkContext if classic else None
    executable = context.pythonExec if context else ""
    name = str(context.applicationId) if context else spark.session_id  # type: ignore[attr-defined]
    session = (name, executable, context.pythonVer if context else "", _buffer(spark))
    if session in _good:
        return
    advice = _advice(executable)
    fault = _fault(__version__)

    def look(partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for _ in partition:
            yield pyarrow.record_batch({"fault": [fault()]})

    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(look, "fault string").collect()
    except Exception as error:
        said, known = _cause(str(error))
        raise DependencyError(f"Spark's workers cannot run colmatch: {said}: {advice}") from (None if known else error)
    if rows[0].fault:
        raise DependencyError(f"Spark's workers cannot run colmatch: {rows[0].fault}: {advice}")
    _good.add(session)


def _buffer(spark: SparkSession) -> str:
    try:
        return spark.conf.get(_BUFFER) or ""
    except Exception:  # a server that is no Spark has other settings
        return ""


def _fault(wanted: str) -> Callable[[], str]:
    """Returns a function that says what keeps a worker from running this colmatch.

    It says nothing ("") where all is well. The first call in a process imports colmatch.
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
    """Says what to do; ``executable`` is what a classic session runs, "" for one of Connect."""
    python = f"a Python {sys.version_info[0]}.{sys.version_info[1]} with colmatch {__version__}"
    if not executable:
        return f"set PYSPARK_PYTHON, where the Connect server is started, to {python}"
    given = os.environ.get("PYSPARK_PYTHON")
    now = f"it is {given}" if given else f"it is not set, so workers run {executable} of the PATH"
    return f"before the session starts, set PYSPARK_PYTHON to {python} ({now})"


def _cause(said: str) -> tuple[str, bool]:
    """Returns the cause that an error of Spark names, as one line, and whether it names one."""
    said = said.partition("\n\tat ")[0]
    other = _MISMATCH.search(said)
    if other:
        return f"they run Python {other[1]}, and the driver {sys.version_info[0]}.{sys.version_info[1]}", True
    causes = _CAUSE.findall(said)
    return (causes[-1] if causes else said.strip().partition("\n")[0]), bool(causes)
