"""Sessions of Spark Connect, each in a process of its own: the workers and the server of one test
do not meet those of the next.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import colmatch

SESSION = """
import json, sys
from pyspark.sql import SparkSession
arguments = json.loads(sys.argv[1])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
"""
# A server that needs no Java, and takes some versions of PySpark only.
SAIL = """
import json, sys
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession
arguments = json.loads(sys.argv[1])
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
try:
    spark.version
except Exception as error:
    if "unsupported PySpark version" not in str(error):
        raise
    print(json.dumps(f"skip: {error}"))
    sys.exit()
"""


def run_connected(
    code: str, arguments: Any, python: str | Path = sys.executable, seconds: int = 300, session: str = SESSION
) -> Any:
    """Runs code with a session, ``spark``, and ``arguments``; returns what it prints last, as JSON.

    python : of the workers
    session : code that makes the session. What it prints behind ``skip:`` skips the test
    """
    reason = "pyspark[connect] is not installed"
    pytest.importorskip("pyspark.sql.connect.session", reason=reason, exc_type=ImportError)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    # The workers of a Connect session run in a folder of their own, where a colmatch that is not
    # installed is not found.
    path = str(Path(colmatch.__file__).parents[1])
    # With SPARK_TESTING the server takes a port that is free: tests may run side by side.
    given = {"SPARK_TESTING": "1", "PYSPARK_PYTHON": str(python), "TZ": "UTC", "PYTHONPATH": path}
    ran = subprocess.run(
        [sys.executable, "-c", f"{session}{code}\nspark.stop()", json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**kept, **given},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    said = json.loads(ran.stdout.splitlines()[-1])
    if str(said).startswith("skip:"):
        pytest.skip(said)
    return said
