"""Elements by their places, choices and rounding, over events in all layouts."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import colmatch as cm

SCHEMA = pa.schema(
    {"tags": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int64()), "x": pa.int64(), "y": pa.int64()}
)
RULES = {
    1: "tags[0] = 'a'",
    2: "element_at(tags, -1) = 'b'",
    3: "tags[1] IS NULL",
    4: "length(tags[0]) = 1 AND tags[0] <> tags[1]",
    5: "m['k'] + x > 5",
    6: "size(tags) * 2 = 4",
    7: "CASE WHEN size(m) = 1 THEN 'one' WHEN size(m) IS NULL THEN 'none' END = 'one'",
}
TAGS = [["a", "b"], None, [], ["b"], ["a", None], ["x", "y", "b"]]
MAPS = [[("k", 5)], None, [], [("j", 1), ("k", 9)], [("k", None)], [("k", 1)]]
EVENTS = pa.table(
    {
        "tags": pa.array(TAGS, SCHEMA.field("tags").type),
        "m": pa.array(MAPS, SCHEMA.field("m").type),
        "x": [1, 1, None, -9, 0, 9],
        "y": pa.nulls(6, pa.int64()),
    }
)
EXPECTED = [[1, 2, 4, 5, 6, 7], [3], [3], [2, 3], [1, 3, 6, 7], [2, 4, 5, 7]]


def test_places_and_entries() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    assert matcher.match_lists(EVENTS).to_pylist() == EXPECTED
    assert sorted(matcher.columns) == ["m", "tags", "x"]


@pytest.mark.parametrize("begin", [0, 1, 3, 5])
def test_slices(begin: int) -> None:
    assert cm.Matcher.build(RULES, SCHEMA).match_lists(EVENTS.slice(begin)).to_pylist() == EXPECTED[begin:]


@pytest.mark.parametrize(
    "type",
    [
        pa.large_list(pa.string()),
        pa.list_(pa.large_string()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_layouts(type: pa.DataType) -> None:
    plain = pa.array(TAGS, pa.list_(pa.string()))
    if pa.types.is_dictionary(type.value_type):
        tags: pa.Array = pa.ListArray.from_arrays(plain.offsets, plain.values.dictionary_encode(), mask=plain.is_null())
    else:
        tags = plain.cast(type)
    events = EVENTS.set_column(0, "tags", tags)
    assert cm.Matcher.build(RULES, SCHEMA).match_lists(events).to_pylist() == EXPECTED
    assert cm.Matcher.build(RULES, events.schema).match_lists(events).to_pylist() == EXPECTED


def test_ways_in(tmp_path: Path) -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    matcher.save(tmp_path / "rules.cm")
    again = cm.Matcher.open(tmp_path / "rules.cm")
    assert again.match_lists(EVENTS).to_pylist() == EXPECTED
    assert [again.match_one(event) for event in EVENTS.to_pylist()] == EXPECTED
    assert again.explain(EVENTS.slice(0, 1), 1).matched
    built = {1: cm.col("tags")[0] == "a", 5: cm.col("m")["k"] + cm.col("x") > 5, 6: cm.col("tags").size() * 2 == 4}
    found = cm.Matcher.build(built, SCHEMA).match_lists(EVENTS).to_pylist()
    assert found == [[id for id in ids if id in built] for ids in EXPECTED]


def test_events_without_the_column() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA, options=cm.Options(missing_columns="null"))
    assert matcher.match_lists(EVENTS.select(["y"]).slice(0, 1)).to_pylist() == [[3]]


def test_a_place_that_is_not_there_in_ansi_mode() -> None:
    for text in ("tags[1] = 'b'", "element_at(tags, 2) = 'b'", "element_at(tags, -2) = 'b'"):
        matcher = cm.Matcher.build({1: text}, SCHEMA, options=cm.Options(ansi=True))
        assert matcher.count(EVENTS.slice(0, 2)).tolist() == [text != "element_at(tags, -2) = 'b'", 0]
        with pytest.raises(cm.EventError, match="^event 2: .*the list 'tags' has 0 elements"):
            matcher.count(EVENTS)


@pytest.mark.parametrize(
    ("text", "unknown", "false"),
    [
        ("if(NOT (x > 0), 1, 2) = 2", [0, 1, 2, 5], [0, 1, 5]),
        ("CASE WHEN NOT x > 0 THEN 1 ELSE 2 END = 1", [3, 4], [2, 3, 4]),
        ("CASE WHEN y IN (1, 2) OR x > 0 THEN 1 END = 1", [0, 1, 5], [0, 1, 5]),
        ("CASE WHEN x IS NULL THEN 1 END = 1", [2], [2]),
        ("if(x > 0, y IS NULL, x < 0)", [0, 1, 3, 5], [0, 1, 3, 5]),
        ("x NOT BETWEEN y AND 5", [5], [5]),
        ("x NOT IN (y, 9)", [], []),
    ],
)
def test_conditions_without_unknown(text: str, unknown: list[int], false: list[int]) -> None:
    """With ``missing="false"``, what is said of a missing value is false, also within a value."""
    for missing, rows in (("unknown", unknown), ("false", false)):
        found = cm.Matcher.build({1: text}, SCHEMA, missing=missing).exists(EVENTS).tolist()
        assert [row for row, one in enumerate(found) if one] == rows, missing


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False) | st.decimals(-1000, 1000, places=4).map(float),
        min_size=1,
        max_size=20,
    ),
    st.integers(-3, 4),
)
def test_floats_are_rounded_as_their_texts_say(values: list[float], places: int) -> None:
    from colmatch.events.computed.rules import RULES as FUNCTIONS

    found = FUNCTIONS["round_double"](pa.array([*values, None]), places).to_pylist()
    wanted = [float(_rounded(Decimal(repr(value)), places)) for value in values]
    assert found == [*wanted, None]


def _rounded(value: Decimal, places: int) -> Decimal:
    if value.as_tuple().exponent >= -places:  # type: ignore[operator]
        return value
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def test_literals_in_lists_of_values_belong_to_their_text() -> None:
    """Texts that differ in such literals have one shape and several forms."""
    rules = {i: f"CASE WHEN x IN ({i}, {i + 1}) THEN 1 ELSE 2 END = 1" for i in range(-9, 10, 3)}
    found = cm.Matcher.build(rules, SCHEMA).match_lists(EVENTS).to_pylist()
    assert found == [[0], [0], [], [-9], [0], [9]]


def test_many_casts_and_cases_are_read_in_time_that_follows_the_text() -> None:
    many = " OR ".join([f"x::string = '{i}' OR CASE x WHEN {i} THEN y ELSE 0 END = 7" for i in range(1500)])
    assert cm.Matcher.build({1: many}, SCHEMA).exists(EVENTS).tolist() == [True, True, False, False, True, True]
    with pytest.raises(cm.ExpressionError, match="nests deeper"):
        cm.Matcher.build({1: "CASE WHEN " * 300 + "TRUE" + " THEN TRUE END" * 300}, SCHEMA)
    assert cm.Matcher.build({1: "x" + "::bigint" * 60 + " = 9"}, SCHEMA).exists(EVENTS).tolist()[5]
