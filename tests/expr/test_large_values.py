"""Conditions that repeat what is in them are refused before they fill the memory."""

from __future__ import annotations

import pytest

import colmatch as cm

SCHEMA = {"a": "int64", "b": "int64", "flag": "bool"}
CHOICE = "conditions in CASE, if or coalesce within each other make this too large: split the expression"
REPEATED = "BETWEEN and IN within each other repeat this value too often: split the condition"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a BETWEEN 1 AND 2" * 60, REPEATED),
        ("(" * 50 + "flag" + " BETWEEN flag AND flag)" * 50, REPEATED),
        ("(" * 40 + "flag" + " IN (TRUE, flag, a = 1))" * 40, REPEATED),
        ("if(" * 60 + "flag" + ", flag, a = 1)" * 60, CHOICE),
        ("CASE WHEN " * 60 + "flag" + " THEN flag ELSE a = 1 END" * 60, CHOICE),
    ],
)
def test_too_large(text: str, message: str) -> None:
    matcher = cm.Matcher.build({1: text, 2: "a = 1"}, SCHEMA, errors="collect")
    (rejected,) = matcher.rejected
    assert (rejected.id, rejected.message) == (1, message)


@pytest.mark.parametrize(
    "text",
    [
        "(a BETWEEN 1 AND 2) BETWEEN flag AND TRUE",
        "if(if(flag, a = 1, b = 2), flag, a = 3)",
        "(" * 6 + "flag" + " IN (TRUE, flag))" * 6,
        f"(a + b IN ({', '.join(map(str, range(25_000)))}, b)) = flag",
        " OR ".join(["if(flag, a = 1, b = 2)"] * 2000),
    ],
    ids=["BETWEEN", "if", "IN", "a long list", "many"],
)
def test_not_too_large(text: str) -> None:
    assert len(cm.Matcher.build({1: text}, SCHEMA)) == 1
