"""Every way that Spark has to a matcher gives the rows of ``df.where``, or fails as it does.

COLMATCH_WAYS=200 asks for the full count of expressions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from connecting import run_connected
from pyspark.sql import SparkSession
from spark_ways import differences

COUNT = int(os.environ.get("COLMATCH_WAYS", "40"))
SEED = int(os.environ.get("COLMATCH_WAYS_SEED", "2026"))
SETTINGS = [("UTC", True), ("America/New_York", False), ("UTC", False), ("America/New_York", True)]


@pytest.mark.parametrize(("zone", "ansi"), SETTINGS if COUNT >= 200 else SETTINGS[:2])
def test_classic(spark: SparkSession, conf: Callable[[str, str], None], tmp_path: Path, zone: str, ansi: bool) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    conf("spark.sql.legacy.sizeOfNull", "false")
    wrong = differences(spark, tmp_path / "ways", zone, ansi, COUNT, SEED)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:10])


CONNECT = """
import tempfile
from pathlib import Path
sys.path[:0] = arguments["folders"]
from spark_ways import differences
wrong = []
for zone, ansi in arguments["settings"]:
    with tempfile.TemporaryDirectory() as folder:
        wrong += differences(spark, Path(folder, "ways"), zone, ansi, *arguments["how"])
print(json.dumps(wrong))
"""


def test_connect(spark: SparkSession) -> None:  # the session sees to Java
    settings = SETTINGS if COUNT >= 200 else SETTINGS[-1:]
    arguments = {"folders": [name for name in sys.path if "tests" in name], "settings": settings, "how": [COUNT, SEED]}
    wrong = run_connected(CONNECT, arguments, seconds=600)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:10])
