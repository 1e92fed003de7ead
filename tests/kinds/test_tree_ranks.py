"""Ranks of attributes, gain less loss, and bottom-up growth of BE*-Tree, as counters show them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = pa.schema([(name, pa.int64()) for name in "abx"])
ENDS = ["a = 0", "a = 999", "b = 0", "b = 999"]  # so that both domains are as wide


def built(texts: list[str], kind: str, **settings: object) -> cm.Matcher:
    options = cm.Options(missing_columns="null")
    return cm.Matcher.build(dict(enumerate(texts)), SCHEMA, index=cm.index(kind, **settings), options=options)


def looked_at(matcher: cm.Matcher, **event: int) -> int:
    return matcher.counters(pa.table({name: [value] for name, value in event.items()}))["conjunctions"]


@pytest.mark.parametrize("kind", ["betree", "bestar"])
@pytest.mark.parametrize("construction", ["bulk", "dynamic"])
def test_what_most_events_meet_ranks_below_what_few_do(kind: str, construction: str) -> None:
    """A hundred subscriptions could go by a range of nine tenths, and fifty by a single value.

    A leaf has room for one of the two. Going by the range spares hardly anything. By gain alone the
    fifty would be left, and an event would look at these and, nine times of ten, at the hundred.
    """
    texts = [*ENDS]
    for i in range(50):
        texts += [f"a <= {899 - i}", f"a <= {900 + i}", f"b = {i * 10 + 5}"]
    matcher = built(texts, kind, capacity=110, construction=construction)
    assert looked_at(matcher, a=500) == 102


def test_what_is_far_from_a_bucket_is_divided_too() -> None:
    """A bucket put above another has a second half, for conjunctions far from the first."""
    texts = [f"a = {i}" for i in [*range(20), *range(100_000, 100_300)]]
    matcher = built(texts, "bestar", capacity=5, construction="dynamic")
    assert max(looked_at(matcher, a=value) for value in (3, 100_000, 100_150, 100_299)) <= 10
    below = built(
        [f"a = {i}" for i in [*range(100_000, 100_020), *range(300)]], "bestar", capacity=5, construction="dynamic"
    )
    assert max(looked_at(below, a=value) for value in (3, 150, 299, 100_010)) <= 10
