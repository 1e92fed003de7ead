"""Kernels and the reader of single texts agree: same matches, same rejections, same places."""

from __future__ import annotations

import datetime as dt
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from clauses import EVENTS, REFUSED, SCHEMA, TAKEN
from numba.core import config
from oracle import to_sql
from sizes import SMALL
from strategies import COLUMNS, an_expression, some_rows, terms

import colmatch as cm
from colmatch.given.schema import Attributes
from colmatch.kernels.layout import ATTR_MASK
from colmatch.kinds.settings import Budget
from colmatch.sql.parse import Parser
from colmatch.subscriptions import intake
from colmatch.subscriptions.given import ArrowTexts
from colmatch.subscriptions.texts import TextReader

NO_JIT = bool(config.DISABLE_JIT)
SOME = 100 if SMALL else 1000  # texts of a test


class Counted(NamedTuple):
    """How many texts kernels were given, and how many they left."""

    given: list[int]
    left: list[int]
    errors: list[int]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Has kernels read all that they can, and counts."""
    found, read = Counted([], [], []), TextReader.read

    def counting(self: TextReader, texts: Any, numbers: Sequence[int], *others: Any) -> Any:
        left, errors = read(self, texts, numbers, *others)
        found.given.append(len(numbers))
        found.left.extend(left)
        found.errors.extend(errors)
        return left, errors

    monkeypatch.setattr(TextReader, "is_ready", lambda self: True)
    monkeypatch.setattr(TextReader, "read", counting)
    monkeypatch.setattr(intake, "FEWEST_TEXTS", 1)
    monkeypatch.setattr(intake, "FEW_EXPRESSIONS", 0)
    return found


def one_by_one(texts: Any, schema: Any, kind: str, **options: Any) -> cm.Matcher:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "FEWEST_TEXTS", 1 << 60)
        return cm.Matcher.build(texts, schema, kind, errors="collect", max_rejected=1.0, **options)


def check_same(texts: Sequence[Any], schema: Any, events: pa.Table, kind: str = "scan", **options: Any) -> cm.Matcher:
    """Both ways to read the texts come to the same."""
    pairs = list(enumerate(texts))
    want = one_by_one(pairs, schema, kind, **options)
    found = cm.Matcher.build(pairs, schema, kind, errors="collect", max_rejected=1.0, **options)
    assert found.rejected == want.rejected
    assert found.match(events).equals(want.match(events))
    parts = ("conjunctions", "programs")  # of predicates, kernels may leave repeated ones in a program
    assert {part: found.stats()[part] for part in parts} == {part: want.stats()[part] for part in parts}
    return found


def spoilt(rng: Random, text: str) -> str:
    """The text with a change that is likely to make nonsense of it."""
    words = text.split(" ")
    i, j, at = rng.randrange(len(words)), rng.randrange(len(words)), rng.randrange(len(text) + 1)
    match rng.randrange(6):
        case 0:
            odd = [*"()'\"\\5é;`]e\u00a0", "--", "/*", "1.", "AND ", "OR ", "NOT "]
            return text[:at] + rng.choice(odd) + text[at:]
        case 1:
            return text[:at] + text[at + 1 :]
        case 2:
            words[i] = words[i].swapcase()
            return "\t".join(words)
        case 3:
            del words[i]
        case 4:
            words[i] = words[j]
        case _:
            words[i], words[j] = words[j], words[i]
    return " ".join(words)


@pytest.mark.parametrize("kind", ["scan", "kindex", "opindex", "psthash", "bitslice"])
@pytest.mark.parametrize("errors", [False, True])
def test_random_expressions(kind: str, errors: bool, counted: Counted) -> None:
    rng = Random(f"{kind} {errors}")
    schema = pa.schema(list(COLUMNS.items()))
    leaves = terms(schema)
    texts = [to_sql(an_expression(rng, leaves, rng.randrange(4))) for _ in range(SOME)]
    if errors:
        texts = [spoilt(rng, text) if rng.random() < 0.6 else text for text in texts]
    found = check_same(texts, schema, pa.Table.from_pylist(some_rows(rng, schema, 40), schema), kind)
    assert sum(counted.given) == SOME
    assert len(counted.left) < SOME * (0.75 if errors else 0.45)
    assert (len(found.rejected) > SOME // 5) == errors


@pytest.mark.parametrize("text", ["{0} < i32 + 1", "i32 + {0} > {1} + 2", "{1} < i32 * 2 AND i64 = {0}"])
def test_literals_that_are_computed_with_stand_behind_others(text: str) -> None:
    schema = pa.schema({"i32": pa.int32(), "i64": pa.int64()})
    rows = pa.table({"i32": [1, 7, None, 40], "i64": [3, 5, 7, None]}, schema)
    check_same([text.format(i % 9, i % 5) for i in range(SOME)], schema, rows, "scan")


def test_clauses_of_manuals(counted: Counted) -> None:
    texts = [clause.text for clause in TAKEN] + [text for text, *_ in REFUSED]
    joined = [f"({a}) AND NOT ({b})" for a, b in pairwise(texts)]
    check_same(texts + joined, SCHEMA, EVENTS)
    assert len(counted.left) < len(texts)


def weighed(rng: Random, texts: list[str], names: list[str]) -> pa.Table:
    """A table of texts that give weights to some names."""
    pairs = [[(name, rng.randrange(-4, 9) / 2) for name in sorted(rng.sample(names, 3))] for _ in texts]
    weights = pa.array(pairs, pa.map_(pa.string(), pa.float64()))
    return pa.table({"id": range(len(texts)), "expression": texts, "weights": weights})


@pytest.mark.parametrize("kind", ["scan", "bestar", "bitslice"])
def test_weights(kind: str, counted: Counted) -> None:
    rng = Random(kind)
    schema = pa.schema(list(COLUMNS.items()))
    leaves = terms(schema)
    texts = [to_sql(an_expression(rng, leaves, rng.randrange(4))) for _ in range(SOME)]
    events = pa.Table.from_pylist(some_rows(rng, schema, 40), schema)
    names = [name for name in COLUMNS if name.isidentifier()]
    check_same_scores(weighed(rng, texts, names), schema, events, kind)
    assert len(counted.left) < 0.6 * SOME


def test_weights_of_clauses(counted: Counted) -> None:
    rng = Random(4)
    texts = [clause.text for clause in TAKEN]
    texts += [f"({a}) AND NOT ({b}) OR {c}" for a, b, c in zip(texts, texts[1:], texts[2:], strict=False)]
    texts += [f"{rng.choice(texts)} AND {text} OR a = {n}" for n, text in enumerate(texts)]
    names = ["a", "b", "name", "price", "tags", "size(tags)", "m", "m['k']", "st.x", "flag", "day"]
    check_same_scores(weighed(rng, texts, names), SCHEMA, EVENTS, "scan")


def check_same_scores(table: pa.Table, schema: Any, events: pa.Table, kind: str) -> None:
    want, found = (
        one_by_one(table, schema, kind),
        cm.Matcher.build(table, schema, kind, errors="collect", max_rejected=1.0),
    )
    assert found.rejected == want.rejected
    assert found.match(events).equals(want.match(events))
    for score in ("dot", "max"):
        each = [matcher.match_topk(events, len(table), score) for matcher in (found, want)]
        assert each[0].drop_columns("score").equals(each[1].drop_columns("score"))
        assert each[0]["score"].to_pylist() == pytest.approx(each[1]["score"].to_pylist())


SURE = [
    "a = 1 OR NOT(b = 2)AND NOT NOT a=3",
    "a BETWEEN 1 AND 3 AND b BETWEEN - 2 AND b",
    "a NOT BETWEEN 1\n AND 2 or\tname In ( 'x' , 'it''s','\\\\' )",
    "(flag) IS TRUE AND ((a = 1 OR flag) IS NOT FALSE)",
    "NOT ((a = 1 AND NOT (b > 2 OR flag) IS FALSE) IS NOT TRUE)",
    "name LIKE 'a\\%b\\\\_%' ESCAPE '\\\\' OR name LIKE '%'",
    "name = 'a\\'b\\n\\0\\q' OR name = \"q\"",
    "a = 1 AND price > 1e3 AND d < 1.50 AND price <> 1e300 AND big = 12345678901234567890123456789012345678",
    "price = CAST('NaN' AS DOUBLE) OR price = CAST(' 5d' AS DOUBLE) OR a IN (1, 2.5, -3)",
    "a % 7 = 1 AND a % 8 = 1 OR coalesce(a, 3) > 2",
    "m['k AND l'] = 1 OR `a` = 1 OR st.x = 5 OR nums[0] = 7",
    "day = DATE '2020-05-03' OR ts > TIMESTAMP '2020-01-01 00:00:00' OR day IN (DATE '2020-05-03', DATE '2021-01-01')",
    "TRUE OR a = 1",
    "FALSE AND a = 1",
    "NULL OR NOT FALSE",
    "a = 1 OR a = 2 OR a IN (3, 4) AND a <> 3 AND a <> 4",
    "array_contains(tags, 'x') OR NOT array_contains(tags, 'y') AND arrays_overlap(nums, array(1, 2))",
    "if(a = 1 AND flag, b, a) = 1",
    "name ILIKE 'AB%' AND NOT name RLIKE '^a' OR name LIKE '%b'",
]
PHRASES = [
    "a = 1",
    "flag",
    "NOT flag",
    "name IN ('x', 'it''s')",
    "(b < 5 OR flag)",
    "(b < 5 AND flag AND (a = 1 OR b = 5))",
    "a BETWEEN 1 AND -2",
    "flag IS NOT TRUE",
    "`odd AND name` = 5",
    "m['k AND l'] = 1",
    'name = " AND "',
    "a NOT BETWEEN 1\n AND 2",
    "NOT (a = 1 OR flag)",
    "name LIKE ANY ('x', 'y')",
    "d = 5Y",
    "a = 5L",
    "contains_all(tags, 'x', 'y')",
]


def test_phrases_mean_what_the_whole_does(counted: Counted) -> None:
    rng = Random(3)
    texts = []
    for _ in range(SOME):
        pairs = [
            (rng.choice(PHRASES), rng.choice([" AND ", " OR ", "\n and  ", "\tOr "]))
            for _ in range(rng.randrange(1, 9))
        ]
        texts.append("".join(phrase + join for phrase, join in pairs) + "flag")
    odd = pa.field("odd AND name", pa.int64())
    schema, events = SCHEMA.append(odd), EVENTS.append_column(odd, pa.array([5, None] * 5, pa.int64()))
    want = one_by_one(list(enumerate(texts)), schema, "scan")
    found = cm.Matcher.build(list(enumerate(texts)), schema, "scan", errors="collect", max_rejected=1.0)
    assert found.rejected == want.rejected
    assert found.match(events).equals(want.match(events))
    assert len(counted.left) < SOME


def test_a_phrase_is_parsed_once(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, read = [], Parser.read
    monkeypatch.setattr(Parser, "read", lambda self, text: seen.append(text) or read(self, text))
    texts = [f"a{i} = 5 AND (a{j} < 7 OR v) AND a{i} BETWEEN 1 AND {j}" for i in range(20) for j in range(20)]
    schema = {f"a{i}": "int64" for i in range(20)} | {"v": "bool"}
    cm.Matcher.build(list(enumerate(texts)), schema, "scan")
    assert len(seen) <= 80
    assert counted.left == []


@pytest.mark.parametrize(
    "text", ["flag OR(flag) AND a = 1", "a = 1 AND flag OR(flag) AND b = 2", "(flag)OR(flag) AND(a = 1)"]
)
def test_an_or_without_spaces(text: str, counted: Counted) -> None:
    """``flag OR(flag)`` is a condition by itself and means something else before an AND."""
    check_same([text, f"NOT ({text})"], SCHEMA, EVENTS)


UNSURE = [
    "a = 1 -- AND a = 2\n AND flag",
    "a = 1 /* OR */ AND flag",
    "(a = 1 OR flag) IS UNKNOWN",
    "(a + 1) * 2 > 3",
    "(a) = 1",
    "a = 1 AND",
    "a = 1 AND\u00a0flag",
    "a = 1) AND (flag",
    "CASE WHEN a = 1 AND flag THEN TRUE ELSE FALSE END",
    "name = 'not closed",
    "name = '\\u00e4'",
    "name = 'a' 'b'",
    "",
    "()",
    "a = 1; b = 2",
    "a = {x}",
]


@pytest.mark.parametrize("text", SURE)
def test_sure(text: str, counted: Counted) -> None:
    check_same([text, text.replace("1", "2"), f"NOT ({text})", "a > 0"], SCHEMA, EVENTS)
    assert counted.left == []


@pytest.mark.parametrize("text", UNSURE)
def test_unsure(text: str, counted: Counted) -> None:
    check_same([text, "a > 0"], SCHEMA, EVENTS)
    assert counted.left == [0]


FAULTY = [
    "nope = 1",
    "a = 1 AND nope = 2",
    "NOT (a = 3 OR nope IN (1, 2)) AND b = 1",
    "name = 'né' OR\n nope > 1",
    "a = 'x'",
    "name = 'é''é' AND b = 1 OR a = 'y'",
    "a IN (1, 2) AND b IN ('x', 'y')",
    "flag > 3 OR a = 1",
    "a BETWEEN 1 AND 'x' OR flag",
    "a = 2 AND nope IS NULL",
    "Nope = 1 OR a = 4",
    "a IN ('it''s', 'x') OR flag",
]


def test_errors_of_phrases_are_kept(counted: Counted) -> None:
    """Where a phrase that is refused is all that is wrong with a text, nobody reads it again."""
    check_same(FAULTY, SCHEMA, EVENTS)
    assert counted.errors == list(range(len(FAULTY))) and counted.left == []


@pytest.mark.parametrize(
    "text",
    [
        "nope = 1 OR nope = 2",
        "nope = 1 OR NOPE = 1",
        "name = 'nope' OR nope = 1",
        "nope = 1 OR other = 2",
        "`nope` = 1",
        "nope.x = 1 AND a = 1",
        "nope['x'] = 1",
        "abs(nope) = 1",
        "a = 1 AND (nope = 1 OR b = 2) IS UNKNOWN",
        "nope = 1 AND a = 1 -- behind",
        "NOT " * 7 + "(" * 7 + "nope = 1" + ")" * 7,
        "((((nope + 1)))) = 1",
        "(" * 12 + "nope IN (1, 2)" + ")" * 12,
        "nope = 2 OR nope = 'x' AND a = 1",
        "nope = 1)",
        "a % 0 = 'x' AND nope = 1",
        "nope = 1 AND (a = 1 OR flag) IS TRUE",
        "(flag AND nope = 1) IS NOT FALSE",
    ],
)
def test_errors_that_are_not_kept(text: str, counted: Counted) -> None:
    texts = [*FAULTY, text, f"a = 1 AND {text}", text.replace("= 1", "= 3"), f"{text} OR a = 1"]
    check_same(texts, SCHEMA, EVENTS, options=cm.Options(max_depth=12))


def test_places_of_errors(counted: Counted) -> None:
    """A literal that is a part of a shape counts, too, where places are counted."""
    texts = [
        f"price <> {first} AND a = 5\n AND day = DATE '2020-05-{last}' AND ts > '{last}'"
        for first in ("1e300", "CAST('NaN' AS DOUBLE)", "5")
        for last in ("03", "32", "x")
    ]
    texts += ["ts > 'x' AND day = '2020-05-32'", "NOT (price > 1 OR day = '2020-05-32' OR ts > 'x')"]
    found = check_same(texts, SCHEMA, EVENTS)
    assert [one.position for one in found.rejected if one.id % 3 and one.id < 9] == [(2, 17)] * 6
    assert [one.position for one in found.rejected[-2:]] == [(1, 6), (1, 25)]
    assert counted.left == []


def test_too_deep(counted: Counted) -> None:
    texts = [f"{'NOT ' * i}{'(' * j}a IN (1, 2){')' * j} AND flag" for i in range(5) for j in range(5)]
    found = check_same(texts, SCHEMA, EVENTS, options=cm.Options(max_depth=4))
    assert len(found.rejected) == 15
    assert {one.id for one in found.rejected} <= set(counted.left)


def test_too_many_literals(counted: Counted) -> None:
    """Each is an operand of its own in a list of several kinds, which is slower by columns."""
    some = [", ".join(["1", "2.5"] * n) for n in (128, 129)]
    check_same([f"a IN ({literals})" for literals in some], SCHEMA, EVENTS)
    assert counted.left == [1]


def test_long_texts(counted: Counted) -> None:
    """More phrases and literals than there is room for at first, programs among them."""
    each = [f"a = {i} AND name <> 'x{'y' * (i % 50)}'" for i in range(300 if SMALL else 3000)]
    names = [f"m['k{i}'] = {i}" for i in range(1, 300 if SMALL else 3000)]
    wide = " OR ".join(
        f"(a > {i} OR b > {i}) AND (a < {i} OR big = 1) AND (flag OR price > {i}) AND name = '{i}'" for i in range(200)
    )
    clauses = " AND ".join(f"(a > {i} OR b > {i} OR m['{i}'] = 1)" for i in range(12))
    check_same(
        [wide, " OR ".join(each), " AND ".join(names), clauses, f"NOT ({clauses}) OR a = 1", *each, *names],
        SCHEMA,
        EVENTS,
    )
    assert counted.left == []


def test_countless_conjunctions(counted: Counted) -> None:
    """Far more than a number of 64 bits holds."""
    clauses = " AND ".join(f"(a = {i} OR b = {i} OR big = {i} OR price = {i})" for i in range(20))
    choice = "if(" * 10 + "flag" + ", flag, a = 1)" * 10
    texts = [f"({clauses} OR flag) AND ({clauses} OR a = {other})" for other in (5, 1)]
    texts += [f"({clauses} OR flag) AND ({clauses} OR flag)", f"({choice})", f"NOT ({clauses} OR flag) OR a = 1"]
    check_same(texts, SCHEMA, EVENTS)
    assert counted.left == []


def test_a_large_phrase_beside_a_long_text(counted: Counted) -> None:
    """Memory is taken for the largest text, not for so many of the largest phrase."""
    large = "if(" * 8 + "flag" + ", flag, a = 1)" * 8
    texts = [f"({large})", " OR ".join(["flag"] * 4_000)]
    tracemalloc.start()
    try:
        cm.Matcher.build(list(enumerate(texts)), SCHEMA, "scan")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20
    check_same(texts, SCHEMA, EVENTS)
    assert counted.left == []


def test_programs_begin_with_what_they_need(counted: Counted) -> None:
    """An index finds candidates by it."""
    text = "(a = 1 OR b = 2 OR NOT (flag AND big = 3)) AND (a = 2 OR b = 1) AND name = 'x' AND (a = 4 OR d > 1)"
    reader = intake.SubscriptionReader(cm.Schema(SCHEMA), cm.Options(), Attributes(), Budget(1, 1))
    taken = reader.take_in({1: text, 2: f"NOT ({text})"}, "raise")
    predicates = taken.lowered.predicates
    assert counted.left == [] and predicates.jump_first[0] == 0
    assert taken.attributes[int(predicates.pred[0, 0]) & ATTR_MASK].name == "name"


def odd_inputs() -> Iterator[tuple[str, Any]]:
    class Text(str):
        __slots__ = ()

    some = ["a = 1", "nope = 1", "name = 'b' OR a > 3"]
    yield "str subclass", [Text(text) for text in some]
    yield "a builder's expression", [*some, cm.col("a") == 1]
    yield "NULL", [*some, None]
    yield "bytes", [*some, b"a = 1"]
    yield "half a surrogate", [*some, "name = '\ud800'"]
    yield "too long", [*some, "a = 1 OR " * 200 + "a = 2"]
    for type_ in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        yield str(type_), pa.chunked_array([pa.array([*some, None], pa.string()), some]).cast(type_)


@pytest.mark.parametrize("name", [name for name, _ in odd_inputs()])
def test_odd_inputs(name: str, counted: Counted) -> None:
    given = dict(odd_inputs())[name]
    pairs = (
        list(enumerate(given)) if isinstance(given, list) else pa.table({"id": range(len(given)), "expression": given})
    )
    options = cm.Options(max_text_bytes=1000)
    want = one_by_one(pairs, SCHEMA, "scan", options=options)
    found = cm.Matcher.build(pairs, SCHEMA, "scan", errors="collect", max_rejected=1.0, options=options)
    assert found.rejected == want.rejected and found.rejected
    assert found.match(EVENTS).equals(want.match(EVENTS))


def test_the_first_bad_text_is_raised(counted: Counted) -> None:
    texts = {1: "a = 1", 2: "day = '2020-05-32'", 3: "a = 1 AND nope = 2", 4: "nope = 1"}
    with pytest.raises(cm.ExpressionError) as raised:
        cm.Matcher.build(texts, SCHEMA, "scan")
    assert (raised.value.id, raised.value.line, raised.value.column) == (3, 1, 11)
    with pytest.raises(cm.ExpressionError) as raised:  # one that is read alone before one that is not
        cm.Matcher.build({1: "a = 5", 2: "a = 5 AND", 3: "nope = 1"}, SCHEMA, "scan")
    assert raised.value.id == 2
    with pytest.raises(cm.ExpressionError) as raised:
        cm.Matcher.build({id: texts[id] for id in (1, 2)}, SCHEMA, "scan")
    assert (raised.value.id, raised.value.line, raised.value.column) == (2, 1, 7)


def test_until_kernels_are_ready(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some texts are read one by one first, and the others by kernels once these are there."""
    answers = iter([False, False, True, True, True])
    monkeypatch.setattr(TextReader, "is_ready", lambda self: next(answers))
    monkeypatch.setattr(intake, "SINGLE_PIECE", 3)
    monkeypatch.setattr(intake, "PIECE", 8)
    check_same([f"a = {i % 7} OR name = 'ab' AND b = {i}" for i in range(30)], SCHEMA, EVENTS)
    assert counted.given == [8, 8, 8]


def test_kernels_are_not_compiled_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no kernel is compiled and none can be, texts are read one by one."""
    monkeypatch.setattr("colmatch.subscriptions.texts.is_ready", lambda kernel, arguments: False)
    monkeypatch.setattr(TextReader, "read", lambda *_: pytest.fail("a kernel was called"))
    monkeypatch.setattr(intake, "FEWEST_TEXTS", 1)
    texts = {i: f"a = {i}" for i in range(50)}
    assert cm.Matcher.build(texts, SCHEMA, "scan").match_lists(EVENTS).to_pylist()[0] == [5]


def test_too_much_for_an_array(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's strings end at 2 GB."""

    def slice(self: ArrowTexts, start: int, stop: int) -> pa.StringArray:
        raise pa.lib.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    monkeypatch.setattr(ArrowTexts, "slice", slice)
    table = pa.table({"id": range(50), "expression": [f"a = {i}" for i in range(50)]})
    assert cm.Matcher.build(table, SCHEMA, "scan").match_lists(EVENTS).to_pylist()[0] == [5]
    assert counted.left == list(range(50))


def test_phrases_are_forgotten_with_forms(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "PIECE", 20)
    monkeypatch.setattr(intake, "PHRASES_KEPT", 30)
    made, init = [], TextReader.__init__
    monkeypatch.setattr(TextReader, "__init__", lambda self, compiler: made.append(1) or init(self, compiler))
    texts = [f"m['k{i}'] = {i} OR a = {i % 5}" for i in range(100)]
    check_same(texts, SCHEMA, EVENTS)
    assert counted.left == []
    assert len(made) == 3


def test_texts_with_intervals_are_read_together(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each interval is read once or twice, and not once for each text that has it."""
    seen, read = [], Parser.read
    monkeypatch.setattr(Parser, "read", lambda self, text: seen.append(text) or read(self, text))
    now = dt.datetime(2024, 3, 31, 12, tzinfo=dt.UTC)
    forms = {
        "{} DAYS": dt.timedelta(1), "'{}' DAY": dt.timedelta(1), "{} hours": dt.timedelta(hours=1), "-{} DAYS": dt.timedelta(-1),
        "'{}:30' HOUR TO MINUTE": dt.timedelta(hours=1),
    }  # fmt: skip
    rules, ages = [], []
    for i in range(1000):
        form, n = list(forms)[i % 5], i // 5 % 7 + 1
        rules.append(f"a = {i} AND ts > now() - INTERVAL {form.format(n)}")
        ages.append(n * forms[form] + dt.timedelta(minutes=30 * (":" in form)))
    schema = pa.schema({"a": pa.int64(), "ts": pa.timestamp("us", "UTC")})
    matcher = cm.Matcher.build(pa.table({"id": range(1000), "expression": rules}), schema)
    assert 35 <= len(seen) < 120
    micro = dt.timedelta(microseconds=1)
    for by in (-micro, dt.timedelta(0), micro):
        events = pa.table({"a": range(1000), "ts": [now - age + by for age in ages]}, schema=schema)
        assert matcher.count(events, now=now).tolist() == [int(by > dt.timedelta(0))] * 1000
