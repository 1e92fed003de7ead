"""Computed attributes end to end: how they are computed, kept, explained and refused."""

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events.computed import derived
from colmatch.events.computed.functions import FUNCTIONS
from colmatch.given.session import ZONE

SCHEMA = pa.schema(
    {
        "a": pa.int32(), "b": pa.int32(), "f": pa.float64(), "s": pa.string(), "d": pa.decimal128(18, 2), "ip": pa.string(),
        "at": pa.timestamp("us", "UTC"), "user": pa.struct({"age": pa.int32()}),
    }
)  # fmt: skip
AT = [dt.datetime(2024, 3, 31, 23, 30), None, dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1), None]
EVENTS = pa.table(
    {
        "a": pa.array([1, 5, None, -7, 2**31 - 1], pa.int32()),
        "b": pa.array([2, 5, 3, None, 1], pa.int32()),
        "f": [-0.0, float("nan"), None, 2.5, 0.0],
        "s": ["Abc", None, "abc", "", " abc "],
        "d": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("9999999999999999.99"), Decimal(0)], SCHEMA.field("d").type),
        "ip": ["10.1.2.3", "::1", "bad", None, "11.0.0.0"],
        "at": pa.array(AT, SCHEMA.field("at").type),
        "user": pa.array([{"age": 3}, None, {"age": None}, {"age": 40}, {"age": 1}], SCHEMA.field("user").type),
    }
)  # fmt: skip
TEXTS = {
    0: "a < b", 1: "NOT (a < b)", 2: "a + b > 6", 3: "a + b IS NULL", 4: "lower(trim(s)) = 'abc'", 5: "lower(trim(s)) LIKE '%c'",
    6: "f * 1 = 0", 7: "f + 1 > 1e300", 8: "d + d > 2.99", 9: "cidr_contains('10.0.0.0/8', ip)", 10: "NOT cidr_contains('::/64', ip)",
    11: "user.age * 2 BETWEEN 6 AND 80", 12: "month(at) = 4", 13: "coalesce(a > 3, true)", 14: "a % 4 IN (-3, 1)", 15: "a <=> b",
    16: "NOT (length(s) = 3)", 17: "a + b <> 3", 18: "f = f * 1", 19: "f > a",
}  # fmt: skip
FOUND = {
    0: [0], 1: [1, 4], 2: [1], 3: [2, 3], 4: [0, 2, 4], 5: [0, 2, 4], 6: [0, 4], 7: [1], 8: [0], 9: [0], 10: [0, 4], 11: [0, 3],
    12: [0], 13: [1, 2, 4], 14: [0, 1, 3], 15: [1], 16: [3, 4], 17: [1, 4], 18: [0, 1, 3, 4], 19: [1, 3],
}  # fmt: skip
BERLIN = cm.Options(timezone="Europe/Berlin")


def found(matcher: cm.Matcher, events: pa.Table) -> dict[int, list[int]]:
    pairs = matcher.match(events)
    rows: dict[int, list[int]] = {id: [] for id in matcher.ids.to_pylist()}
    for row, id in zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True):
        rows[id].append(row)
    return rows


@pytest.fixture
def events() -> pa.Table:  # what overflows does not fit the column's digits
    return EVENTS.set_column(
        4, "d", pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal(0), None], SCHEMA.field("d").type)
    )


@pytest.mark.parametrize("kind", cm.index_kinds())
def test_every_kind_matches(kind: str, events: pa.Table) -> None:
    matcher = cm.Matcher.build(TEXTS, SCHEMA, index=kind, options=BERLIN)
    assert found(matcher, events) == FOUND
    assert found(pickle.loads(pickle.dumps(matcher)), events) == FOUND


def test_saved_updated_and_forgotten(tmp_path: Path, events: pa.Table) -> None:
    matcher = cm.Matcher.build({0: TEXTS[0]}, SCHEMA, options=BERLIN)
    matcher.insert({id: text for id, text in TEXTS.items() if id})
    assert found(matcher, events) == FOUND
    matcher.save(tmp_path / "m")
    assert found(cm.Matcher.open(tmp_path / "m"), events) == FOUND
    matcher.delete([id for id in TEXTS if id not in (0, 9)])
    matcher.compact()
    assert matcher.columns == ["a", "b", "ip"]
    assert found(matcher, events.select(["ip", "b", "a"])) == {0: FOUND[0], 9: FOUND[9]}


def test_layouts_of_columns(events: pa.Table) -> None:
    matcher = cm.Matcher.build(TEXTS, SCHEMA, options=BERLIN)
    sliced = pa.concat_tables([events, events, events]).combine_chunks().slice(5, 5)
    assert found(matcher, sliced) == FOUND
    other = events.set_column(3, "s", events["s"].combine_chunks().dictionary_encode())
    other = other.set_column(5, "IP", events["ip"].cast(pa.large_string()))
    other = other.set_column(0, "a", events["a"].cast(pa.int64())).set_column(
        6, "at", events["at"].cast(pa.timestamp("us", "+05:00"))
    )
    assert found(matcher, other) == FOUND
    schema = SCHEMA.set(3, pa.field("s", pa.dictionary(pa.int8(), pa.string())))
    assert found(cm.Matcher.build(TEXTS, schema, options=BERLIN), other) == FOUND


def test_columns_that_are_not_there(events: pa.Table) -> None:
    texts = {0: "a < b", 1: "coalesce(a, 9) > b", 2: "user.age + 1 IS NULL"}
    matcher = cm.Matcher.build(texts, SCHEMA)
    assert matcher.columns == ["a", "b", "user"] and ("user", "age") in matcher.paths
    with pytest.raises(cm.EventError, match="the events have no column 'a'"):
        matcher.match(events.drop_columns(["a"]))
    matcher.options = cm.Options(missing_columns="null")
    assert found(matcher, events.drop_columns(["a", "user"])) == {0: [], 1: [0, 1, 2, 4], 2: [0, 1, 2, 3, 4]}
    with pytest.raises(cm.EventError, match="column 'a' is string, the expressions compute with int32: cast it"):
        matcher.match(events.set_column(0, "a", events["s"]))


def test_what_is_missing_is_false(events: pa.Table) -> None:
    texts = {0: "a <> b", 1: "NOT (a < b)", 2: "a + b NOT IN (3)", 3: "NOT (a + b = 3)"}
    matcher = cm.Matcher.build(texts, SCHEMA, missing="false")
    assert found(matcher, events) == {0: [0, 4], 1: [1, 2, 3, 4], 2: [1, 4], 3: [1, 2, 3, 4]}


def test_each_part_is_computed_once(events: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("lower", "trim", "add"):
        run = derived.FUNCTIONS[name]
        monkeypatch.setitem(derived.FUNCTIONS, name, lambda *v, run=run, name=name: calls.append(name) or run(*v))
    texts = {
        i: f"lower(trim(s)) = '{i}' OR a + b > {i} OR (a + b) * 2 = {i} OR length(trim(s)) = {i}" for i in range(9)
    }
    cm.Matcher.build(texts, SCHEMA).match(events)
    assert sorted(calls) == ["add", "lower", "trim"]


@pytest.mark.usefixtures("kept_predicates")
def test_explain_shows_the_value(events: pa.Table) -> None:
    matcher = cm.Matcher.build({0: "a + b > 6 AND a < b"}, SCHEMA)
    text = str(matcher.explain(events.slice(1, 1), 0))
    assert "a + b >= 7   [10]" in text and "a < b   [False]" in text
    assert matcher.explain({"a": 1, "b": 9}, 0).matched


def test_ranges_are_refused(events: pa.Table) -> None:
    matcher = cm.Matcher.build({0: "a < b"}, SCHEMA)
    with pytest.raises(cm.EventError, match="'a' cannot be a range: a < b needs one value of it"):
        matcher.match(
            events.rename_columns(["lo", "b", "f", "s", "d", "ip", "at", "user"]).append_column("hi", events["a"]),
            ranges={"a": ("lo", "hi")},
        )


def test_ansi(events: pa.Table) -> None:
    for text, says in [
        ("a * 2 > 1", r"2 \* a cannot be computed: the result is too large"),
        ("f / (b - 1) > 1", "division by zero"),
        ("a % (b - 1) > 1", "division by zero"),
        ("CAST(a AS TINYINT) = 1", "does not fit int8"),
        ("CAST(s AS INT) = 1", "'Abc' does not fit int32"),
        ("abs(CAST(b AS TINYINT)) = 1", ""),
    ]:
        plain = cm.Matcher.build({0: text}, SCHEMA)
        assert plain.match(events) is not None
        ansi = cm.Matcher.build({0: text}, SCHEMA, options=cm.Options(ansi=True))
        if says:
            with pytest.raises(cm.EventError, match=says):
                pickle.loads(pickle.dumps(ansi)).match(events)
        else:
            ansi.match(events)


def test_decimals_of_more_digits_than_keys_have(events: pa.Table) -> None:
    texts = {0: "d * 100 > 5", 1: "d * 100 > 999999999999999998.99", 2: "d * 100 = 999999999999999999"}
    matcher = cm.Matcher.build(texts, SCHEMA)
    assert found(matcher, EVENTS) == {0: [0, 3], 1: [3], 2: [3]}
    assert found(matcher, events) == {0: [0], 1: [], 2: []}


def test_values_of_the_zone_are_known_to_depend_on_it() -> None:
    assert cm.Matcher.build({0: "hour(at) = 1"}, SCHEMA).spark_settings.get(ZONE) == "hour(at)"
    assert cm.Matcher.build({0: "a + b = 1"}, SCHEMA).spark_settings.get(ZONE) is None


def test_what_is_computed_of_literals_alone_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    casts = []
    real = derived.cast

    def counted(values: pa.Array, *others: object) -> object:
        casts.append(len(values))
        return real(values, *others)

    monkeypatch.setattr(derived, "cast", counted)
    table = pa.table({"n": pa.array(range(100), pa.int64()), "a": pa.array(range(100), pa.int32())})
    options = cm.Options(batch_rows=10, threads=1)
    matcher = cm.Matcher.build({0: "n * n + 1 > 9801", 1: "n + a > 197"}, table.schema, options=options)
    casts.clear()
    assert found(matcher, table) == {0: [99], 1: [99]}
    assert casts.count(1) == 1 and casts.count(10) == 10  # the literal 1 once; the column in each batch


@pytest.mark.parametrize(
    ("text", "ansi"),
    [
        ("n > cast(concat('x', 'y') AS bigint)", True),
        ("n + coalesce(cast('x' AS int), 1) > 3", True),
        ("n > 1 OR cast(99999999999999999999BD AS int) > 2000000000", True),
    ],
)
def test_literals_that_cannot_be_computed_are_refused_with_the_expression(text: str, ansi: bool) -> None:
    schema = pa.schema({"n": pa.int64()})
    options = cm.Options(ansi=ansi)
    with pytest.raises(cm.ExpressionError, match="cannot be computed"):
        cm.Matcher.build({7: text}, schema, options=options)
    matcher = cm.Matcher.build({1: "n > 0", 7: text}, schema, options=options, errors="collect")
    assert [one.id for one in matcher.rejected] == [7] and len(matcher.match(pa.table({"n": [1]}, schema))) == 1
    if ansi:
        assert not len(cm.Matcher.build({7: text}, schema).match(pa.table({"n": [1]}, schema)))


def test_texts_that_say_numbers_in_rare_ways() -> None:
    texts = {
        1: "CAST(s AS INT) IS NULL",
        2: "CAST(s AS INT) = 0",
        3: "CAST(s AS DOUBLE) = 8",
        4: "CAST(s AS DOUBLE) = 'NaN'",
    }
    texts[4] = "CAST(s AS DOUBLE) > 1e308"  # only NaN and infinity
    matcher = cm.Matcher.build(texts, {"s": "string"})
    events = pa.table(
        {"s": ["9" * 5000, "." + "9" * 5000, "0" * 5000, ".", "-.", "", "0x1p3", "+NaN", "-NaN", "+nan", "0x1p99999"]}
    )
    found = [[1, 4], [2], [2], [2], [2], [1], [1, 3], [1, 4], [1, 4], [1], [1, 4]]
    assert matcher.match_lists(events).to_pylist() == found


def test_what_arrow_refuses_is_said_of_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, "lower", lambda texts: texts.cast(pa.int64()))
    matcher = cm.Matcher.build({1: "lower(s) = 'x'"}, {"s": "string"})
    with pytest.raises(cm.EventError, match=r"lower\(s\) cannot be computed: Arrow refuses it"):
        matcher.match(pa.table({"s": ["x"]}))


def test_a_date_that_is_no_timestamp_is_said_of_its_event() -> None:
    matcher = cm.Matcher.build({1: "CAST(d AS TIMESTAMP) > TIMESTAMP '2020-01-01 00:00:00'"}, {"d": "date32"})
    with pytest.raises(cm.EventError, match=r"^event 0: CAST.* cannot be computed: the timestamp is too large"):
        matcher.match(pa.table({"d": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}))
