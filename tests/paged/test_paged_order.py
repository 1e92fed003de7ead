"""The subscriptions of an event in a file of pages come in the order of ``Matcher.ids``."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm

EVENTS = pa.table({"a": [1, 2, None, 9, 5, 3, 7], "b": [2, 1, 2, None, 2, 3, 3]})


def checked(of: cm.Matcher) -> list[list[Any]]:
    place = {id: i for i, id in enumerate(of.ids.to_pylist())}
    found: list[list[Any]] = of.match_lists(EVENTS).to_pylist()
    for ids in found:
        places = [place[id] for id in ids]
        assert places == sorted(set(places))
    assert max(map(len, found)) > 20
    return found


@pytest.mark.parametrize("type", [int, str])
def test_ids_of_an_event_are_in_the_order_of_all_ids(type: Any, tmp_path: Path) -> None:
    rng = Random(str(type))
    ids = [type(id) for id in rng.sample(range(400), 400)]
    texts = {id: rng.choice(["a >= 3 OR b = 2", "a < 6", "b IN (1, 3) OR a IS NULL"]) for id in ids}
    of = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index=cm.index("pbtree", path=str(tmp_path / "pages")))
    assert of.ids.to_pylist() == ids
    in_memory = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index="scan")
    assert checked(of) == in_memory.match_lists(EVENTS).to_pylist()
    of.insert({type(1000): "a < 8", type(500): "b = 2 OR a = 5 OR a = 9"})
    checked(of)
    of.delete(ids[::3])
    of.upsert({ids[1]: "a > 0 OR b > 0"})
    of.insert({type(2000 + i): "a < 8 OR b = 2 OR a = 9" for i in range(100)})
    before = checked(of)
    assert [len(ids) for ids in before] == of.count(EVENTS).tolist()
    of.compact()
    assert list(map(set, checked(of))) == list(map(set, before))
