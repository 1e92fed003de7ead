"""Lists of mappings as events: they are matched as the same rows of a table are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import inside
import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events import rows as rows_module
from colmatch.events.rows import events_of

AT = datetime(2024, 5, 6, 7, 8, 9)
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    **{f"int{n}": (getattr(pa, f"int{n}")(), [-5, 7]) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (getattr(pa, f"uint{n}")(), [0, 200]) for n in (8, 16, 32)},
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "float": (pa.float32(), [0.1, -2, float("inf")]),
    "double": (pa.float64(), [0.1, 3, float("-inf")]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.25"), 4]),
    "wide decimal": (pa.decimal128(38, 4), [Decimal("12345678901234567890.1"), Decimal(0)]),
    "string": (pa.string(), ["", "é"]),
    "large_string": (pa.large_string(), ["a", "b"]),
    "string_view": (pa.string_view(), ["a", "b"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"]),
    "binary": (pa.binary(), [b"", b"\xff"]),
    "date32": (pa.date32(), [date(2024, 1, 31), date(1969, 1, 1)]),
    "date64": (pa.date64(), [date(2024, 1, 31)]),
    **{f"timestamp {unit}": (pa.timestamp(unit), [AT, datetime(1969, 1, 1)]) for unit in ("s", "ms", "us", "ns")},
    "timestamp parts": (pa.timestamp("us"), [AT.replace(microsecond=5)]),
    "timestamp zone": (pa.timestamp("us", "Europe/Oslo"), [AT.replace(tzinfo=UTC)]),
    "time32": (pa.time32("s"), [time(1, 2, 3)]),
    "time64": (pa.time64("us"), [time(1, 2, 3, 4)]),
    "list": (pa.list_(pa.int32()), [[1, None], []]),
    "tuple": (pa.large_list(pa.string()), [("a", "b"), ["c"]]),
    "fixed list": (pa.list_(pa.int64(), 2), [[1, 2], [3, None]]),
    "list view": (pa.list_view(pa.int64()), [[1, 2], []]),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.string()})}), [{"a": 1, "b": {"c": "x"}}, {"b": None}, {}]),
    "structs": (pa.list_(pa.struct({"sku": pa.string(), "price": pa.float64()})), [[{"sku": "a", "price": 1.5}, None], []]),
    "map": (pa.map_(pa.string(), pa.float64()), [{"a": 1.0, "b": None}, {}]),
    "map of lists": (pa.map_(pa.string(), pa.list_(pa.int64())), [{"a": [1, 2]}]),
}  # fmt: skip
SCHEMA = pa.schema(
    [
        ("age", pa.int32()),
        ("city", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("user", pa.struct({"tier": pa.int64()})),
        ("attrs", pa.map_(pa.string(), pa.int64())),
        ("at", pa.timestamp("us")),
        ("price", pa.float64()),
    ]
)
RULES = {
    1: "age BETWEEN 3 AND 9 AND city = 'Oslo'",
    2: "city LIKE 'O%' OR array_contains(tags, 'new')",
    3: "user.tier > 1 AND NOT age = 4",
    4: "attrs['k'] = 1 OR age IS NULL",
    5: "at > TIMESTAMP '2024-01-01 00:00:00' AND price < 50",
    6: "price * 2 > age",
}
DRAWN: dict[str, Callable[[Random], Any]] = {
    "age": lambda rng: rng.randrange(10),
    "city": lambda rng: rng.choice(["Oslo", "Nice", "Odense"]),
    "tags": lambda rng: rng.choices(["new", "old", None], k=rng.randrange(3)),
    "user": lambda rng: rng.choice([{"tier": rng.randrange(4)}, {}]),
    "attrs": lambda rng: {"k": rng.randrange(3)},
    "at": lambda rng: datetime(2020 + rng.randrange(6), 1, 1),
    "price": lambda rng: rng.choice([rng.random() * 90, rng.randrange(9)]),
    "unknown": lambda rng: object(),
}


def drawn(count: int, seed: int = 5) -> list[dict[str, Any]]:
    """Returns rows of which each has some of the keys, some with None."""
    rng = Random(seed)
    rows = []
    for _ in range(count):
        names = rng.sample(list(DRAWN), rng.randrange(len(DRAWN) + 1))
        rows.append({name: None if rng.random() < 0.1 else DRAWN[name](rng) for name in names})
    return rows


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def sample_of(matcher: cm.Matcher) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(inside.sample(matcher))).read_all()


@pytest.fixture(scope="module", params=["bitslice", "scan", "pages"])
def matcher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> cm.Matcher:
    pages = cm.index("pbtree", path=str(tmp_path_factory.mktemp("pages") / "rules.pages"))
    return cm.Matcher.build(RULES, SCHEMA, pages if request.param == "pages" else request.param)


@pytest.mark.parametrize("name", TYPES)
def test_rows_have_the_values_of_a_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    type, values = TYPES[name]
    values = [None, *values, None]
    schema = cm.Schema({"v": type, "other": "string"})
    rows = [{} if value is None and i else {"v": value} for i, value in enumerate(values)]
    (batch,) = events_of(rows, schema).read(None)
    plain = type.value_type if pa.types.is_dictionary(type) else type
    assert batch.column("v").type == plain and batch.column("other").null_count == len(rows)
    assert batch.column("v").equals(pa.array(values, plain))
    if "view" in name:
        return
    # What Arrow converts alone is the same, value by value.
    monkeypatch.setattr(rows_module, "_is_plain", lambda values, type: False)
    (checked,) = events_of(rows, schema).read(None)
    assert checked.equals(batch)


@pytest.mark.parametrize(
    ("type", "value", "same"),
    [
        (pa.timestamp("us"), "2024-05-06T07:08:09", AT),
        (pa.timestamp("us", "UTC"), "2024-05-06T09:08:09+02:00", AT.replace(tzinfo=UTC)),
        (pa.date32(), "2024-01-31", date(2024, 1, 31)),
        (pa.int64(), np.int32(7), 7),
        (pa.int64(), 7.0, 7),
        (pa.int16(), 70_000, 70_000),
        (pa.float64(), Decimal("1.5"), 1.5),
        (pa.uuid(), "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
        (pa.list_(pa.int64()), {4}, [4]),
        (pa.struct({"a": pa.int64()}), {"A": 3, "b": 5}, {"a": 3}),
    ],
)
def test_values_of_other_classes_are_read_as_of_a_single_event(type: pa.DataType, value: Any, same: Any) -> None:
    (batch,) = events_of([{"v": value}, {"v": None}], cm.Schema({"v": type})).read(None)
    assert batch.column("v").to_pylist() == [same, None]


@pytest.mark.parametrize(
    ("type", "value", "needed"),
    [
        (pa.int64(), "4", "column 'v' is int64, and '4' is not: a whole number is needed"),
        (pa.int64(), True, "column 'v' is int64, and True is not: a whole number is needed"),
        (pa.int64(), 1.5, "column 'v' is int64, and 1.5 is not: it would lose a part"),
        (pa.int8(), 2**63, "column 'v' is int8, and 9223372036854775808 is not: it would lose a part"),
        (pa.float64(), True, "column 'v' is double, and True is not: a number is needed"),
        (pa.bool_(), 1, "column 'v' is bool, and 1 is not: True or False is needed"),
        (pa.string(), b"x", "column 'v' is string, and b'x' is not: a str is needed"),
        (pa.date32(), AT, "column 'v' is date32.*, and .* is not: it would lose a part"),
        (pa.timestamp("s"), AT.replace(microsecond=1), "column 'v' is timestamp.*it would lose a part"),
        (pa.timestamp("us"), AT.replace(tzinfo=UTC), "column 'v' is timestamp.*has a time zone"),
        (pa.time32("s"), time(1, 2, 3, 4), "column 'v' is time32.*it would lose a part"),
        (pa.decimal128(4, 1), Decimal("1.25"), "column 'v' is decimal128.*it would lose a part"),
        (pa.list_(pa.string()), "ab", "column 'v' is list.*, and 'ab' is not: a list is needed"),
        (pa.list_(pa.int64()), [1, "2"], "column 'v' has int64 in it, and '2' is not: a whole number is needed"),
        (pa.struct({"a": pa.int64()}), {"a": "x"}, "column 'v.a' is int64, and 'x' is not: a whole number is needed"),
        (pa.struct({"a": pa.int64()}), [("a", 1)], "column 'v' is struct.*: a mapping is needed"),
        (pa.map_(pa.string(), pa.int64()), [5], "column 'v' is map.*: a mapping is needed"),
        (pa.struct({"a": pa.int64()}), "a", "column 'v' is struct.*, and 'a' is not: a mapping is needed"),
        (pa.map_(pa.string(), pa.int64()), {b"k": 1}, "column 'v' has string in it, and b'k' is not: a str is needed"),
        (pa.map_(pa.string(), pa.int64()), {"k": True}, "column 'v' has int64 in it, and True is not: a whole number"),
    ],
)
def test_a_wrong_value_is_an_error_with_row_column_and_type(type: pa.DataType, value: Any, needed: str) -> None:
    matcher = cm.Matcher.build({1: "v IS NULL"}, {"v": type}, "scan")
    with pytest.raises(cm.EventError, match=f"^event 2: {needed}"):
        matcher.match([{"v": None}, {}, {"v": value}, {"v": value}])


def test_a_row_that_is_no_event_is_an_error() -> None:
    matcher = cm.Matcher.build({1: "v = 1"}, {"v": "int64", "w": "int64"}, "scan")
    with pytest.raises(cm.EventError, match="^event 1: an event is a mapping from name to value.*not int"):
        matcher.match([{"v": 1}, 5])  # type: ignore[list-item]
    with pytest.raises(cm.EventError, match="^event 1: it has a key 7: keys are names of columns"):
        matcher.match([{"v": 1}, {7: 1}])  # type: ignore[dict-item]
    with pytest.raises(cm.EventError, match="^event 1: it has 'v' twice, in different cases"):
        matcher.match([{"v": 1}, {"v": 1, "V": 1}])
    with pytest.raises(cm.EventError, match="^event 0: an event is a mapping from name to value.*not NoneType"):
        matcher.match([None, {"v": 1}])  # type: ignore[list-item]
    with pytest.raises(cm.EventError, match="events cannot be read from list: .*or a list of mappings$"):
        matcher.match([5])  # type: ignore[list-item]
    with pytest.raises(cm.EventError, match="events cannot be read from generator: .*or a list of mappings$"):
        matcher.match({"v": i} for i in range(3))  # type: ignore[arg-type]
    with pytest.raises(cm.EventError, match="events cannot be read from list: pyarrow.Table.from_batches"):
        matcher.match([pa.record_batch({"v": [1]})])


@pytest.mark.parametrize("rows", [[], [{}], drawn(1), drawn(300)], ids=["none", "empty", "one", "many"])
def test_all_calls_answer_as_for_a_table(matcher: cm.Matcher, rows: list[dict[str, Any]]) -> None:
    table = table_of(rows)
    for ask in (
        lambda events: matcher.match(events),
        lambda events: matcher.match(events, keep=["city", "Tags"]),
        lambda events: matcher.match(events, ids=[1, 2, 3]),
        lambda events: matcher.match(events, now=AT),
        lambda events: matcher.match(events, invalid="collect")[0],
        lambda events: matcher.match_batches(events).read_all(),
        lambda events: matcher.match_lists(events),
        lambda events: matcher.match_topk(events, 2),
        lambda events: matcher.match_topk(events, 2, keep="age", ids=[2, 3]),
        lambda events: matcher.hits(events),
        lambda events: matcher.verify(events),
        lambda events: matcher.explain_many(events, [1, 3, 6]),
    ):
        assert ask(rows).equals(ask(table))
    for count in (matcher.count, matcher.exists):
        assert count(rows).tolist() == count(table).tolist()
    assert matcher.reasons(rows).equals(matcher.reasons(table))
    assert matcher.report(rows).rules.equals(matcher.report(table).rules)
    assert matcher.counters(rows) == matcher.counters(table)
    if matcher.kind != "pbtree":
        assert matcher.check("odd literal", sample=[{}, *rows]).equals(
            matcher.check("odd literal", sample=table_of([{}, *rows]))
        )
    for row, ids in zip(rows[:40], matcher.match_lists(rows).to_pylist()):
        assert matcher.match_one(row, unknown="ignore") == ids
        assert str(matcher.explain([row], 6)) == str(matcher.explain(table_of([row]), 6))


def test_events_of_other_forms_and_cases_are_rows() -> None:
    @dataclass
    class Person:
        age: int

    matcher = cm.Matcher.build({1: "age > 3"}, {"age": "int64"}, "scan")
    assert matcher.count([{"Age": 4}, {"AGE": 3}, {"age": 5}, Person(6)]).tolist() == [1, 0, 1, 1]
    assert matcher.count(({"age": 4},)).tolist() == [1]


def test_columns_that_differ_in_case_alone() -> None:
    schema = cm.Schema(pa.schema([("v", pa.int64()), ("V", pa.int64())]), case_sensitive=True)
    matcher = cm.Matcher.build({1: "v = 1", 2: "V = 1"}, schema, "scan")
    assert matcher.match_lists([{"v": 1}, {"V": 1}, {"v": 1, "V": 1}]).to_pylist() == [[1], [2], [1, 2]]


def test_rules_without_columns_match_each_row() -> None:
    matcher = cm.Matcher.build({1: "TRUE"}, {"v": "int64"}, "scan")
    assert matcher.match_lists([{}, {"w": 1}, {"v": 2}]).to_pylist() == [[1], [1], [1]]


def test_rows_keep_columns_and_weights_that_the_schema_lacks(tmp_path: Path) -> None:
    matcher = cm.Matcher.build({1: (cm.col("age") > 3).weight(2.0)}, {"age": "int64"}, "scan")
    rows = [{"age": 4, "who": "a", "w": {"age": 3}}, {"age": 5, "w": None}, {"age": 6, "hurry": 2}]
    assert matcher.match(rows, keep="who").column("who").to_pylist() == ["a", None, None]
    pages = cm.Matcher.build({1: "age > 3"}, {"age": "int64"}, cm.index("pbtree", path=str(tmp_path / "rules.pages")))
    assert pages.match(rows, keep=["WHO", "age"]).column("who").to_pylist() == ["a", None, None]
    assert matcher.match_topk(rows, 1, event_weights="w").column("score").to_pylist() == [6, 2, 2]
    assert matcher.match_topk(rows, 1, event_weights={"age": "hurry"}).column("score").to_pylist() == [2, 2, 4]
    with pytest.raises(cm.EventError, match="keep has 'whom'.*who"):
        matcher.match(rows, keep="whom")
    for odd in ("a", 10**30, object()):
        with pytest.raises(cm.EventError, match="^column 'who', which keep= names, cannot be read"):
            matcher.match([{"age": 4, "who": 1}, {"who": odd}], keep="who")
    with pytest.raises(cm.EventError, match="'hurries'"):
        matcher.match_topk(rows, 1, event_weights={"age": "hurries"})


def test_rows_are_a_sample() -> None:
    rows, later = drawn(500), drawn(200, 6)
    built, same = (cm.Matcher.build(RULES, SCHEMA, "scan", sample=sample) for sample in (rows, table_of(rows)))
    assert sample_of(built).equals(sample_of(same)) and len(sample_of(built)) == 500
    built.compact(sample=later)
    same.compact(sample=table_of(later))
    assert sample_of(built).equals(sample_of(same)) and len(sample_of(built)) == 200


def test_only_needed_columns_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def convert(values: list[Any], type: pa.DataType, name: str, real: Any = rows_module.convert) -> pa.Array:
        made.append(name)
        return real(values, type, name)

    monkeypatch.setattr(rows_module, "convert", convert)
    matcher = cm.Matcher.build({1: "age > 3"}, SCHEMA, "scan")
    matcher.match(drawn(50))
    assert made == ["age"]


@pytest.mark.parametrize(
    ("type", "value", "wide", "rule"),
    [
        (pa.float32(), 0.1, 1e300, "v <= 0.1"),
        (pa.float16(), 0.1, 1e9, "v = 0.1"),
        (pa.list_(pa.float32()), [0.1], [1e300], "array_contains(v, 0.1)"),
        (pa.int8(), 5, 1000, "v = 5"),
    ],
)
def test_an_event_means_the_same_beside_one_with_a_wider_value(
    type: pa.DataType, value: Any, wide: Any, rule: str
) -> None:
    matcher = cm.Matcher.build({1: rule, 2: "v IS NOT NULL"}, {"v": type}, "scan")
    alone = matcher.match_one({"v": value})
    assert matcher.match_lists([{"v": value}, {"v": wide}]).to_pylist() == [alone, [2]]
