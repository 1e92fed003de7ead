"""What the tests of every index kind share: the kinds, and what a matcher must find according to
the oracle.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import fields
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from oracle import Expr, Row, matches, score
from sizes import THOROUGH

import colmatch as cm
from colmatch.kinds.plan import settings_of
from colmatch.kinds.registry import KINDS
from colmatch.kinds.settings import Settings

growing_kind = pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.insert is not None])
ALL = [*cm.index_kinds(), "auto"]
every_kind = pytest.mark.parametrize("kind", ALL)
NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
# Hypothesis tries as many examples for all kinds together, however many kinds there are.
share_of_examples = settings(max_examples=max(3, 4 * settings().max_examples // len(ALL)))
Ids = list[int] | list[str]


def share_of_cases(count: int) -> pytest.MarkDecorator:
    """Random cases, by the seed of each, of a test that every kind is to pass.

    Each case is tried with one kind, so that a further kind takes no more time; if all is to be
    thorough, with every kind.
    """
    pairs = [(kind, seed) for seed in range(count) for kind in (ALL if THOROUGH else [ALL[seed * len(ALL) // count]])]
    return pytest.mark.parametrize(("kind", "seed"), pairs)


def some_settings(rng: Random, kind: str) -> Settings:
    """A kind with settings that need not be the defaults: each that the registry knows of."""
    drawn = {}
    for field in fields(settings_of(kind)):
        values = field.metadata["allowed"]
        drawn[field.name] = (
            rng.choice([n for n in (1, 2, 3, 64) if n in values] or [field.default])
            if isinstance(values, range)
            else rng.choice(values)
        )
    return cm.index(kind, **drawn)


def own_inserts(kind: str) -> Settings:
    """A kind whose growing segment has its own inserts and deletes."""
    names = [field.name for field in fields(settings_of(kind))]
    return cm.index(kind, **({"construction": "dynamic"} if "construction" in names else {}))


def built(subscriptions: Any, schema: Any, index: Settings, options: cm.Options) -> cm.Matcher:
    """A matcher; of the kind without settings where it says that those drawn do not fit."""
    with suppress(cm.OptionError):
        return cm.Matcher.build(subscriptions, schema, index=index, options=options)
    return cm.Matcher.build(subscriptions, schema, index=index.kind, options=options)


def pairs(result: pa.Table) -> list[tuple[int, Any]]:
    assert result.schema.names == ["event", "subscription"]
    assert result.schema.types[0] == pa.int64()
    events = result["event"].to_pylist()
    assert events == sorted(events)
    return sorted(zip(*result.to_pydict().values()))  # test_contract_order.py looks at their order


def lists(result: pa.ChunkedArray) -> list[list[Any]]:
    return [sorted(some) for some in result.to_pylist()]


def expected_pairs(expressions: list[Expr], ids: Ids, rows: list[Row]) -> list[tuple[int, Any]]:
    return sorted((i, id) for i, row in enumerate(rows) for e, id in zip(expressions, ids) if matches(e, row))


def expected_best(
    expressions: dict[Any, Expr],
    rows: list[Row],
    k: int,
    how: str,
    given: list[dict[Expr, float]],
    priority: dict[Any, float],
) -> list[tuple[int, Any, float]]:
    """The k best matches of each row, the best first: row, id and score."""
    found = []
    for i, row in enumerate(rows):
        true = [(id, e) for id, e in expressions.items() if matches(e, row)]
        some = [(priority[id] if how == "priority" else score(e, row, given[i], how), id) for id, e in true]
        found += [(i, id, best) for best, id in sorted(some, key=lambda one: (-one[0], one[1]))[:k]]
    return found
