"""A warning where texts that look like versions are compared by their order."""

from __future__ import annotations

import pytest

import colmatch as cm
from colmatch.lowering import versions

SCHEMA = {"v": "string", "w": "string", "n": "decimal(38, 2)"}


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    versions._warned.clear()


@pytest.mark.parametrize(
    "text",
    [
        "v >= '10.4.0'",
        "v BETWEEN '1.2.3' AND 'z'",
        "NOT v < 'v2.0.1-rc.1'",
        "v > '1.2.3.RELEASE'",
        "v BETWEEN '1.0.0' AND '2.0.0a1'",
    ],
)
@pytest.mark.parametrize("count", [1, 40, 1200])
def test_versions_are_told_of_once(text: str, count: int, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        cm.Matcher.build(dict.fromkeys(range(count), text), SCHEMA)
    (record,) = caplog.records
    assert record.levelname == "WARNING" and record.getMessage().startswith("v is compared with '")


@pytest.mark.parametrize(
    "text",
    [
        "v = '10.4.0'",
        "v > '10.4'",
        "v IN ('1.2.3')",
        "v LIKE '1.2.3%'",
        "v > 'a1.2.3'",
        "v > '10.0.0.1'",
        "v > '2026.01.05'",
        "v > '01.02.2026'",
        "n > 1.25",
        "v >= '2024-01-02'",
    ],
)
@pytest.mark.parametrize("count", [1, 40])
def test_other_comparisons_are_not(text: str, count: int, caplog: pytest.LogCaptureFixture) -> None:
    matcher = cm.Matcher.build(dict.fromkeys(range(count), text), SCHEMA)
    matcher.insert({-1: text})
    assert not caplog.records


def test_one_insert_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    matcher = cm.Matcher.build({}, SCHEMA)
    matcher.insert({1: "w < '1.10.0'"})
    assert "w is compared with '1.10.0' by the order of texts" in caplog.text


@pytest.mark.parametrize("count", [1, 40])
def test_the_column_is_that_of_the_text(count: int, caplog: pytest.LogCaptureFixture) -> None:
    cm.Matcher.build({**dict.fromkeys(range(count), "v > 'b'"), count: "w > '1.2.3'"}, SCHEMA)
    assert caplog.records[0].getMessage().startswith("w is compared with '1.2.3'")


@pytest.mark.parametrize("count", [1, 40])
def test_each_column_is_told_of_once(count: int, caplog: pytest.LogCaptureFixture) -> None:
    texts = {i: f"{'vw'[i % 2]} > '1.2.{i}'" for i in range(2 * count)}
    matcher = cm.Matcher.build(texts, SCHEMA)
    for i in range(5):
        matcher.insert({1000 + i: f"w > '3.2.{i}'"})
    assert sorted(record.getMessage()[0] for record in caplog.records) == ["v", "w"]
