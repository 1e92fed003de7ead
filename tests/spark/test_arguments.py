"""Arguments of ``match`` and ``match_topk``, which are checked before a session is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hostile import HOSTILE, OwnError
from odd import ODD

import colmatch as cm

frames = pytest.importorskip("colmatch.spark.frames")
MATCHER = cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, "scan")


@pytest.mark.parametrize("name", ["df", "keep", "mode", "shared"])
def test_only_errors_of_ours_come_out(name: str) -> None:
    for make in [*ODD, *HOSTILE]:
        given: dict[str, Any] = {"df": None, "matcher": MATCHER, name: make()}
        try:
            frames.match(**given)
        except (cm.ColmatchError, OwnError):
            continue
        pytest.fail(f"{name}={make} was taken, and there is no data frame")


@pytest.mark.parametrize("shared", ["no", 1, 0, "true"])
def test_shared_is_true_or_false(shared: Any) -> None:
    with pytest.raises(cm.OptionError, match=f"^shared={shared!r}: True or False is needed"):
        frames.match(None, MATCHER, shared=shared)
