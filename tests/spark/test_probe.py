"""Workers that cannot run colmatch: found before the first job, and told in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import colmatch as cm
from colmatch.spark import hits, match, match_topk, probe, register, totals
from colmatch.store.file import content_hash

RULES = cm.Matcher.build({1: "age = 3"}, {"age": "int64"}, options=cm.Options(threads=1))
OTHER = "import colmatch.version; colmatch.version.__version__ = '0.0.9'"
BUFFER = "spark.sql.execution.pandas.udf.buffer.size"


@pytest.fixture
def events(spark: Any) -> Any:
    return spark.sql("SELECT id AS age FROM range(5)")


@pytest.fixture
def other_python(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes workers of the session run a Python that begins with some code."""

    def make(text: str) -> Path:
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(text)
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
        return python

    return make


def refused(events: Any) -> str:
    with pytest.raises(cm.DependencyError) as caught:
        match(events, RULES)
    said = str(caught.value)
    assert said.startswith("Spark's workers cannot run colmatch: ") and "\n" not in said and "\tat" not in said
    return said


def test_workers_without_colmatch(events: Any, other_python: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    python = other_python("import sys; sys.modules['colmatch'] = None")
    monkeypatch.delenv("PYSPARK_PYTHON")
    said = refused(events)
    assert f"the Python {sys.executable} on " in said and "cannot import colmatch" in said
    assert "before the session starts, set PYSPARK_PYTHON to a Python 3." in said
    assert f"with colmatch {cm.__version__} (it is not set, so workers run {python} of the PATH)" in said


def test_workers_with_another_colmatch(events: Any, other_python: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other_python(OTHER)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    said = refused(events)
    assert f"has colmatch 0.0.9, and the driver has {cm.__version__}: " in said and "(it is /opt/python)" in said


def test_workers_of_another_python(spark: Any, events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.9")
    assert f"they run Python {sys.version_info[0]}.{sys.version_info[1]}, and the driver 3." in refused(events)


def test_a_python_that_is_not_there(spark: Any, events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/such/python")
    assert 'java.io.IOException: Cannot run program "/no/such/python"' in refused(events)


def test_settings_with_which_workers_get_no_data(events: Any, conf: Any) -> None:
    assert match(events, RULES).count() == 1
    conf(BUFFER, "1")
    assert BUFFER in refused(events)


def test_workers_without_memory(events: Any, other_python: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of 300 MB fails while it imports, in ways that do not speak of memory."""
    other_python("import sys; sys.modules['colmatch'] = None")
    assert probe._MEMORY not in refused(events)
    setting = probe._setting
    memory = {probe._MEMORY: "300m"}
    monkeypatch.setattr(probe, "_setting", lambda spark, name: memory.get(name) or setting(spark, name))
    assert f"if workers lack memory, raise {probe._MEMORY}, which is 300m, to 1g or more; otherwise, before" in refused(
        events
    )


def test_a_session_is_looked_at_once(spark: Any, events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_good", set())
    jobs, of = [], type(spark).range
    monkeypatch.setattr(type(spark), "range", lambda *arguments: (jobs.append(1), of(*arguments))[1])
    for _ in range(3):
        match(events, RULES)
    match(spark.newSession().sql("SELECT 1L AS age"), RULES)
    assert jobs == [1]


def test_workers_that_come_later(events: Any, other_python: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They look for themselves, and say the same in the last line of what Spark says."""
    other_python(OTHER)
    monkeypatch.setattr("colmatch.spark.frames.check_workers", lambda *_: None)
    planned = match(events, RULES)
    with pytest.raises(Exception, match="RuntimeError: the Python .* has colmatch 0.0.9, and the driver has .*same"):
        planned.collect()


def test_a_query_function_of_a_pipeline(
    spark: Any, events: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark's error there is no fault of the workers: ``test_pipelines.py`` runs one."""
    RULES.save(tmp_path / "alerts.cm")

    def refuse(*_: Any) -> Any:
        raise AnalysisException("[ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION] Operations that trigger ...")

    monkeypatch.setattr(probe, "_good", set())
    monkeypatch.setattr(type(spark), "range", refuse)
    columns = (
        lambda: hits(tmp_path / "alerts.cm"),
        lambda: register(spark, "alerts", tmp_path / "alerts.cm"),
    )  # fmt: skip
    for call in (
        *(columns if hasattr(F, "arrow_udtf") else ()),
        lambda: match(events, tmp_path / "alerts.cm"),
        lambda: totals(events, tmp_path / "alerts.cm"),
        lambda: match_topk(events, tmp_path / "alerts.cm", 1),
    ):
        with pytest.raises(cm.OptionError, match="declarative pipeline.*: call hits or register before it"):
            call()


def test_other_errors_of_spark_stay(spark: Any, events: Any) -> None:
    with pytest.raises(AnalysisException, match="NO_SUCH"), probe.refuse_pipelines():
        raise AnalysisException("NO_SUCH")


def test_explain_shows_index_version_and_columns(spark: Any, events: Any, tmp_path: Path, capsys: Any) -> None:
    RULES.save(tmp_path / "alerts.cm")
    version = content_hash(tmp_path / "alerts.cm")[:12]
    match(events, tmp_path / "alerts.cm").explain()
    assert f"match alerts.cm version {version} on age" in capsys.readouterr().out
    if hasattr(F, "arrow_udtf"):
        events.select(hits(tmp_path / "alerts.cm")(F.struct("age"))).explain()
        assert f"hits of alerts.cm version {version} on age" in capsys.readouterr().out
    many = probe.task_name("match", "/data/a.cm", "0" * 64, [f"c{i}" for i in range(100)])
    assert many == "match a.cm version 000000000000 on c0, c1, c2, c3, c4, c5, c6, c7 and 92 more"
