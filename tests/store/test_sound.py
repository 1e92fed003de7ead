"""Each check of what a file from elsewhere says, by itself: one number is changed, and told of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.arrays.frozen import freeze
from colmatch.kernels.layout import ACCEPT, FLAG_MULTI, FLAG_RUN, Codes, Predicates
from colmatch.kinds.sound import UnsoundError, check_codes, check_predicates
from colmatch.store.sound import check_segment, check_tags, check_version
from colmatch.subscriptions.tags import Tags
from colmatch.updates import labels
from colmatch.updates.records import attribute_entry, attribute_of

FORM = "(a = 1 OR b = 2) AND (a > 5 OR b > 6) AND (a < 9 OR b < 9)"
TEXTS = {1: "a IN (1, 3, 5) AND b > 2", 2: "a > 4 AND b IN (1, 7)", 3: FORM}
Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def parts() -> tuple[Predicates, Codes]:
    """Two conjunctions with runs, and a program."""
    index = cm.index("scan", dnf_budget=1)
    weights = pa.array([[("a", 0.5)]] * 3, pa.map_(pa.string(), pa.float64()))
    rows = pa.table({"id": list(TEXTS), "expression": list(TEXTS.values()), "weights": weights})
    matcher = cm.Matcher.build(rows, {"a": "int64", "b": "int64"}, index=index)
    segment = inside.segment(matcher)
    assert len(segment.predicates.run_lo) == 5 and (segment.predicates.jump_first >= 0).sum() == 1
    check_predicates(segment.predicates, segment.codes, 3)
    return segment.predicates, segment.codes


def put(name: str, place: Any, value: Any) -> Change:
    """Changes one number of an array, by its place or by what it makes of the array."""

    def change(of: Any) -> Any:
        array = getattr(of, name).copy()
        array[place(of) if callable(place) else place] = value(of) if callable(value) else value
        return freeze(of._replace(**{name: array}))

    return change


def of_runs(preds: Predicates) -> Any:
    """The predicates that are runs."""
    return np.flatnonzero(preds.pred[:, 0] & FLAG_RUN)


def of_program(preds: Predicates) -> int:
    return int(np.flatnonzero(preds.jump_first >= 0)[0])


def shared_run(preds: Predicates) -> Predicates:
    first, second = of_runs(preds)
    pred = preds.pred.copy()
    pred[second, 1:] = pred[first, 1:]
    return freeze(preds._replace(pred=pred))


PREDICATES: dict[str, tuple[Change, str]] = {
    "an owner too many": (put("owner", -1, 3), "owners"),
    "an attribute too many": (put("pred", (0, 0), 2), "attributes"),
    "several values where there is one": (put("pred", (0, 0), lambda of: of.pred[0, 0] | FLAG_MULTI), "attributes"),
    "code 0": (put("run_lo", 0, 0), "codes"),
    "an interval that ends before it begins": (put("run_hi", 0, 0), "codes"),
    "a code too high": (put("run_hi", -1, 1000), "codes"),
    "a range that begins too high": (put("pred", (1, 1), 1000), "codes"),
    "intervals that do not ascend": (put("run_lo", 1, lambda of: of.run_lo[0]), "codes"),
    "a run of nothing": (put("pred", lambda of: (of_runs(of)[0], 2), lambda of: of.pred[of_runs(of)[0], 1]), "runs"),
    "a run behind the last": (put("pred", lambda of: (of_runs(of)[1], 2), 6), "runs"),
    "a run that two share": (shared_run, "runs"),
    "a jump back": (put("jump", (1, 0), 1), "programs"),
    "a jump behind the last": (put("jump", (0, 0), 6), "programs"),
    "a program behind the last": (put("jump_first", of_program, 1), "programs"),
    "a leaf too many": (put("tree", 0, 6), "trees"),
    "an operator of nothing": (put("tree", 0, -1), "trees"),
    "an operator of more than there are": (put("tree", -1, -9), "trees"),
    "two trees": (put("tree", -1, 0), "trees"),
}


@pytest.mark.parametrize("how", PREDICATES)
def test_predicates(parts: tuple[Predicates, Codes], how: str) -> None:
    preds, codes = parts
    assert ACCEPT in preds.jump
    change, said = PREDICATES[how]
    with pytest.raises(UnsoundError, match=f"^{said} are out of their bounds"):
        check_predicates(change(preds), codes, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_are_numbers(parts: tuple[Predicates, Codes], value: float) -> None:
    preds, codes = parts
    with pytest.raises(UnsoundError, match="a weight is no number"):
        check_predicates(put("weight", 0, value)(preds), codes, 3)


@pytest.mark.parametrize("value", [7, None])
def test_labels_have_a_closing_one(parts: tuple[Predicates, Codes], value: int | None) -> None:
    codes = labels.with_labels(*parts)[1]
    check_codes(codes)
    other = codes._replace(label=codes.label[:-1]) if value is None else put("label", -1, value)(codes)
    with pytest.raises(UnsoundError, match="label"):
        check_codes(other)


def test_numbers_of_tags_ascend() -> None:
    names = {"x": 0, "y": 1}
    number, tag = np.array([0, 2, 2]), np.array([0, 0, 1], np.int32)
    check_tags(Tags(number, tag, names), 3)
    for other, count, said in (
        (Tags(number[::-1].copy(), tag, names), 3, "do not ascend"),
        (Tags(number, tag, names), 2, r"tags\.number has a number"),
        (Tags(number, tag * 2, names), 3, r"tags\.tag has a number"),
    ):
        with pytest.raises(UnsoundError, match=said):
            check_tags(other, count)


COUNTS: dict[str, tuple[dict[str, Any], str]] = {
    "deleted": ({"gone": 1}, "counts of deleted"),
    "alive": ({"alive": (3,)}, "counts of deleted"),
    "stale": ({"stale": (3,)}, "more deleted subscriptions are found"),
    "bases": ({"bases": (1,)}, "segments do not follow"),
    "updates": ({"updates": -1}, "no numbers"),
    "growing": ({"growing": 1}, "of other types"),
}


@pytest.mark.parametrize("what", COUNTS)
def test_counts_are_those_of_the_bits(what: str) -> None:
    matcher = cm.Matcher.build(TEXTS, {"a": "int64", "b": "int64"}, index="bitslice")
    matcher.delete([1])
    matcher.delete([2])
    version, schema = inside.version(matcher), matcher.schema
    check_version(version, schema)
    changes, said = COUNTS[what]
    with pytest.raises(UnsoundError, match=said):
        check_version(replace(version, **changes), schema)


def test_a_segment_has_no_more_attributes_than_there_are() -> None:
    matcher = cm.Matcher.build(TEXTS, {"a": "int64", "b": "int64"}, index="scan")
    version, few = inside.version(matcher), cm.Matcher.build({1: "a = 1"}, {"a": "int64"})
    check_segment(version.segments[0], version.attributes)
    with pytest.raises(UnsoundError, match="more attributes than there are"):
        check_segment(version.segments[0], inside.version(few).attributes)


@pytest.mark.parametrize("zone", [{}, [], False, 0])
def test_a_zone_is_a_text_or_nothing(zone: Any) -> None:
    """An attribute is a key of tables, which takes no list."""
    matcher = cm.Matcher.build({1: "a = 1"}, {"a": "int64"})
    entry = attribute_entry(inside.attributes(matcher)[0])
    assert attribute_of(entry).type.zone is None
    entry[2][3] = zone
    with pytest.raises(ValueError, match="of another type than it should"):
        attribute_of(entry)
