"""What text patterns look at, in numbers: results alone would not show that an automaton, a trie
or a filter is not used.
"""

from __future__ import annotations

from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from reading import STRING
from test_pattern_index import alone

import colmatch as cm
from colmatch.events.patterns import patterns_of
from colmatch.kernels.text import automaton, search, verify
from colmatch.kernels.text.search import Filters
from colmatch.text import literal_index, regex_index
from colmatch.text.filters import filters_of
from colmatch.text.pattern_index import BasePatterns, Pattern, PatternIndex


class Counted:
    """An array that counts how often it is read."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.reads = 0

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: Any) -> Any:
        self.reads += 1
        return self.array[place]


def python(function: Any) -> Any:
    return getattr(function, "py_func", function)


class Work:
    """The kernels as plain Python, and what they did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.verified = 0
        original = python(verify.verify)
        monkeypatch.setattr(verify, "width", python(verify.width))
        for name in ("descend", "state_of"):
            monkeypatch.setattr(automaton, name, python(getattr(automaton, name)))
        walks = ("find_heads", "find_tails", "find_inside", "find")
        for name in ("descend", "state_of", "step", "put", "note", "next_state", "may_have", "has_literals", *walks):
            monkeypatch.setattr(search, name, python(getattr(search, name)))

        def counted(
            offset: Any, data: Any, shift: int, programs: Any, begin: int, end: int, value: Any, pattern: Any
        ) -> Any:
            self.verified += end - begin
            return original(offset, data, shift, programs, begin, end, value, pattern)

        monkeypatch.setattr(verify, "verify", counted)

    def run(self, values: list[str], patterns: list[Pattern]) -> tuple[int, Filters]:
        """Look for patterns, but not ILIKE and RLIKE: how often a byte of the strings was read,
        and the arrays of the index, counted.
        """
        index = literal_index.LiteralIndex(filters_of(patterns), range(len(patterns)))
        filters = index.filters
        index.filters = filters._replace(
            **{name: part._replace(**{field: Counted(array) for field, array in part._asdict().items()})
               for name, part in filters._asdict().items() if isinstance(part, tuple)}
        )  # fmt: skip
        array = pa.array(values, pa.large_string())
        texts, pairs = literal_index.texts_of(array), literal_index.Pairs()
        data = Counted(texts.data)
        self.verified = 0
        index.find(texts._replace(data=data), pairs)  # type: ignore[arg-type]
        value, pattern = pairs.arrays()
        assert set(zip(value.tolist(), pattern.tolist())) == alone(array, patterns)
        return data.reads, index.filters


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


VALUES = [f"{i:03d} aab{i % 7} aaaaaab {'ab' * (i % 5)} end{i % 3}" for i in range(20)]
SIZE = sum(map(len, VALUES))
WORDS = [f"{a}{b}{i:03d}" for i in range(50) for a in ("", "a", "aa", "aaab") for b in ("", "b")]


def test_a_byte_is_read_once_however_many_substrings(work: Work) -> None:
    few: list[Pattern] = [("contains", "aab")]
    many: list[Pattern] = [
        *few,
        *(("contains", word) for word in WORDS),
        *(("contains", "a" * n + "b") for n in range(1, 30)),
    ]
    for patterns in (few, many):
        reads, filters = work.run(VALUES, patterns)
        assert reads == SIZE
        assert filters.inside.byte.reads == 0, "states near the root have rows: no child is searched for"
        assert filters.links.dense.reads == SIZE


def test_without_rows_a_state_falls_back_no_further_than_it_has_come(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Literals that nearly occur everywhere: beginning anew at each byte would read twenty times
    as many.
    """
    monkeypatch.setattr(literal_index, "DENSE_CELLS", 1)
    values = ["a" * 200 + "c", "a" * 100]
    size = sum(map(len, values)) + 3 * 20  # the first is read in four parts, which overlap by the longest literal
    reads, filters = work.run(values, [("contains", "a" * n + "b") for n in range(20)])
    assert reads == size
    assert filters.links.fail.reads <= 2 * size
    # at most one child is compared, twice, for each step forward or back
    assert filters.inside.byte.reads <= 2 * 4 * size


def test_parts_of_a_long_string_overlap_by_the_longest_literal(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read in turns, which costs three times these bytes more."""
    values = ["xyz" * 40 + "ab" * i + "c" * i for i in range(20)]
    patterns: list[Pattern] = [("contains", word) for word in ("abc", "abab", "cccccccc", "zxyzx", "bcc")]
    size = sum(map(len, values))
    monkeypatch.setattr(literal_index, "FEW", 4)
    assert work.run(values, patterns)[0] == size + 3 * len("cccccccc") * len(values)
    monkeypatch.setattr(search, "LONG", 1 << 60)
    assert work.run(values, patterns)[0] == size


def test_long_strings_are_looked_through_for_a_few_literals(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those in which one may be are walked through."""
    values = [f"{'xyz' * 40} {i} power{'shell' * (i % 2)} end" for i in range(20)]
    patterns: list[Pattern] = [("contains", word) for word in ("powershell", "cmd.exe", "z 7 p")]
    walked = sum(len(value) for i, value in enumerate(values) if i % 2 or i == 7)
    assert walked == work.run(values, patterns)[0] - len(values) - 3 * len("powershell") * 10
    monkeypatch.setattr(literal_index, "FEW", 2)
    assert work.run(values, patterns)[0] == sum(map(len, values)) + 3 * len("powershell") * 20


@pytest.mark.parametrize("op", ["endswith", "like"])
def test_ends_are_looked_at_as_far_as_a_literal_goes(work: Work, op: str) -> None:
    """From the string's end, or from its start, until no literal goes on."""
    values = [f"{'x' * 40}{i % 10}{'y' * 40}" for i in range(20)]
    for words in (["yy9"], ["yy9", *(f"{word}y" for word in WORDS)], [f"y{word}y" for word in WORDS]):
        patterns = [(op, word if op == "endswith" else f"{word[::-1]}_%") for word in words]
        reads, filters = work.run([value if op == "endswith" else value[::-1] for value in values], patterns)
        assert reads <= 4 * len(values)
        assert filters.inside.child.reads <= 2


def test_patterns_that_a_literal_decides_are_not_verified(work: Work) -> None:
    patterns = [(op, f"{word}") for op in ("contains", "endswith") for word in WORDS[::5]] + [
        ("like", f"%{word}") for word in WORDS[1::5]
    ]
    values = [*VALUES, *WORDS[:60]]
    _, filters = work.run(values, patterns)
    index = literal_index.LiteralIndex(filters_of(patterns), range(len(patterns)))
    assert int(index.programs.first[-1]) == 0
    assert (
        filters.within.pattern.reads + filters.suffix.pattern.reads
        == work.verified
        == len(alone(pa.array(values, pa.large_string()), patterns))
    )


def test_candidates_of_like_have_its_rarest_literal(work: Work) -> None:
    """Of 4,000 pairs of a string and a pattern, twenty are verified: those where the word stands
    that no other pattern has.
    """
    values = [f"https://www.example.org/{i:03d}/page" for i in range(20)]
    _, filters = work.run(values, [("like", f"%https://www.%/{i:03d}/_age%") for i in range(200)])
    assert work.verified == 20
    assert filters.within.pattern.reads + filters.prefix.pattern.reads == 20


def count_re2(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes how many strings are handed to each run of RE2."""
    sizes: list[int] = []

    class Compute:
        def __getattr__(self, name: str) -> Any:
            return getattr(pc, name)

        def match_substring_regex(self, strings: pa.Array, pattern: str) -> pa.Array:
            sizes.append(len(strings))
            return pc.match_substring_regex(strings, pattern=pattern)

    monkeypatch.setattr(regex_index, "pc", Compute())
    return sizes


@pytest.fixture
def run_by_re2(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setenv("COLMATCH_REGEX", "re2")
    return count_re2(monkeypatch)


@pytest.mark.parametrize("regex", ["id{:02d}: [a-f]+", "(?i)ID{:02d}: [A-F]+", "(id{:02d}|other): [a-f]+"])
def test_regular_expressions_are_run_where_their_literal_is(run_by_re2: list[int], regex: str) -> None:
    """Not on each of 200 strings: on the ten that have it."""
    array = pa.array([f"row {i} id{i % 20:02d}: face" for i in range(200)], pa.large_string())
    patterns = [("rlike", regex.format(i)) for i in range(30)]
    value, pattern = PatternIndex([BasePatterns(patterns, range(30), STRING)]).matches(array)
    assert set(zip(value.tolist(), pattern.tolist())) == alone(array, patterns)
    assert run_by_re2 == [10] * 20


def test_regular_expressions_without_a_literal_are_run_on_all(run_by_re2: list[int]) -> None:
    PatternIndex([BasePatterns([("rlike", "[ab]c?"), ("rlike", "x")], [0, 1], STRING)]).matches(
        pa.array(["a", "b", "c"], pa.large_string())
    )
    assert run_by_re2 == [3, 3]


@pytest.mark.parametrize("text", ["s LIKE '{}%'", "startswith(s, '{}')", "NOT s LIKE '{}%'"])
def test_prefixes_are_intervals(text: str) -> None:
    """No pattern is looked for, however many there are: all are predicates on the string itself."""
    words = [f"{a}{b}{'c' * n}" for a in "abcdefghij" for b in "abcdefghij" for n in range(3)]
    matcher = cm.Matcher.build({i: text.format(word) for i, word in enumerate(words)}, {"s": "string"}, index="scan")
    attributes = inside.attributes(matcher)
    assert (len(attributes), patterns_of(attributes).total) == (1, 0)
    assert len(inside.predicates(matcher).owner) == len(words)
    values = ["abc", "jjccd", "jjc", "", "zz", "b", "bb"]
    true = {
        (v, w)
        for v, value in enumerate(values)
        for w, word in enumerate(words)
        if value.startswith(word) != text.startswith("NOT")
    }
    found = matcher.match(pa.table({"s": values})).to_pylist()
    assert {(pair["event"], pair["subscription"]) for pair in found} == true


def test_a_string_is_looked_at_once_however_often_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    find = PatternIndex.find

    def noted(self: PatternIndex, texts: literal_index.TextSlice, *others: Any) -> None:
        seen.append(texts.end - texts.begin)
        find(self, texts, *others)

    monkeypatch.setattr(PatternIndex, "find", noted)
    matcher = cm.Matcher.build({i: f"contains(s, '{i}')" for i in range(10)}, {"s": "string"})
    assert sum(matcher.count(pa.table({"s": ["a1", "b2", "c33"] * 300}))) == 900
    assert seen == [3]
