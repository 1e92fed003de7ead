"""Text patterns against Python's own, once for each distinct string."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from reading import BINARY, STRING, entries, few, label, literals, value

from colmatch.events.reader import Reader
from colmatch.given.schema import Attribute, Attributes, Role
from colmatch.text.like import LiteralPosition, read_like, with_backslash, write_like
from colmatch.text.reduce import COUNTED_MOST, reduce_pattern


def like(value: str, pattern: str) -> bool:
    regex = re.sub(r"\\\\(.)|(%)|(_)", lambda m: m[1] if m[1] else ".*" if m[2] else ".", re.escape(pattern))
    return re.fullmatch(regex, value, re.S) is not None


NAIVE = {
    "like": like,
    "ilike": lambda v, p: like(v.lower(), p.lower()),
    "rlike": lambda v, p: re.search(p, v) is not None,
    "endswith": str.endswith,
    "contains": lambda v, p: p in v,
}
pattern_values = st.lists(st.none() | st.text("aAb%_.\n\\é", max_size=6), max_size=30)


def legal(pattern: str) -> bool:
    return re.fullmatch(r"([^\\]|\\[%_\\])*", pattern) is not None


@few
@given(
    pattern_values,
    st.lists(
        st.tuples(st.sampled_from(["like", "ilike", "endswith", "contains"]), st.text("aAb%_.\n\\é", max_size=5)),
        max_size=6,
    ),
)
def test_patterns(values: list[str | None], patterns: list[tuple[str, str]]) -> None:
    chosen = sorted(
        {(op, p) for op, p in patterns if op not in ("like", "ilike") or legal(p)}
        | {("rlike", "^a|bb"), ("rlike", "é.")}
    )
    attributes = [value("x", STRING), *(Attribute(("x",), Role.VALUE, STRING, None, pattern) for pattern in chosen)]
    reader = Reader(Attributes(attributes), literals([[b"a"], *([[]] * len(chosen))]))
    for column in (
        pa.array(values, pa.string()),
        pa.array(values, pa.string()).dictionary_encode(),
        pa.array(values, pa.large_string()),
    ):
        found = entries(reader.read(pa.record_batch({"x": column})))
        for (op, operand), rows in zip(chosen, found[1:]):
            assert rows == [(i, 1) for i, v in enumerate(values) if v is not None and NAIVE[op](v, operand)], (
                op,
                operand,
            )
        assert found[0] == [(i, label(v.encode(), [b"a"])) for i, v in enumerate(values) if v is not None]


def test_patterns_in_nested_columns() -> None:
    under = ("like", "%b%")
    attributes = [
        Attribute(("m",), Role.ENTRY, STRING, "k", under),
        Attribute(("m",), Role.ENTRY, STRING, "j"),
        Attribute(("u", "n"), Role.VALUE, STRING, None, under),
        Attribute(("t",), Role.ELEMENT, STRING, None, ("endswith", "b")),
        Attribute(("gone",), Role.VALUE, STRING, None, under),
        Attribute(("y",), Role.VALUE, BINARY, None, ("contains", "b")),
    ]
    batch = pa.record_batch(
        {
            "m": pa.array(
                [[("k", "abc"), ("j", "b")], [("k", "x")], None, [("j", "b"), ("k", "b")]],
                pa.map_(pa.string(), pa.string()),
            ),
            "u": pa.StructArray.from_arrays(
                [pa.array(["b", "b", "c", "b"])], ["n"], mask=pa.array([True, False, False, False])
            ),
            "t": [["b", "cb"], [], None, ["bc", "b"]],
            "y": [b"b", None, b"\xffb", b"c"],
        }
    )
    reader = Reader(Attributes(attributes), literals([[], [b"b"], [], [], [], []]))
    for _ in range(2):
        found = entries(reader.read(batch))
        assert found == [
            [(0, 1), (3, 1)],
            [(0, 1), (3, 1)],
            [(1, 1), (3, 1)],
            [(0, 1), (0, 1), (3, 1)],
            [],
            [(0, 1), (2, 1)],
        ]


def test_many_distinct_strings() -> None:
    """More than the scratch begins with; strings that differ in the middle only."""
    values = [f"start-of-it {i % 997:05d} end-of-it" for i in range(3000)]
    attributes = [Attribute(("x",), Role.VALUE, STRING, None, ("like", f"% __{i:03d} %")) for i in range(20)]
    reader = Reader(Attributes(attributes), literals([[]] * 20))
    found = entries(reader.read(pa.record_batch({"x": values})))
    assert found == [[(i, 1) for i, v in enumerate(values) if f" 00{n:03d} " in v] for n in range(20)]


def test_a_pattern_that_is_none_is_named() -> None:
    def error(op: str, text: str) -> str:
        return reduce_pattern(op, text).error

    assert not error("rlike", "a(b|c)")
    assert "missing )" in error("rlike", "a(")
    assert not error("like", r"50\% \_ \\ %")
    assert "escape" in error("like", r"a\b")
    assert "escape" in error("ilike", "a\\")
    assert not error("contains", "(")
    assert not error("rlike", "(?s)é{2}")
    assert "at most" in error("rlike", "a{2}" * (COUNTED_MOST // 4 + 1))


tokens = st.lists(st.tuples(st.sampled_from("ab%_\\!"), st.booleans()), max_size=8)  # character, whether it is meant


def written(pattern: list[tuple[str, bool]], escape: str) -> str:
    return "".join(escape + c if (meant and c in "%_") or c == escape else c for c, meant in pattern)


@few
@given(tokens, st.text("ab%_\\!", max_size=8))
def test_like_is_read_in_one_place(chosen: list[tuple[str, bool]], text: str) -> None:
    """What a reading says, against Python's regular expressions; with another escape character
    it says no less; and a literal is written so that it is read again.
    """
    pattern = written(chosen, "\\")
    found = read_like(pattern)
    pieces = [b"".join(b"." if byte == 0xFF else re.escape(bytes([byte])) for byte in p) for p in found.pieces]
    regex = b".*" * found.open_start + b".*".join(pieces) + b".*" * found.open_end
    assert (re.fullmatch(regex, text.encode(), re.S) is not None) == like(text, pattern)
    assert read_like(with_backslash(written(chosen, "!"), "!")) == found
    assert (again := read_like(write_like(text))).literal == text.encode()
    assert again.place is LiteralPosition.WHOLE
