"""Values that a function refuses within a batch: the error names the event and the columns."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events.computed import derived
from colmatch.expr.functions import COLUMNS, TABLE

SCHEMA = cm.Schema({**COLUMNS, "other": "string"})
ROWS, WRONG = 40, 17
NUMBERS = {"y": 2, "x": 1.5, "flags": 3, "lat": 1.0, "lon": 1.0, "day": dt.date(2024, 1, 1)}


def texts(wrong: bytes, good: bytes = b"ok") -> pa.Array:
    """Texts, of which one is not UTF-8."""
    return pa.array([wrong if row == WRONG else good for row in range(ROWS)], pa.binary()).view(pa.string())


def events(**columns: Any) -> pa.Table:
    made = {name: pa.array([value] * ROWS, SCHEMA.arrow.field(name).type) for name, value in NUMBERS.items()}
    made |= {field.name: texts(b"a\xffb") for field in SCHEMA.arrow if pa.types.is_string(field.type)}
    made |= columns
    arrays = [made.get(field.name, pa.nulls(ROWS, field.type)) for field in SCHEMA.arrow]
    return pa.table(arrays, schema=SCHEMA.arrow)


@pytest.mark.parametrize("ansi", [False, True])
def test_each_function_names_the_text_that_is_not_utf8(ansi: bool) -> None:
    """A function may take the bytes as they are; if it refuses them, the error has a place."""
    errors, some = dict[str, cm.EventError](), events()
    for function in TABLE.values():
        matcher = cm.Matcher.build({1: f"{function.call} {function.test}"}, SCHEMA, options=cm.Options(ansi=ansi))
        try:
            matcher.match_lists(some)
        except cm.EventError as error:
            errors[function.name] = error
    assert [str(error) for error in errors.values() if error.event not in (0, WRONG)] == []
    refused = {name: str(error) for name, error in errors.items() if error.event == WRONG}
    assert [text for text in refused.values() if not text.startswith("column")] == []
    assert {"parse_url", "unhex", "decode", "lower", "get_json_object", "parse_json", "try_cast", "concat_ws"} <= set(
        refused
    )
    assert len(refused) > 50


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "parse_url(text, 'HOST') = 'x'",
            "column 'text', event 17: parse_url.* cannot be computed: a text is not UTF-8",
        ),
        ("decode(unhex(encoded), 'utf-8') = 'x'", "column 'encoded', event 17: .*: a text is not UTF-8"),
        ("exists(tags, t -> upper(t) = 'X')", "an element of 'tags', event 17: .*: a text is not UTF-8"),
        ("contains(text, other)", "columns 'text' and 'other', event 17: .*: a text is not UTF-8"),
        (
            "name LIKE version",
            "columns 'name' and 'version', event 17: .* is no pattern of LIKE: the pattern ends",
        ),
        ("text LIKE concat(other, '%')", "columns 'text' and 'other', event 17"),
    ],
)
def test_the_error_has_the_place(text: str, said: str) -> None:
    lists = pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), texts(b"\xff"))
    some = events(name=texts(b"ok"), version=texts(b"ok\\"), tags=lists)
    matcher = cm.Matcher.build({1: text}, SCHEMA, options=cm.Options(batch_rows=16))
    with pytest.raises(cm.EventError, match=said):
        matcher.match_lists(some)


def test_a_pattern_of_literals_is_refused_when_it_is_built() -> None:
    with pytest.raises(cm.ExpressionError, match="is not a pattern of LIKE"):
        cm.Matcher.build({1: r"name LIKE concat('\\', 'a')"}, SCHEMA)
    assert cm.Matcher.build({1: "name LIKE concat('a', '%')"}, SCHEMA).match_one({"name": "ab"}) == [1]


def test_rows_that_are_refused_together_have_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_many(values: Any) -> Any:
        if len(values) > 30:
            raise pa.ArrowInvalid("too many")
        return values

    monkeypatch.setattr(derived, "_function", lambda node: refuse_many)
    with pytest.raises(cm.EventError, match=r"^reverse\(name\) cannot be computed: .*too many") as raised:
        cm.Matcher.build({1: "reverse(name) = 'ko'"}, SCHEMA).match_lists(events(name=texts(b"ok")))
    assert raised.value.event is None


def test_ilike_takes_texts_that_are_not_utf8() -> None:
    """As LIKE does: such a text has small letters of ASCII alone."""
    values = pa.array([b"A\xffB", "ÄÖ".encode(), b"xab", None], pa.binary()).view(pa.string())
    matcher = cm.Matcher.build({1: "name ILIKE '%b'", 2: "name ILIKE 'äö'", 3: "name LIKE '%B'"}, "name string")
    assert matcher.match_lists(pa.table({"name": values})).to_pylist() == [[1, 3], [2], [1], []]
