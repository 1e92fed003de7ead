"""Weights and priorities, by all ways in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from scored import Held

import colmatch as cm
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.kinds.settings import Budget
from colmatch.lowering.forms import NO_WEIGHT
from colmatch.sql.compile import FormCompiler

SCHEMA = pa.schema(
    {
        "age": pa.int64(),
        "city": pa.string(),
        "vip": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "attrs": pa.map_(pa.string(), pa.int64()),
        "user": pa.struct({"age": pa.int64()}),
    }
)
WEIGHTS = pa.map_(pa.string(), pa.float64())
ROW = pa.record_batch(
    [
        pa.array([30], pa.int64()),
        pa.array(["Nice"]),
        pa.array([True]),
        pa.array([["x", "y"]]),
        pa.array([[("k", 3), ("l", 4)]], pa.map_(pa.string(), pa.int64())),
        pa.array([{"age": 5}], pa.struct({"age": pa.int64()})),
    ],
    schema=SCHEMA,
)


def texts(expressions: list[str], weights: Any = None, priority: Any = None, type: pa.DataType = WEIGHTS) -> pa.Table:
    columns: dict[str, Any] = {"id": range(1, len(expressions) + 1), "expression": expressions}
    if weights is not None:
        columns["weights"] = pa.array([None if one is None else list(one.items()) for one in weights], type)
    if priority is not None:
        columns["priority"] = priority
    return pa.table(columns)


def scores(subscriptions: Any) -> dict[Any, Any]:
    return Held(cm.Matcher.build(subscriptions, SCHEMA), ROW).scores()


@pytest.mark.parametrize(
    ("expression", "weights", "wanted"),
    [
        ("age = 30", {"age": 2}, 2),
        ("age = 30 AND age < 40", {"AGE": 2}, 4),
        ("age = 30 AND NOT age = 7", {"age": 2}, 2),
        ("age IS NOT NULL AND city <> 'x'", {"age": 2, "city": 5}, 2),
        ("NOT (age <> 30)", {"age": 2}, 2),
        ("user.age = 5 AND age = 30", {"user.age": 3, "age": 0.5}, 3.5),
        ("attrs['k'] = 3 AND attrs['l'] = 4", {"attrs": 1, "attrs['k']": 8}, 9),
        ("size(tags) = 2 AND array_contains(tags, 'x')", {"tags": 1, "size(tags)": 8}, 9),
        ("contains_all(tags, 'x', 'y') AND tags IS NOT NULL", {"tags": 1, "size(tags)": 8}, 2),
        ("city LIKE '%ic%' AND city RLIKE 'N.ce'", {"city": 3}, 6),
        ("age = 30 OR city = 'Nice' OR age IN (30, 31)", {"age": 2, "city": 3}, 3),
        ("age = 30 OR TRUE", {"age": -2}, 0),
        ("vip", {"vip": 2}, 2),
        ("age = 30", {"tags": 2}, 0),
        ("age = 30", None, 0),
    ],
)
def test_weights_by_name(expression: str, weights: Any, wanted: float) -> None:
    assert scores(texts([expression, "vip"], [weights, {"vip": 1}]))[1][0] == wanted


def test_nulls_and_types() -> None:
    ways = [
        WEIGHTS,
        pa.map_(pa.large_string(), pa.int8()),
        pa.map_(pa.dictionary(pa.int8(), pa.string()), pa.float32()),
    ]
    for type in ways:
        table = texts(["age = 30 AND vip"] * 4, [None, {}, {"age": None, "vip": 2}, {"age": 3}], type=type)
        assert [scores(table)[id][0] for id in (1, 2, 3, 4)] == [0, 0, 2, 3]
        assert scores(table.slice(2))[4][0] == 3
    nothing = texts(["age = 30"] * 2, [None, {}], [None, None])
    predicates = inside.predicates(cm.Matcher.build(nothing, SCHEMA))
    assert predicates.weight.shape == (0, 2) and not len(predicates.priority)
    keys, values, null = pa.array(["age", "age"]), pa.array([5.0, 6.0]), pa.array([True, False])
    hidden = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), keys, values, mask=null)
    table = pa.table({"id": [1, 2], "expression": ["age = 30"] * 2, "weights": hidden})
    assert [scores(table)[id][0] for id in (1, 2)] == [0, 6]


def test_a_struct_gives_what_is_not_null() -> None:
    """What tables of Python dicts, polars and JSON lines become."""
    given = pa.array([{"age": 2.0, "vip": None}, None, {"age": None, "vip": 3}, {"age": 1.0, "vip": 1}])
    table = pa.table({"id": [1, 2, 3, 4], "expression": ["age = 30 AND vip"] * 4, "weights": given})
    assert [scores(table)[id][0] for id in (1, 2, 3, 4)] == [2, 0, 3, 2]
    assert scores(table.slice(1))[4][0] == 2
    with pytest.raises(
        cm.SubscriptionError,
        match="'weights', field 'age' is string: numbers are needed",
    ):
        cm.Matcher.build(table.set_column(2, "weights", pa.array([{"age": "x"}] * 4)), SCHEMA)
    nothing = table.set_column(2, "weights", pa.array([{"age": None}] * 4, pa.struct({"age": pa.int8()})))
    assert inside.predicates(cm.Matcher.build(nothing, SCHEMA)).weight.shape == (0, 2)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"age": -1.1e100}, "the weight of 'age' is -1.1e.100: a number from -1e100 to 1e100 is needed"),
        ({"aeg": 1}, "weights: unknown attribute 'aeg': did you mean 'age'"),
        ({"user": 1}, "weights: column 'user' is struct.*: name a field"),
        ({"age": float("nan")}, "the weight of 'age' is nan: a number from -1e100 to 1e100 is needed"),
        ({"age": float("-inf")}, "the weight of 'age' is -inf: a number from -1e100 to 1e100 is needed"),
        ({"age": 1, "AGE": 2}, "weights: .*(age|AGE).* is given more than once"),
        ({"attrs['k']": 1, 'attrs["k"]': 2}, "is given more than once"),
    ],
)
def test_wrong_weights_name_the_subscription(weights: Any, said: str) -> None:
    table = texts(["age = 30", "age = 30", "vip"], [{"vip": 1}, weights, {"age": 2}])
    with pytest.raises(cm.ExpressionError, match=said) as caught:
        cm.Matcher.build(table, SCHEMA)
    assert caught.value.id == 2
    matcher = cm.Matcher.build(table, SCHEMA, errors="collect")
    assert [entry.id for entry in matcher.rejected] == [2] and matcher.ids.to_pylist() == [1, 3]
    with pytest.raises(cm.ExpressionError, match=said):
        matcher.insert(table.slice(1, 1))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_wrong_priorities_name_the_subscription(value: float) -> None:
    table = texts(["age = 30", "vip"], priority=[1.5, value])
    with pytest.raises(
        cm.ExpressionError, match=f"the priority is {value}: a number from -1e100 to 1e100 is needed"
    ) as caught:
        cm.Matcher.build(table, SCHEMA)
    assert caught.value.id == 2
    matcher = cm.Matcher.build(table, SCHEMA, errors="collect")
    assert [entry.id for entry in matcher.rejected] == [2]
    assert inside.predicates(matcher).priority.tolist() == [1.5]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"weights": ["x"]}, "'weights' is string, a map from names"),
        ({"weights": pa.array([[(1, 1.0)]], pa.map_(pa.int64(), pa.float64()))}, "keys must be strings"),
        (
            {"weights": pa.array([[("age", "x")]], pa.map_(pa.string(), pa.string()))},
            "'weights' is string: numbers are needed",
        ),
        (
            {"priority": ["x"]},
            "'priority' is string: numbers are needed, which are integers, floats or decimals of any",
        ),
        (
            {"weight": [1.0]},
            "a column 'weight' would mean nothing: .* Rename it to 'weights', or drop",
        ),
        ({"Weights": [1.0]}, "a column 'Weights' would mean nothing"),
        ({"tag": [["x"]]}, "a column 'tag' would mean nothing: .* Rename it to 'tags'"),
        ({"priorities": [1.0]}, "a column 'priorities' would mean nothing: .* Rename it to 'priority'"),
    ],
)
def test_columns_of_wrong_types(columns: Any, said: str) -> None:
    with pytest.raises(cm.SubscriptionError, match=said):
        cm.Matcher.build(pa.table({"id": [1], "expression": ["age = 30"], **columns}), SCHEMA)


NUMBERS = [
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal32(5, 1), pa.decimal64(5, 1), pa.decimal128(20, 2), pa.decimal256(50, 3)),
]


@pytest.mark.parametrize("type", NUMBERS, ids=str)
def test_numbers_of_all_types_are_weights_by_all_ways(type: pa.DataType) -> None:
    expression, age = {"id": [1], "expression": ["age = 30"]}, pa.array(["age"])
    value = pa.array([Decimal(2)]).cast(type) if not pa.types.is_float16(type) else pa.array([2.0], type)
    condition = {"id": [1], "attribute": ["age"], "op": ["="], "operands": [[30]]}
    for table in (
        pa.table(expression | {"weights": pa.MapArray.from_arrays([0, 1], age, value), "priority": value}),
        pa.table(expression | {"weights": pa.StructArray.from_arrays([value], ["age"]), "priority": value}),
        cm.PredicateTable(pa.table(condition | {"weight": value, "priority": value})),
    ):
        assert scores(table) == {1: (2, 2)}
    weights = pa.table({"id": [1], "expression": ["age = 30"], "weights": pa.array([[("age", 3.0)]], WEIGHTS)})
    matcher, event = cm.Matcher.build(weights, SCHEMA), pa.Table.from_batches([ROW])
    for column, given in ((value, {"age": "w"}), (pa.MapArray.from_arrays([0, 1], age, value), "w")):
        found = matcher.match_topk(event.append_column("w", column), 1, event_weights=given)
        assert found["score"].to_pylist() == [6]


NULLS = [pa.null(), pa.float64(), pa.string()]


@pytest.mark.parametrize("type", NULLS, ids=str)
def test_nothing_but_null_is_the_default_by_all_ways(type: pa.DataType) -> None:
    """Whatever its type, as if the column were not there."""
    nothing = pa.nulls(2, type)
    expressions = {"id": [1, 2], "expression": ["age = 30", "vip"]}
    conditions = {"id": [1, 2], "attribute": ["age", "age"], "op": ["=", "="], "operands": [[30], [30]]}
    maps = [pa.array([None, None], WEIGHTS), pa.array([[("age", None)], []], WEIGHTS)]
    if not pa.types.is_string(type):
        maps.append(pa.MapArray.from_arrays([0, 1, 2], pa.array(["age", "vip"]), nothing))
    ways = [pa.table(expressions | {"weights": weights, "priority": nothing}) for weights in [nothing, *maps]]
    ways += [cm.PredicateTable(pa.table(conditions | {"weight": nothing, "priority": nothing}))]
    for subscriptions in ways:
        matcher = cm.Matcher.build(subscriptions, SCHEMA)
        assert inside.predicates(matcher).weight.shape == (0, 2) and not len(inside.predicates(matcher).priority)
        for score in ("dot", "priority"):
            assert matcher.match_topk(ROW, 2, score=score)["score"].to_pylist() in ([0.0], [0.0, 0.0])


def test_null_in_a_map_gives_nothing_as_in_a_struct() -> None:
    """So what the column gives counts for its size, too."""
    given = {"tags": 1.0, "size(tags)": None}
    columns = {"id": [1], "expression": ["size(tags) = 2"]}
    for weights in (pa.array([list(given.items())], WEIGHTS), pa.array([given])):
        assert scores(pa.table(columns | {"weights": weights}))[1][0] == 1


@pytest.mark.parametrize("type", [pa.null(), pa.float64()], ids=str)
def test_events_whose_weights_are_nothing_but_null(type: pa.DataType) -> None:
    weights = pa.table({"id": [1], "expression": ["age = 30"], "weights": pa.array([[("age", 3.0)]], WEIGHTS)})
    matcher, nothing = cm.Matcher.build(weights, SCHEMA), pa.nulls(1, type)
    entry = pa.MapArray.from_arrays([0, 1], pa.array(["age"]), nothing)
    for column, given in ((nothing, {"age": "w"}), (entry, "w"), (pa.nulls(1), "w")):
        found = matcher.match_topk(pa.Table.from_batches([ROW]).append_column("w", column), 1, event_weights=given)
        assert found["score"].to_pylist() == [3]


def rows(weight: list[Any], priority: list[Any] | None = None, ids: Any = (1, 1, 2)) -> pa.Table:
    columns: dict[str, Any] = {
        "id": list(ids),
        "attribute": ["age", "age", "age"],
        "op": ["<", "not in", "="],
        "operands": [[40], [7, 8], [30]],
        "weight": pa.array(weight, pa.float64()),
    }
    return pa.table(columns if priority is None else columns | {"priority": pa.array(priority, pa.float64())})


@pytest.mark.parametrize("ids", [(1, 1, 2), (2, 2, 1)])
def test_predicate_tables(ids: Any) -> None:
    one, other = ids[0], ids[2]
    found = scores(cm.PredicateTable(rows([1, -2, None], ids=ids)))
    assert found == {one: (-1, 1), other: (0, 0)}  # a negated predicate's weight counts, too
    strings = pa.table({"id": [one], "attribute": ["city"], "op": ["not like"], "operands": [["x%"]], "weight": [-4.0]})
    tables = cm.PredicateTable(rows([-1, -2, None], [3, 3, None], ids), strings)
    assert scores(tables) == {one: (-7, -1), other: (0, 0)}
    matcher = cm.Matcher.build(tables, SCHEMA)
    priority = dict(
        zip(inside.predicates(matcher).owner.tolist(), inside.predicates(matcher).priority.tolist(), strict=True)
    )
    assert priority == {matcher.ids.to_pylist().index(one): 3, matcher.ids.to_pylist().index(other): 0}


@pytest.mark.parametrize("ids", [(1, 1, 2), (2, 2, 1)])
@pytest.mark.parametrize(
    ("weight", "priority", "said"),
    [
        ([1, float("nan"), 1], None, r"the weight is nan: .* \(row 1 of"),
        ([1, float("inf"), 1], None, r"the weight is inf: .* \(row 1 of"),
        ([1, 1, 1], [1, 2, 3], r"the priority is 2.0, in an earlier row 1.0: .* \(row 1 of"),
        ([1, 1, 1], [None, 2, 3], r"the priority is 2.0, in an earlier row 0.0"),
        ([1, 1, 1], [float("nan"), 1, 3], r"the priority is nan: .* \(row 0 of"),
    ],
)
def test_wrong_rows(ids: Any, weight: Any, priority: Any, said: str) -> None:
    table = cm.PredicateTable(rows(weight, priority, ids))
    with pytest.raises(cm.ExpressionError, match=said) as caught:
        cm.Matcher.build(table, SCHEMA)
    assert caught.value.id == ids[0]
    matcher = cm.Matcher.build(table, SCHEMA, errors="collect")
    assert [entry.id for entry in matcher.rejected] == [ids[0]] and matcher.ids.to_pylist() == [ids[2]]


def test_weights_of_the_builder() -> None:
    age, vip, tags = cm.col("age"), cm.col("vip"), cm.col("tags")
    conditions = {
        1: (age == 30).weight(2) & vip.weight(0.5),
        2: (age == 30).weight(2) | (age == 30).weight(3),
        3: (~(age == 7)).weight(4) & (age == 30).weight(1).is_true(),
        4: ~tags.array_contains("z").weight(np.float32(2)) & tags.is_not_null(),
        5: tags.contains_all("x", "y").weight(2),
        6: age.isin([]).weight(3) | vip,
        7: (age == 30).weight(-1) | True,
    }
    assert {id: one[0] for id, one in scores(conditions).items()} == {1: 2.5, 2: 3, 3: 5, 4: 2, 5: 2, 6: 0, 7: 0}
    assert str(conditions[1]) == "age = 30 AND vip"


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "1", None, True, 10**400, 1j])
def test_weights_that_are_none(weight: Any) -> None:
    with pytest.raises(cm.ExpressionError, match="a number from -1e100 to 1e100 is needed"):
        (cm.col("age") == 1).weight(weight)


def test_what_has_no_weight() -> None:
    both = (cm.col("age") == 1) & cm.col("vip")
    with pytest.raises(cm.ExpressionError, match="an AND has no weight: give one to each of its predicates"):
        both.weight(1)
    with pytest.raises(cm.ExpressionError, match="an OR has no weight"):
        (~(both | both)).weight(1)
    with pytest.raises(cm.ExpressionError, match="TRUE, FALSE and NULL have no weight"):
        (~cm.col("age").isin([])).weight(1)


def test_expressions_that_differ_in_weights_share_a_form() -> None:
    compiler = FormCompiler(Schema(SCHEMA), Attributes(), Options(), Budget(64, 64))
    age, vip = cm.col("age"), cm.col("vip")
    (one, literals), (other, _) = (compiler.form((age == i).weight(i) & vip) for i in (1, 2))
    assert one is other and literals == [1, 1.0]
    bare, _ = compiler.form((age == 1) & vip)
    assert bare is not one and [leaf.weight for leaf in bare.leaves] == [NO_WEIGHT] * 2
    repeated, _ = compiler.form((vip | age.isin([1])) & (vip | age.isin([1])))
    assert sorted(len(c.leaves) for c in repeated.conjunctions) == [1, 2, 2, 2]  # as ever: no leaf twice
