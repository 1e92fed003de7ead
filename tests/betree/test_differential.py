"""Random expressions of be-tree's language against a naive evaluator."""

from __future__ import annotations

from random import Random

import pytest
from contract import share_of_cases
from naive import CONSTANTS, DOMAINS, Expr, holds, line_of, random_event, random_expr, text_of, value

import colmatch as cm

EXPRESSIONS, EVENTS = 40, 50
CASES = 12  # 24,000 pairs


@share_of_cases(CASES)
def test_what_matches(kind: str, seed: int) -> None:
    rng = Random(seed)
    expressions = {id: random_expr(rng) for id in range(EXPRESSIONS)}
    texts = {id: text_of(e, rng) for id, e in expressions.items()}
    events = [random_event(rng) for _ in range(EVENTS)]
    domains = cm.betree.Domains(DOMAINS)
    matcher = cm.Matcher.build(
        texts, domains, kind, cm.Options(batch_rows=16), language="betree", constants=dict.fromkeys(texts, CONSTANTS)
    )
    table = cm.betree.events([line_of(event, rng) for event in events], domains)
    found = matcher.match_lists(table).to_pylist()
    for event, ids in zip(events, found, strict=True):
        expected = [id for id, e in expressions.items() if holds(e, event)]
        wrong = {texts[id]: id in ids for id in set(ids) ^ set(expected)}
        assert sorted(ids) == expected, (event, wrong)
    assert any(found) and any(len(ids) < EXPRESSIONS for ids in found if ids)


def test_random_expressions_are_of_every_kind() -> None:
    """Else the differential test says less than it seems to."""
    seen: set[str] = set()

    def visit(e: Expr) -> None:
        seen.add(e[0])
        for part in e[1:]:
            if isinstance(part, tuple) and part and isinstance(part[0], str) and e[0] in ("and", "or", "not"):
                visit(part)

    rng = Random(0)
    for _ in range(300):
        visit(random_expr(rng))
    assert len(seen) >= 29


@pytest.mark.parametrize("a", [None, 1, 2])
def test_the_meaning_of_not_is_plain(a: int | None) -> None:
    """As BETREE.md tells it: with ``a`` missing, false, false, true, true."""
    event = {"i": a, "must": 0}
    leaf, other = ("=", "i", 1), ("<>", "i", 1)
    assert [value(e, event) for e in (leaf, other, ("not", leaf), ("not", other))] == {
        None: [False, False, True, True],
        1: [True, False, False, True],
        2: [False, True, True, False],
    }[a]
