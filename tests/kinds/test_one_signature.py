"""Arrays that kernels are handed are read-only wherever they came from, or they would be compiled
once more.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.arrays.frozen import freeze
from colmatch.kernels import reasons
from colmatch.kinds.registry import KINDS

EXPRESSIONS = pa.table(
    {
        "id": [1, 2],
        "expression": ["(a = 1 OR b = 2) AND (a = 3 OR b > 4)", "a < 5"],
        "weights": pa.array([[("a", 2.0)], []], pa.map_(pa.string(), pa.float64())),
        "priority": [2.0, 1.0],
    }
)


def built(kind: str) -> cm.Matcher:
    return cm.Matcher.build(EXPRESSIONS, {"a": "int64", "b": "int64"}, index=cm.index(kind, dnf_budget=1))


@pytest.mark.parametrize("kind", cm.index_kinds())
@pytest.mark.parametrize("lacking", ["", "weight", "priority", "jump_first jump tree_first tree"])
def test_predicates_that_a_build_has_reordered(kind: str, lacking: str) -> None:
    """Also where some columns are not there: these are read-only from the start."""
    matcher = built(kind)
    given = freeze(inside.predicates(matcher))
    given = given._replace(**{name: getattr(given, name)[:0] for name in lacking.split()})
    _, found = KINDS[kind].build(given, freeze(inside.codes(matcher)), None, KINDS[kind].settings())
    assert not [name for name, array in found._asdict().items() if array.flags.writeable]


def test_reasons_by_attribute_and_by_predicate() -> None:
    matcher, name = built("scan"), []

    def spied(*arguments: Any) -> int:
        name.append(arguments[3])
        return number_slots(*arguments)

    number_slots = reasons.number_slots
    with patch.object(reasons, "number_slots", spied):
        for by in ("attribute", "predicate"):
            matcher.reasons(pa.table({"a": [7], "b": [7]}), by=by)
    assert [array.flags.writeable for array in name] == [False, False]
