"""A limit for the expressions that ``errors="collect"`` leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import colmatch as cm

SCHEMA = {"a": "int64"}
RULES = {1: "a = 1", 2: "b = 2", 3: "b = 3", 4: "a = 4"}
BAD = {2: "b = 2", 3: "b = 3"}


def build(rules: Any = RULES, **arguments: Any) -> cm.Matcher:
    return cm.Matcher.build(rules, SCHEMA, errors="collect", **arguments)


@pytest.mark.parametrize("most", [2, 3, 0.5, 1.0, 100])
def test_within_the_limit(most: float) -> None:
    assert build(max_rejected=most).ids.to_pylist() == [1, 4]


@pytest.mark.parametrize("most", [0, 1, 0.0, 0.49])
def test_beyond_the_limit(most: float) -> None:
    said = (
        f"2 of 4 expressions cannot be used, and max_rejected={most}; .* unknown attribute 'b'.*subscription 2, line 1"
    )
    with pytest.raises(cm.SubscriptionError, match=said):
        build(max_rejected=most)


@pytest.mark.parametrize(("share", "bad", "total"), [(0.29, 29, 100), (0.07, 7, 100), (0.1, 3, 30), (0.58, 58, 100)])
def test_a_share_is_met_exactly(share: float, bad: int, total: int) -> None:
    rules = {id: "b = 1" if id < bad else "a = 1" for id in range(total)}
    assert len(build(rules, max_rejected=share)) == total - bad
    with pytest.raises(cm.SubscriptionError, match=f"{bad + 1} of {total}"):
        build(rules | {bad: "b = 1"}, max_rejected=share)


@pytest.mark.parametrize("kind", ["scan", "pbtree"])
def test_nothing_is_left(kind: str, tmp_path: Path) -> None:
    index = cm.index("pbtree", path=str(tmp_path / "pages")) if kind == "pbtree" else kind
    with pytest.raises(cm.SubscriptionError, match="2 of 2 expressions cannot be used, and at least one is needed"):
        build(BAD, index=index)
    assert len(build(BAD, index=index, max_rejected=1.0)) == 0
    assert len(build({}, index=index)) == 0


@pytest.mark.parametrize("kind", ["scan", "pbtree"])
def test_updates_have_a_limit(kind: str, tmp_path: Path) -> None:
    index = cm.index("pbtree", path=str(tmp_path / "pages")) if kind == "pbtree" else kind
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA, index=index)
    for way in ("insert", "replace", "upsert"):
        given = {1: "b = 1"} if way == "replace" else BAD
        with pytest.raises(cm.SubscriptionError, match="max_rejected=0"):
            getattr(matcher, way)(given, errors="collect", max_rejected=0)
    with pytest.raises(cm.SubscriptionError, match="2 of 2"):
        matcher.update(insert=BAD, errors="collect", max_rejected=1)
    assert not matcher.rejected and matcher.expression(1) == "a = 1"
    matcher.insert(BAD, errors="collect")  # an insert alone may be all bad
    assert [entry.id for entry in matcher.rejected] == [2, 3]


def test_a_sync_counts_all_that_the_table_has() -> None:
    matcher = cm.Matcher.build({1: "a = 1", 4: "a = 4"}, SCHEMA)
    with pytest.raises(cm.SubscriptionError, match="2 of 2 expressions"):
        matcher.sync(BAD, errors="collect")
    with pytest.raises(cm.SubscriptionError, match="2 of 4 expressions cannot be used, and max_rejected=0.4"):
        matcher.sync(RULES, errors="collect", max_rejected=0.4)
    assert matcher.ids.to_pylist() == [1, 4]
    matcher.sync(RULES, errors="collect")
    assert len(matcher.rejected) == 2


@pytest.mark.parametrize("most", [-1, 1.5, True, "2", float("nan"), None.__class__])
def test_limits_that_are_none(most: Any) -> None:
    with pytest.raises(cm.OptionError, match="give a number of expressions, or a share"):
        build(max_rejected=most)


def test_a_limit_without_collecting() -> None:
    with pytest.raises(cm.OptionError, match="goes with errors='collect'"):
        cm.Matcher.build(RULES, SCHEMA, max_rejected=1)
