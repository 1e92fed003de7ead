"""The cases that the be-tree library itself was run on, each with one kind of index.

They are read where ``COLMATCH_BETREE_CASES`` says, or beside the clone; where there are none, this
is skipped.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from contract import share_of_cases

import colmatch as cm

BESIDE = Path(__file__).parents[3] / "shared" / "conformance" / "betree.jsonl.gz"
FILE = Path(os.environ.get("COLMATCH_BETREE_CASES", BESIDE))
CASES = 120

pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"the library's cases are not there: {FILE}")

# Texts of which the library's behaviour is a defect: whether they are valid here.
OTHERWISE = {
    "not in_stock": True,  # it reads "not in" and a name "_stock"
    "i is  null": True,  # it wants exactly one blank
    "i = 1 | i = 2": False,  # it stops at what it does not know, silently
    "upper = 1": True,  # it never finds a domain that is declared in upper case
    "Upper = 1": True,
    # its README refuses a value out of bounds, but the library does not; all domains begin at 0
    **dict.fromkeys(["i = -1", "-1 = i", "i < 0", "i > 20"], False),
    "not (a5 > 6 or a5 is null) and a0 > 20 and (a4 >= 17 and a4 <= 17)": False,
}


@cache
def cases() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_there_are_cases() -> None:
    assert len(cases()) == CASES
    assert sum(len(case["exprs"]) for case in cases()) > 1_000
    texts = {one["text"] for case in cases() for one in case["exprs"]}
    assert not OTHERWISE.keys() - texts


@share_of_cases(CASES)
def test_case(kind: str, seed: int) -> None:
    case = cases()[seed]
    domains = cm.betree.Domains(case["domains"])
    valid = {one["id"]: OTHERWISE.get(one["text"], one["valid"]) for one in case["exprs"]}
    same = {one["id"] for one in case["exprs"] if one["text"] not in OTHERWISE}
    matcher = cm.Matcher.build(
        {one["id"]: one["text"] for one in case["exprs"]},
        domains,
        kind,
        errors="collect",
        max_rejected=1.0,
        language="betree",
        constants={one["id"]: one["constants"] for one in case["exprs"] if "constants" in one},
    )
    rejected = {one.id: one for one in matcher.rejected}
    assert {id: id not in rejected for id in valid} == valid
    assert all(one.position is not None for one in rejected.values())
    events = [event for event in case["events"] if event["event"] is not None]  # of others, the text is lost
    table = cm.betree.events([json.dumps(event["event"]) for event in events], domains)
    found, invalid = matcher.match(table, invalid="collect")
    by_event: list[list[Any]] = [[] for _ in events]
    for pair in found.to_pylist():
        by_event[pair["event"]].append(pair["subscription"])
    for event, ids in zip(events, by_event, strict=True):
        wanted = set(event.get("expected_plain", event["expected"])) & same
        assert {id for id in ids if id in event.get("ids_filter", ids)} & same == wanted, event
        assert not case["name"].startswith("probe/search/no") or not ids
    statuses = ["invalid_event" if number in invalid["event"].to_pylist() else "ok" for number in range(len(events))]
    assert statuses == [event["status"] for event in events]
