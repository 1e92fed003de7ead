"""What every index kind must do, in all its ways, with the clauses that people write."""

from __future__ import annotations

from pathlib import Path

import pytest
from contract import ALL, every_kind
from jobs import EVENTS, SCHEMA, TAKEN

import colmatch as cm

RULES = {i: taken.clause for i, taken in enumerate(TAKEN)}
INSERTED = 7  # each seventh clause is inserted later
ROWS = EVENTS.to_pylist(maps_as_pydicts="strict")


def expected(which: list[int]) -> list[list[int]]:
    return [[i for i in which if TAKEN[i].rows[row] == "T"] for row in range(len(ROWS))]


def found(matcher: cm.Matcher) -> list[list[int]]:
    return [sorted(ids) for ids in matcher.match_lists(EVENTS).to_pylist()]


@every_kind
def test_clauses_match_in_every_way(kind: str, tmp_path: Path) -> None:
    """Built, inserted, replaced, deleted, saved; a batch and single events."""
    later = [i for i in RULES if i % INSERTED == ALL.index(kind) % INSERTED]
    matcher = cm.Matcher.build({i: clause for i, clause in RULES.items() if i not in later}, SCHEMA, index=kind)
    matcher.insert({i: RULES[i] for i in later})
    assert found(matcher) == expected([*RULES])
    assert [sorted(matcher.match_one(row)) for row in ROWS] == expected([*RULES])
    assert matcher.count(EVENTS).tolist() == [len(ids) for ids in expected([*RULES])]
    # Exchange the clauses of some ids, and delete others
    some = [i for i in RULES if i % 11 == 0]
    matcher.upsert(dict(zip(some, [RULES[i] for i in reversed(some)], strict=True)))
    matcher.upsert({i: RULES[i] for i in some})
    matcher.delete([i for i in RULES if i % 5 == 0])
    left = [i for i in RULES if i % 5]
    assert found(matcher) == expected(left)
    matcher.save(tmp_path / "rules.cm")
    opened = cm.Matcher.open(tmp_path / "rules.cm")
    assert found(opened) == expected(left)
    opened.insert({0: RULES[0]})
    assert found(opened) == expected([0, *left])


@pytest.mark.parametrize("count", [1, 40])
def test_one_clause_means_the_same_as_among_many(count: int) -> None:
    """Kernels read many texts; few are read one by one."""
    for begin in range(0, len(TAKEN), 97):
        some = [*RULES][begin : begin + count]
        assert found(cm.Matcher.build({i: RULES[i] for i in some}, SCHEMA)) == expected(some)


def test_a_file_of_pages(tmp_path: Path) -> None:
    path, some = tmp_path / "rules.pages", [i for i in RULES if i % 3]
    cm.Matcher.build({i: RULES[i] for i in some}, SCHEMA, index=cm.index("pbtree", path=str(path)))
    paged = cm.Matcher.open(path)
    assert found(paged) == expected(some)
    paged.insert({0: RULES[0], 3: RULES[3]})
    paged.delete([1, 4])
    assert found(paged) == found(cm.Matcher.open(path)) == expected(sorted({0, 3, *some} - {1, 4}))
