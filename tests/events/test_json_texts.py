"""Values in JSON texts: what Spark has answered, and signs of other dialects for them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from inside import attributes

import colmatch as cm
from colmatch.events.computed.json_values import get_json_object, json_value

# Text, path, and what get_json_object of Spark 4.3 makes of them
OF_SPARK = [
    ('{"a":1.10}', "$.a", "1.1"), ('{"a":1e3}', "$.a", "1000.0"), ('{"a":1E400}', "$.a", '"Infinity"'), ('{"a":-0}', "$.a", "0"),
    ('{"a":-0.0}', "$.a", "-0.0"), ('{"a":12345678901234567890123}', "$.a", "12345678901234567890123"), ('{"a":1e7}', "$.a", "1.0E7"),
    ('{"a":123456789.123456789}', "$.a", "1.2345678912345679E8"), ('{"a":5e-324}', "$.a", "4.9E-324"), ('{"a":1e-400}', "$.a", "0.0"),
    ('{"a":1.0E23}', "$.a", "9.999999999999999E22"), ('{"a":2e-3}', "$.a", "0.002"), ('{"a":0.1e-7}', "$.a", "1.0E-8"),
    ("{'a':'x'}", "$.a", "x"), ("{\"a\":'x\"y'}", "$.a", 'x"y'), ("{'a':'it\\'s'}", "$.a", "it's"), ('{"a":"x\\\'y"}', "$.a", "x'y"),
    ('{"a":null}', "$.a", None), ('{"a":null,"a":2}', "$.a", "2"), ('{"a":1,"a":2}', "$.a", "1"), ('{"a":true}', "$.a", "true"),
    ('{"a":1,"a":{"b":3}}', "$.a.b", "3"), ('{"a":{"b":null}}', "$.a", '{"b":null}'), ("[null]", "$[0]", "null"), ("null", "$", "null"),
    ('{"a":{"b":1.50,"c":"\\u001f\\n/\\u00e9\\u007f"}}', "$.a", '{"b":1.5,"c":"\\u001F\\n/é\x7f"}'), ('{"a":""}', "$.a", ""),
    ('{"a":[1, 2.50,"x",null,{"b" : 1}]}', "$.a", '[1,2.5,"x",null,{"b":1}]'), ('{"a":1', "$.a", None), ('{"a":1} xyz', "$.a", "1"),
    ('{"a":1}}', "$.a", "1"), (' {"a":1}', "$.a", "1"), ('{"a":NaN}', "$.a", None), ('{"a":01}', "$.a", None), ('{"a":1,}', "$.a", None),
    ('{"a":"\\ud800"}', "$.a", None), ('{"a":"\\ud800"}', "$", '{"a":"\\uD800"}'), ('{"a":"\\ud83d\\ude00"}', "$.a", "😀"),
    ('{"a":"😀"}', "$", '{"a":"\\uD83D\\uDE00"}'), ('{"a":"x\ty"}', "$.a", "x\ty"), ('[{"a":1}]', "$.a", None),
    ('[{"a":1}]', "$[0].a", "1"),
    ('"x"', "$", "x"), ("12", "$", "12"), ("12 x", "$", "12"), ("12x", "$", None), ("1,", "$", None), ('"x"y', "$", "x"),
    ("true ", "$", "true"),
    ("truex", "$", None), ("", "$", None), ("  ", "$", None), ('{"a":{}}', "$.a", "{}"), ("{a:1}", "$.a", None), ('{"a":"\\x"}', "$", None),
    ('\ufeff{"a":1}', "$.a", None), ('{"a":"\\u0000"}', "$.a", "\0"), ('{"A":1}', "$.a", None), ('{"a b":1}', "$['a b']", "1"),
    ('{"a b":1}', "$.a b", "1"), ('{"a\\u0062":3}', "$.ab", "3"), ("[1,2,[3]]", "$[2][0]", "3"),
    ('{"a":[1]}', "$.a[01]", None), ('{"a":[1,2]}', "$.a[01]", "2"),
    ('{"a":1}{"a":2}', "$.a", "1"), ('{"a":/*c*/1}', "$.a", None), ('{"a":' + "[" * 1100 + "]" * 1100 + "}", "$", None),
    ("[1,2]", "$[*]", "[1,2]"), ('["x"]', "$[*]", '"x"'), ("[]", "$[*]", None), ('{"a":[{"b":"x"},{"c":1}]}', "$.a[*].b", '"x"'),
    ('[{"a":1},{"a":[2,3]}]', "$[*].a", "[1,[2,3]]"), ("[[1,[2]],[],[3]]", "$[*][*]", "[1,2,3]"), ("[[]]", "$[*][*]", None),
    ('[{"a":[1]},{"a":[]},{"a":[2]}]', "$[*].a[*]", "[[1],[],[2]]"), ('[{"a":[1]},{"a":[]}]', "$[*].a[*]", "[1],[]"),
    ('[["x"]]', "$[0][*]", '["x"]'), ("[[7]]", "$[*][0]", "7"), ('{"a":{"b":1}}', "$.*", None), ('{"*":1}', "$['*']", None),
    ('{"a":[{"b":1},{"b":2}]}', "$.a[0].b", "1"), ('{"a":1}', "$[*]", None), ("[null]", "$[*]", "null"), ('{"a":null}', "$.a[*]", None),
    ('["😀"]', "$[*]", '"😀"'), ('[["😀"]]', "$[*][*]", '["\\uD83D\\uDE00"]'), ('["\\ud800"]', "$[*]", None), ('{"a":3}', "$. a", "3"),
    ('{"a":[1],"a":[2]}', "$.a[*]", "1"), ('{"a":[],"a":[2]}', "$.a[*]", "2"), ("[1", "$[*]", None),
    ('{"a":' + "9" * 1200 + "}", "$.a", None), ('{"a":' + "9" * 900 + "}", "$.a", "9" * 900),
]  # fmt: skip
ROW = {
    "p": '{"a": {"b": [1, {"c": "x"}]}, "n": 7, "a b": "q", "t": "T", "date": "d"}',
    "m": {"k": '{"z": "y"}'},
    "i": 3,
    "p:a": "odd",
}
SCHEMA = pa.schema(
    [("p", pa.string()), ("m", pa.map_(pa.string(), pa.string())), ("i", pa.int32()), ("p:a", pa.string())]
)


@pytest.mark.parametrize(("text", "path", "found"), OF_SPARK)
def test_values_of_spark(text: str, path: str, found: str | None) -> None:
    assert get_json_object(text, path) == found


def test_plain_documents_are_those_of_python() -> None:
    rng = Random(4)

    def document(depth: int) -> Any:
        if depth and rng.random() < 0.7:
            keys = rng.sample(["a", "b", "c d", "é"], rng.randint(0, 3))
            return (
                {key: document(depth - 1) for key in keys}
                if rng.random() < 0.7
                else [document(depth - 1) for _ in range(2)]
            )
        return rng.choice([None, True, False, 0, -7, 10**30, 2.5, "", "x", 'é\n"', "\\"])

    for _ in range(500):
        value: Any = document(3)
        text, steps = (
            json.dumps(value, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5),
            list[str | int](),
        )
        while isinstance(value, (dict, list)) and value and rng.random() < 0.8:
            steps.append(rng.choice(list(value)) if isinstance(value, dict) else 1)
            value = value[steps[-1]]  # type: ignore[index]
        path = "$" + "".join([f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in steps])
        is_null = value is None and (not steps or isinstance(steps[-1], str)) and steps
        found = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        assert get_json_object(text, path) == (None if is_null else found), (text, path)
        assert json_value(text, path) == (None if value is None or isinstance(value, (dict, list)) else found)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("p:a.b[1].c = 'x'", "get_json_object(p, '$.a.b[1].c') = 'x'"),
        ("p:a:b[1]:c = 'x'", "get_json_object(p, '$.a.b[1].c') = 'x'"),
        ("p:a['b'][1]['c'] = 'x'", "get_json_object(p, '$.a.b[1].c') = 'x'"),
        ("p -> 'a' -> 'b' -> 1 ->> 'c' = 'x'", "get_json_object(p, '$.a.b[1].c') = 'x'"),
        ("p->>'$.a.b[1].c' = 'x'", "get_json_object(p, '$.a.b[1].c') = 'x'"),
        ("p:['a b'] = 'q'", "get_json_object(p, '$.a b') = 'q'"),
        ("p:`a b` = 'q'", "get_json_object(p, '$.a b') = 'q'"),
        ("p:date = 'd'", "get_json_object(p, '$.date') = 'd'"),
        ("p:n::int > 5", "CAST(get_json_object(p, '$.n') AS INT) > 5"),
        ("(p->>'n')::int > 5", "CAST(get_json_object(p, '$.n') AS INT) > 5"),
        ("p:n::int + i = 10", "CAST(get_json_object(p, '$.n') AS INT) + i = 10"),
        ("NOT p:t = 'x'", "NOT get_json_object(p, '$.t') = 'x'"),
        ("p:zz IS NULL", "get_json_object(p, '$.zz') IS NULL"),
        ("p:t IN ('T', 'U') AND p:n BETWEEN '1' AND '8'", "get_json_object(p, '$.t') = 'T'"),
        ("m['k']:z = 'y'", "get_json_object(m['k'], '$.z') = 'y'"),
        ("m['k']->>'z' = 'y'", "get_json_object(m['k'], '$.z') = 'y'"),
        ("coalesce(p->>'zz', p->>'t') = 'T'", "get_json_object(p, '$.t') = 'T'"),
        ("CASE WHEN p:n::int > 5 THEN p:t ELSE 'z' END = 'T'", "get_json_object(p, '$.t') = 'T'"),
        ("json_extract_string(p, '$.t') = 'T'", "get_json_object(p, '$.t') = 'T'"),
        ("json_extract_path_text(p, 'a', 'b') LIKE '[1%'", "get_json_object(p, '$.a.b') LIKE '[1%'"),
        ("json_value(p, '$.t') = 'T' AND json_value(p, '$.a') IS NULL", "get_json_object(p, '$.t') = 'T'"),
        ("`p:a` = 'odd'", "i = 3"),
        ("p:t = 'T' -- doc:a, 'x' -> 1", "get_json_object(p, '$.t') = 'T'"),
    ],
)
def test_signs_of_other_dialects(text: str, same: str) -> None:
    matcher = cm.Matcher.build({1: text, 2: same}, SCHEMA)
    assert matcher.match_one(ROW) == [1, 2]
    assert matcher.match_lists(pa.Table.from_pylist([ROW, {}], schema=SCHEMA)).to_pylist()[0] == [1, 2]


def test_one_path_is_one_value() -> None:
    rules = {
        1: "p:a.b = '1'",
        2: "p->'a'->>'b' = '2'",
        3: "get_json_object(p, '$.a.b') = '3'",
        4: "json_extract_path_text(p, 'a', 'b') = '4'",
    }
    assert [a.name for _, a in attributes(cm.Matcher.build(rules, SCHEMA)).items()] == ["get_json_object(p, '$.a.b')"]


@pytest.mark.parametrize(
    "form", ["p->>'k{0}' = 'v{0}'", "p:k{0} = 'v{0}'", "get_json_object(p, '$.k{0}') = 'v{0}'", "p:l[{0}]::int = {0}"]
)
def test_many_texts_of_one_shape(form: str) -> None:
    matcher = cm.Matcher.build({i: form.format(i) for i in range(300)}, SCHEMA)
    event = {"p": json.dumps({"k7": "v7", "k8": "v7", "k299": "v299", "l": [9, 1, *range(2, 300)]})}
    expected = [*range(1, 300)] if "l[" in form else [7, 299]
    assert matcher.match_one(event) == expected == matcher.match_lists(pa.table({"p": [event["p"]]})).to_pylist()[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("get_json_object(p, 'a') = 'x'", r"a path begins with \$"),
        ("json_value(p, '$.a[*]') = 'x'", "wildcards .* are not computed: name the place"),
        ("p ->> '$.*' = 'x'", "wildcards .* are not computed"),
        ("get_json_object(p, '$.*x') = 'x'", "is no path into JSON at 'x'"),
        ("get_json_object(p, '$.a[x]') = 'x'", "is no path into JSON at"),
        ("get_json_object(p, '$" + ".a" * 65 + "') = 'x'", "64 steps at most"),
        ("get_json_object(p, p) = 'x'", "takes a literal string here"),
        ("get_json_object(i, '$.a') = 'x'", "needs a string, not int"),
        ("p -> 'a' = 'x'", "write ->> for its text"),
        ("p ->> '' = 'x'", "cannot be a key"),
        ("p ->> '/a/b' = 'x'", "is a pointer in some dialects"),
        ("p ->> -1 = 'x'", "count from 0 at the beginning"),
        ("p ->> i = 'x'", "name a value in the text"),
        ("p:a[i] = 'x'", "a literal key or place is needed in"),
        ("p:a[0 = 'x'", "a literal key or place is needed in"),
        ("p:a. = 'x'", "a name is needed behind"),
        ("p: = 'x'", "name a value in the text"),
        ("m:k = 'x'", "column 'm' is map"),
        ("json_extract_path_text(p, 'a', '0') = 'x'", "write get_json_object"),
        ("json_extract_path_text(p) = 'x'", "it is written json_extract_path_text.string, literal string, "),
        ("json_extract_path_text(p, i) = 'x'", "literal keys and places"),
        ("json_extract(p, '$.a') = 'x'", "as in get_json_object"),
    ],
)
def test_what_is_no_path(text: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, SCHEMA)


@pytest.mark.usefixtures("kept_predicates")
def test_conditions_on_elements_read_json() -> None:
    """An arrow behind the name of an element begins the condition; others are steps of a path."""
    schema = pa.schema(
        [("l", pa.list_(pa.string())), ("items", pa.list_(pa.struct({"doc": pa.string(), "v": pa.string()})))]
    )
    row = {"l": ["a", '{"a": "y", "b": {"c": "d"}}'], "items": [{"doc": '{"a": "y"}', "v": "1.10.0"}]}
    rules = {
        1: "exists(l, x -> x ->> 'a' = 'y')", 2: "exists(l, x -> x -> 'b' ->> 'c' = 'd')", 3: "exists(items, x -> x.doc:a = 'y')",
        4: "exists(l, x -> 'a' = x)", 5: "exists(l, lambda x: x:a = 'y')", 6: "size(filter(items, x -> x.doc:a = 'y')) = 1",
        7: "exists(items, x -> semver(x.v) > semver('1.9'))", 8: "exists(items, x -> x.doc:a = 'n')",
        9: "exists(items, x -> bucket(0, x.doc, 100) < 100 AND hash(x.v, x.doc) <> 42)",
    }  # fmt: skip
    matcher = cm.Matcher.build(rules, schema)
    assert matcher.match_one(row) == [1, 2, 3, 4, 5, 6, 7, 9]
    assert matcher.match_lists(pa.Table.from_pylist([row], schema=schema)).to_pylist() == [[1, 2, 3, 4, 5, 6, 7, 9]]
    shown = str(matcher.explain(row, 2))
    assert "get_json_object(x, '$.b.c')" in shown


def test_the_builder_names_fields() -> None:
    rule = cm.function("json_extract_path_text", cm.col("p"), "a", "b") == "x"
    assert cm.Matcher.build({1: rule}, {"p": "string"}).match_one({"p": '{"a": {"b": "x"}}'}) == [1]
    with pytest.raises(cm.ExpressionError, match="there is no function '->>'"):
        cm.function("->>", cm.col("p"), "a")
