"""Variants: how a column is said to be one, what is named in it, and bytes that are damaged."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind
from inside import attributes

import colmatch as cm
from colmatch.cli.json_lines import PathWatch, read
from colmatch.events.computed import variants
from colmatch.events.computed.derived import DerivedColumns
from colmatch.events.computed.variant_bytes import parse_json, variant_of
from colmatch.given.variants import VARIANT_TYPE, is_variant

SCHEMA = cm.Schema("id int, v variant, p string")
DOCUMENTS: list[Any] = [
    {"a": {"b": [1, "2", {"c d": 2.5}]}, "n": None, "t": True, "day": "2024-01-31"},
    {"a": {"b": 7}, "big": 10**30, "x": "7"},
    [1, [2, 3], {"k": {}}],
    "text",
    12,
    None,
    {"a": {str(i): i for i in range(300)}, "long": "é" * 100},
]
# Clauses, and the documents that they are true for
CLAUSES = {
    "variant_get(v, '$.a.b', 'string') = '7'": [1],
    "try_variant_get(v, '$.a.b[0]', 'int') = 1": [0],
    "v:a.b[1]::int = 2": [0],
    "v:a['b'][2]['c d']::double > 2": [0],
    "variant_get(v, \"$['a'].b[2]['c d']\", 'decimal(5, 2)') = 2.5": [0],
    "is_variant_null(v:n)": [0],
    "NOT is_variant_null(v:n)": [1, 2, 3, 4, 5, 6],
    "v IS NULL": [5],
    "v IS NOT NULL AND v:a IS NULL": [2, 3, 4],
    "v:t::boolean": [0],
    "v:day::date = DATE '2024-01-31'": [0],
    "v:day::timestamp >= TIMESTAMP '2024-01-31 00:00:00'": [0],
    "v:big::string = '1000000000000000000000000000000'": [1],
    "try_variant_get(v, '$', 'string') = 'text'": [3],
    "try_variant_get(v, '$', 'int') BETWEEN 10 AND 20": [4],
    "variant_get(v, '$[1]', 'string') = '[2,3]'": [2],
    "variant_get(v, '$[2]', 'string') LIKE '{%k%}'": [2],
    "variant_get(v, '$.a.299', 'bigint') + 1 = 300": [6],
    "length(v:long::string) = 100": [6],
    "v:x::int + v:a.b::int = 14": [1],
    "coalesce(v:x, v:day)::string IN ('7', '2024-01-31')": [0, 1],
    "TRY_CAST(v:x AS BIGINT) = 7": [1],
    "CASE WHEN v:t::boolean THEN v:a.b[0]::int ELSE 0 END = 1": [0],
}


def table_of(documents: list[Any], name: str = "v") -> pa.Table:
    values = [None if document is None else variant_of(document, name) for document in documents]
    return pa.table({name: pa.array(values, VARIANT_TYPE)})


EVENTS = table_of(DOCUMENTS)


@every_kind
def test_clauses_match_in_every_way(kind: str, tmp_path: Path) -> None:
    rules = dict(enumerate(CLAUSES))
    matcher = cm.Matcher.build({i: rules[i] for i in rules if i % 3}, "v variant", index=kind)
    matcher.insert({i: rules[i] for i in rules if not i % 3})
    expected = [[i for i, rows in enumerate(CLAUSES.values()) if row in rows] for row in range(len(DOCUMENTS))]
    matcher.save(tmp_path / "rules.cm")
    for one in (matcher, cm.Matcher.open(tmp_path / "rules.cm"), pickle.loads(pickle.dumps(matcher))):
        assert list(map(sorted, one.match_lists(EVENTS).to_pylist())) == expected
        assert [sorted(one.match_one({"v": document})) for document in DOCUMENTS] == expected
        assert is_variant(one.schema.arrow.field("v").type)


def test_texts_become_variants() -> None:
    rules = {
        1: "variant_get(parse_json(p), '$.a', 'int') > 5",
        2: "parse_json(p):b[0]::string = 'x'",
        3: "try_parse_json(p):a IS NULL",
    }
    matcher = cm.Matcher.build(rules, SCHEMA)
    texts = ['{"a": 7, "b": ["x"]}', '{"b": []} x', None, "[1]"]
    assert matcher.match_lists(pa.table({"p": texts})).to_pylist() == [[1, 2], [3], [3], [3]]
    assert [matcher.match_one({"p": text}) for text in texts] == [[1, 2], [3], [3], [3]]
    for wrong in ("{", '{"a":1,"a":2}', "{'a':1}", '"\\ud800"', '"\t"', "1x", "9" * 1001, "[" * 1001 + "]" * 1001):
        with pytest.raises(cm.EventError, match="^event 1: .* is no (JSON|variant)"):
            matcher.match_lists(pa.table({"p": ["{}", wrong]}))
        assert cm.Matcher.build({3: rules[3]}, SCHEMA).match_one({"p": wrong}) == [3]


def test_ways_to_name_a_value_share_an_attribute() -> None:
    rules = {1: "v:a.b::int = 1", 2: "variant_get(v, '$.a.b', 'int') = 2", 3: "CAST(v:a:b AS INTEGER) = 3", 4: "v:['a']['b']::int = 4",
             5: "variant_get(variant_get(v, '$.a.b'), '$', 'int') = 5"}  # fmt: skip
    assert {a.name for _, a in attributes(cm.Matcher.build(rules, SCHEMA)).items()} <= {
        "CAST(v:a.b AS INT)", "CAST(v:['a']['b'] AS INT)", "CAST(v:a.b: AS INT)",
    }  # fmt: skip
    rule = cm.function("variant_get", cm.col("v"), "$.a", "int") > 5
    assert cm.Matcher.build({1: rule}, SCHEMA).match_one({"v": {"a": 6}}) == [1]


def test_a_distinct_variant_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from colmatch.events.computed import variant_casts

    seen: list[bytes] = []
    monkeypatch.setattr(variant_casts, "read", lambda packed: seen.append(packed) or variants.read(packed))
    matcher = cm.Matcher.build({1: "v:a::int = 1"}, SCHEMA)
    events = table_of([{"a": 1, "b": 2}, {"a": 2, "b": 3}] * 500)
    assert matcher.count(events).sum() == 500
    assert len(seen) == 2


# The schema


@pytest.mark.parametrize(
    "type",
    [
        pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), False, {"variant": "true"})]),
        pa.struct([pa.field("metadata", pa.binary(), True, {"variant": "true"}), pa.field("value", pa.large_binary())]),
    ],
)
def test_the_mark_of_spark_says_that_a_column_is_a_variant(type: pa.DataType) -> None:
    for schema in (cm.Schema(pa.schema([("v", type)])), cm.Schema(pa.schema([("s", pa.struct([("v", type)]))]))):
        name = "v:a" if schema.arrow.names == ["v"] else "s.v:a"
        event = {"v": {"a": 1}} if name == "v:a" else {"s": {"v": {"a": 1}}}
        matcher = cm.Matcher.build({1: f"{name}::int = 1", 2: f"{name} IS NULL"}, schema)
        assert matcher.match_one(event) == [1]
        parts = pa.array([variant_of({"a": 1}, "v")], type)
        column = parts if name == "v:a" else pa.StructArray.from_arrays([parts], ["v"])
        assert matcher.match_lists(pa.table({name[0]: column})).to_pylist() == [[1]]


class ParquetVariant(pa.ExtensionType):
    """The canonical extension type, which pyarrow 26 does not know."""

    def __init__(self) -> None:
        super().__init__(pa.struct([("metadata", pa.binary()), ("value", pa.binary_view())]), "arrow.parquet.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def test_the_extension_type_says_that_a_column_is_a_variant() -> None:
    unknown = pa.field("v", ParquetVariant().storage_type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    parts = variant_of({"a": 1}, "v")
    storage = pa.array([(parts["metadata"], parts["value"]), None], ParquetVariant().storage_type)
    for field in (unknown, pa.field("v", ParquetVariant())):
        matcher = cm.Matcher.build({1: "v:a::int = 1", 2: "v IS NULL"}, pa.schema([field]))
        events = storage if field is unknown else pa.ExtensionArray.from_storage(ParquetVariant(), storage)
        assert matcher.match_lists(pa.table({"v": events})).to_pylist() == [[1], [2]]


def test_a_schema_in_words_has_variants() -> None:
    for schema in ("v variant", {"v": "VARIANT"}, "CREATE TABLE t (v VARIANT NOT NULL)"):
        assert repr(cm.Schema(schema)) == "Schema(v: variant)"
    with pytest.raises(cm.SchemaError, match="did you mean 'variant'"):
        cm.Schema("v varaint")
    plain = pa.schema([("v", pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))])
    with pytest.raises(cm.ExpressionError, match="declare it in the schema, as in 'v variant'"):
        cm.Matcher.build({1: "v:a::int = 1"}, plain)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array(["{}"]), "column 'v' is string, the schema says a variant"),
        (pa.array([{"value": b"x"}]), "a struct of the binaries value and metadata is needed"),
        (pa.array([{"value": "x", "metadata": "x"}]), "the parts of a variant are binaries"),
        (pa.array([{"value": b"", "metadata": b"", "typed_value": 1}]), "is a shredded variant"),
        (
            pa.array([None, {"value": b"", "metadata": None}], VARIANT_TYPE),
            "column 'v', event 1: the variant has a part that is NULL",
        ),
    ],
)
def test_columns_that_are_no_variants(column: pa.Array, said: str) -> None:
    with pytest.raises(cm.EventError, match=said):
        cm.Matcher.build({1: "v:a::int = 1"}, "v variant").match_lists(pa.table({"v": column}))


def test_a_column_may_be_all_null() -> None:
    matcher = cm.Matcher.build({1: "v IS NULL", 2: "is_variant_null(v)"}, "v variant")
    assert matcher.match_lists(pa.table({"v": pa.nulls(2)})).to_pylist() == [[1], [1]]
    lenient = cm.Matcher.build({1: "v IS NULL"}, "v variant", options=cm.Options(missing_columns="null"))
    assert lenient.match_lists(pa.table({"x": [1]})).to_pylist() == [[1]]


# What is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v = 5", "column 'v' is a variant: name a value and its type, as in v:a.b::int"),
        ("v", "column 'v' is a variant: name a value"),
        ("v:a = 5", "v:a is a variant: name a value and its type"),
        ("v:a", "v:a is a variant: name a value and its type"),
        ("v:a IN ('x', 'y')", "v:a is a variant"),
        ("v:a LIKE 'x'", "v:a is a variant"),
        ("v:a = v:b", "variants are not compared as a whole: name a value"),
        ("variant_get(v, '$.a') = 5", "v:a is a variant"),
        ("variant_get(v, '$.a', 'variant') = 5", "v:a is a variant"),
        ("parse_json(p) = 'x'", r"parse_json\(p\) is a variant"),
        ("CASE v:a WHEN 1 THEN 2 END = 2", "not int and variant: name a value"),
        ("greatest(v, v) = 1", "greatest of variant is not computed"),
        ("hash(v) = 1", "hash needs a value of a column, not variant"),
        ("v + 1 = 2", "needs numbers, not variant"),
        ("get_json_object(v, '$.a') = 'x'", "get_json_object needs a string, not variant"),
        ("variant_get(p, '$.a', 'int') = 5", "variant_get needs a variant, not string: write parse_json"),
        ("variant_get(id, '$.a', 'int') = 5", "variant_get needs a variant, not int"),
        ("v.a = 5", "column 'v' is a variant: write v:a::int"),
        ("v['a'] = 5", "column 'v' is a variant"),
        ("variant_get(v, '$[*]', 'int') = 1", "is no path into JSON at"),
        ("variant_get(v, 'a', 'int') = 1", r"a path begins with \$"),
        ("variant_get(v, '$[2147483648]', 'int') = 1", "a place beyond 2147483647"),
        ("variant_get(v, p, 'int') = 1", "takes a literal path and a literal type"),
        ("variant_get(v, '$.a', 'array<int>') IS NULL", "knows no type 'array<int>'"),
        ("variant_get(v, '$.a', 'binary') IS NULL", "knows no type 'binary'"),
    ],
)
def test_variants_are_not_compared_as_a_whole(text: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, SCHEMA)


# Failing values


@pytest.mark.parametrize("ansi", [False, True])
def test_a_value_that_does_not_fit_is_an_error_in_both_modes(ansi: bool) -> None:
    options = cm.Options(ansi=ansi)
    events = table_of([{"a": 1}, {"a": "x"}])
    matcher = cm.Matcher.build({1: "v:a::int = 1"}, SCHEMA, options=options)
    with pytest.raises(
        cm.EventError, match=r"^event 1: CAST\(v:a AS INT\) cannot be computed: 'x' in the variant is no int32"
    ):
        matcher.match_lists(events)
    with pytest.raises(cm.EventError, match="'x' in the variant is no int32"):
        matcher.match_one({"v": {"a": "x"}})
    for guarded in ("try_variant_get(v, '$.a', 'int') = 1", "id IS NULL AND TRY_CAST(v:a AS INT) = 1"):
        assert cm.Matcher.build({1: guarded}, SCHEMA, options=options).match_one({"v": {"a": 1}}) == [1]
    # No match depends on the second event's value
    assert cm.Matcher.build({1: "id = 5 AND v:a::int = 1"}, SCHEMA).match_lists(
        events.append_column("id", pa.array([5, 6], pa.int32()))
    ).to_pylist() == [[1], []]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1: 2}, "its key 1 is no text"),
        ({"a": object()}, "object is not taken: a dict, list, str, number"),
        ([10**38], "more than 38 digits"),
        (Decimal("1e40"), "more than 38 digits"),
        (Decimal("nan"), "is no decimal"),
        (["\ud800"], "half a surrogate pair"),
        ({"\ud800": 1}, "half a surrogate pair"),
    ],
)
def test_values_that_are_no_variants(value: Any, said: str) -> None:
    with pytest.raises(cm.EventError, match=f"column 'v' is a variant, and .* is none: .*{said}"):
        cm.Matcher.build({1: "v IS NULL"}, SCHEMA).match_one({"v": value})


def test_values_within_each_other_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    matcher = cm.Matcher.build({1: "v IS NULL", 2: "v::string LIKE '[[%'"}, SCHEMA)
    with pytest.raises(cm.EventError, match="nests deeper than 1000 levels"):
        matcher.match_one({"v": endless})
    deep: list[Any] = [None]
    for _ in range(999):
        deep = [deep]
    assert matcher.match_one({"v": deep}) == [2]


def test_values_of_python_and_spark() -> None:
    class VariantVal:
        def __init__(self, value: bytes, metadata: bytes) -> None:
            self.value, self.metadata = value, metadata

    moment = dt.datetime(2024, 1, 31, 10, 20, 30, 500000)
    document = {"day": dt.date(2024, 1, 31), "at": moment, "utc": moment.replace(tzinfo=dt.UTC), "d": Decimal("1.50"), "b": b"ab",
                "f": float("nan"), "l": (1, 2)}  # fmt: skip
    shown = (
        '{"at":"2024-01-31 10:20:30.5","b":"YWI=","d":1.5,"day":"2024-01-31","f":"NaN","l":[1,2],'
        '"utc":"2024-01-31 11:20:30.5+01:00"}'
    )
    rules = {
        1: f"v::string = '{shown}'",
        2: "v:d::decimal(4,2) = 1.5",
        3: "v:utc::timestamp = TIMESTAMP '2024-01-31 11:20:30.5'",
    }
    matcher = cm.Matcher.build(rules, SCHEMA, options=cm.Options(timezone="Europe/Berlin"))
    parts = variant_of(document, "v")
    given = [document, parts, VariantVal(**parts), pa.array([parts], VARIANT_TYPE)[0]]
    assert [matcher.match_one({"v": one}) for one in given] == [[1, 2, 3]] * 4


def test_json_lines_have_variants() -> None:
    lines = [{"id": 1, "v": {"a": 1}}, {"id": 2, "v": [1]}, {"id": 3, "v": None}, {"v": "x"}]
    source = BytesIO("\n".join(map(json.dumps, lines)).encode())
    schema = pa.schema([SCHEMA.arrow.field("id"), SCHEMA.arrow.field("v")])
    _, batches = read(source, schema, ["id", "v"], PathWatch([("v",)]))
    matcher = cm.Matcher.build(
        {1: "v:a::int = 1", 2: "v IS NULL", 3: "try_variant_get(v, '$', 'string') = 'x'"},
        SCHEMA,
    )
    assert matcher.match_lists(pa.Table.from_batches(batches)).to_pylist() == [[1], [], [2], [3]]


# Damaged bytes


def damaged(count: int) -> list[dict[str, bytes]]:
    """Variants with some bytes changed, cut off or added."""
    good = [variant_of(document, "v") for document in DOCUMENTS]
    rng, made = Random(11), []
    for i in range(count):
        parts = {name: bytearray(octets) for name, octets in good[i % len(good)].items()}
        for _ in range(rng.randint(1, 3)):
            octets, way = parts[rng.choice(["value", "value", "metadata"])], rng.random()
            at = rng.randrange(len(octets) + 1)
            if way < 0.2:
                del octets[at:]
            elif way < 0.35:
                octets[at:at] = rng.randbytes(1)
            elif at < len(octets):
                octets[at] = rng.choice([0, 3, 255, rng.randrange(256)])
        made.append({name: bytes(octets) for name, octets in parts.items()})
    return made


@pytest.mark.parametrize(
    "value",
    [
        "try_variant_get(v, '$', 'string')",
        "try_variant_get(v, '$.a.b[2].c d', 'double')",
        "v:a.b",
        "is_variant_null(v:n)",
        "v:a['299']::int",
    ],
)
def test_damaged_variants_fail_alone(value: str) -> None:
    values = damaged(3000)
    matcher = cm.Matcher.build({1: f"{value} IS NULL"}, "v variant")
    (batch,) = pa.table({"v": pa.array(values, VARIANT_TYPE)}).combine_chunks().to_batches()
    found, failures = DerivedColumns(attributes(matcher), True).add_to(batch)
    (failed,) = failures.values()
    rows = np.flatnonzero(failed.rows).tolist()
    assert 300 < len(rows) < 3000 and found.num_rows == 3000
    said = {failed.message_of(row)[:20] for row in rows}
    assert all("variant" in failed.message_of(row) for row in rows) and len(said) > 1
    with pytest.raises(cm.EventError, match=f"^event {rows[0]}: .*variant"):
        matcher.match_lists(batch)


def test_values_that_share_bytes_are_refused_at_once() -> None:
    data = bytes([12, 1])
    for _ in range(20):  # 200 times the same value, 20 levels deep
        data = bytes([3 | 2 << 2, 200]) + b"\0\0\0" * 200 + len(data).to_bytes(3, "little") + data
    matcher = cm.Matcher.build({1: "v::string = 'x'"}, "v variant")
    with pytest.raises(cm.EventError, match="values that share bytes"):
        matcher.match_one({"v": {"value": data, "metadata": b"\x01\x00\x00"}})


def test_bytes_of_spark_are_read() -> None:
    """Bytes that Spark 4.3 made of '{"b":1,"a":[1.5,"x",true,null,1e3]}'."""
    value = (
        b"\x02\x02\x01\x00\x02\x00\x1d\x0c\x01\x03\x05\x00\x06\x08\t\n\x13 \x01\x0f\x00\x00\x00\x05x\x04\x00\x1c"
        b"\x00\x00\x00\x00\x00@\x8f@"
    )
    packed = variants.join(b"\x01\x02\x00\x01\x02ba", value)
    text = '{"a":[1.5,"x",true,null,1e3],"b":1}'
    assert variants.to_json(packed, "UTC") == text.replace("1e3", "1000.0") == variants.to_json(parse_json(text), "UTC")
    assert len(parse_json(text)) == len(packed)
