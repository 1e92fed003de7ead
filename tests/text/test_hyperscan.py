"""Regular expressions that Hyperscan runs: they match what RE2 says, and the set is made once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reading import BINARY, STRING, few
from test_pattern_index import alone, odd, strings
from test_pattern_work import count_re2
from test_regex_index import regexes

import colmatch as cm
from colmatch.events.patterns import patterns_of
from colmatch.given.schema import Type
from colmatch.text import hyperscan_sets
from colmatch.text.hyperscan_sets import HyperscanSet
from colmatch.text.hyperscan_syntax import HyperscanPattern, for_hyperscan, plain
from colmatch.text.literal_index import Pairs, lower_texts, texts_of
from colmatch.text.pattern_index import BasePatterns, Pattern, PatternIndex
from colmatch.text.reduce import reduce_pattern
from colmatch.text.regex_index import RegexIndex

hs = pytest.importorskip("hyperscan")

SEVERAL = ["a+b", "b.c$", "^[ab]{2,3}c", "c|d$"]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of compiled expressions, empty. Nothing is known of other sets."""
    monkeypatch.setattr(hyperscan_sets, "_recent", [])
    monkeypatch.delenv("COLMATCH_REGEX", raising=False)
    monkeypatch.setattr(hyperscan_sets, "folder", lambda: tmp_path / "regex")
    return tmp_path / "regex"


def together(values: pa.Array, chosen: list[Pattern], type: Type = STRING) -> set[tuple[int, int]]:
    index = PatternIndex([BasePatterns(chosen, range(len(chosen)), type)])
    index.regexes[0].wait()
    value, pattern = index.matches(values)
    pairs = list(zip(value.tolist(), pattern.tolist()))
    assert len(set(pairs)) == len(pairs), "a pair is there twice"
    return set(pairs)


def translated(*expressions: str) -> list[HyperscanPattern]:
    return [HyperscanPattern(expression.encode(), True) for expression in expressions]


@pytest.mark.parametrize(
    ("regex", "expression", "exact"),
    [
        ("ab[c-e]", "ab[c-e]", True),
        ("a b-c", r"a b\x2dc", True),
        ("(?P<n>a)(?<m>b)(c)", "(?:a)(?:b)(?:c)", True),
        ("a$", r"a\z", True),
        (r"(a|b$)", r"(?:a|b\z)", True),
        ("^a|^b", "^a|^b", True),
        ("(?U)a+?b*", "a+b*", True),
        ("(?is)a.", "(?is)a.", True),
        ("a(?i:b)", "a(?i:b)", True),
        ("é+", r"(?:\xc3\xa9)+", True),
        ("[é-ü]", r"[\xc3\xa9-\xc3\xbc]", True),
        (r"\x41\x{7a}", r"\x41\x7a", True),
        (r"[\x41-\x{5a}]", r"[\x41-\x5a]", True),
        ("a{2}b{3,}?c{0,4}", "a{2}b{3,}c{0,4}", True),
        (r"\s\S\d\D\w\W\b\B", r"\s\S\d\D\w\W\b\B", True),
        ("a^b", "ab", False),
        ("(a|^b)c{2,300}", "(?:a|^b)c{2,300}", True),
        ("a(b|^c){2,300}d", "a(?:b|c){2,}d", False),
        ("x{50}$y", "x{4,}y", False),
        ("a$b", "ab", False),
        ("(?m)^a$", "a", False),
        (r"\pLa", r"[\x00-\x7f]a", False),
        (r"[\pL\d]a", r"[\x00-\x7f]a", False),
        (r"\Ca", r"[\x00-\x7f]a", False),
        ("(?i)ſa", r"(?i)[\x00-\x7f]a", False),
        ("(?i)[à-ӿ]a", r"(?i)[\x00-\x7f]a", False),
        (r"\va", r"[\x00-\x7f]a", False),
        (r"[\v]a", r"[\x00-\x7f]a", False),
        (r"\x{e9}a", r"[\x00-\x7f]a", False),
    ],
)
def test_translations(regex: str, expression: str, exact: bool) -> None:
    assert not reduce_pattern("rlike", regex).error
    assert for_hyperscan(regex, True) == (expression.encode(), exact)


@pytest.mark.parametrize(
    "regex",
    ["a(?i)b", "a(?-s:b)", "a(?m:^b)", r"\Qa+\E", "^*a", "(^a|b)+c", "a{0}b", "(abcdef){1000}", "(" * 300 + ")" * 300],
)
def test_what_is_left_to_re2(regex: str) -> None:
    assert not reduce_pattern("rlike", regex).error
    assert for_hyperscan(regex, True) is None


def test_bytes_are_no_characters() -> None:
    assert for_hyperscan("é*x", False) is None
    assert for_hyperscan("e*x", False) == (b"e*x", True)


def test_plain_strings() -> None:
    array = strings([b"", b"ab\n\t\0", b"\xc3\xa9", b"\x0b", b"", b"~\x7f", b"a\x80"], pa.large_binary())
    assert plain(texts_of(array)).tolist() == [True, True, False, False, True, True, False]
    assert plain(texts_of(array)._replace(begin=2, end=6)).tolist() == [False, False, True, True]


subjects = st.text("abcksKSA\u212a\u017fé.{}]-\n\x0b\0 ", max_size=8) | st.text("abkA. \n", max_size=8)


@few
@example([r"[^\pL]a", r"\Ca", r"[^\v]a", "b"], ["\0a", "\x7fa", "\x0ba", "\0b"])
@given(st.lists(regexes, min_size=4, max_size=12), st.lists(subjects, min_size=1, max_size=8))
def test_as_one_by_one(chosen: list[str], values: list[str]) -> None:
    known = [("rlike", regex) for regex in dict.fromkeys(chosen) if not reduce_pattern("rlike", regex).error]
    array = pa.array(values, pa.large_string())
    assert together(array, known) == alone(array, known)


@few
@given(st.lists(regexes, min_size=4, max_size=8), st.lists(odd, min_size=1, max_size=8))
def test_what_is_not_utf8(chosen: list[str], values: list[bytes]) -> None:
    known = [("rlike", regex) for regex in dict.fromkeys(chosen) if not reduce_pattern("rlike", regex).error]
    for arrow, type in ((pa.large_string(), STRING), (pa.large_binary(), BINARY)):
        array = strings(values, arrow)
        assert together(array, known, type) == alone(array, known)


@pytest.fixture
def run_by_re2(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return count_re2(monkeypatch)


def test_who_runs_what(run_by_re2: list[int]) -> None:
    """Of 40 strings, 38 are plain: RE2 runs the one expression that is not translated over these,
    all five over the other two, and verifies three matches of what is not exact.
    """
    array = pa.array([*(f"x{i % 10}" for i in range(35)), "q.q", "qq", "pqq", "é", "\x0b"], pa.large_string())
    known = [("rlike", regex) for regex in ["[0-4]$", "^x[5-9]", "[pq]{3}", "[u-z](?i)[x-z]", "q(^p|.?q)$"]]
    assert together(array, known) == alone(array, known)
    assert sorted(run_by_re2) == [2, 2, 2, 2, 2, 3, 38]


@pytest.mark.parametrize("size", [4096, 3])
def test_refused_expressions(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Hyperscan does not say which it refuses; these can never match."""
    monkeypatch.setattr(hyperscan_sets, "SIZE", size)
    chosen = ["a", r"^\b$", "b+", r"^\b-", "c", r"-\b$", "ab"]
    array = pa.array(["a", "ab", "-", "", "cb"], pa.large_string())
    known = [("rlike", regex) for regex in chosen]
    assert together(array, known) == alone(array, known)
    made = HyperscanSet([found for regex in chosen if (found := for_hyperscan(regex, True))])
    assert made.wait() and made.taken is not None
    assert made.taken.tolist() == [True, False, True, False, True, False, True]
    again = HyperscanSet(made.expressions)  # from the file
    assert again._thread is None and again.taken is not None
    assert again.taken.tolist() == made.taken.tolist()
    for each in (made, again):
        value, expression = each.scan([b"ab", b"", b"cbb"])
        assert set(zip(value.tolist(), expression.tolist())) == {(0, 0), (0, 2), (0, 6), (2, 2), (2, 4)}


def test_all_are_refused() -> None:
    known = [("rlike", rf"^\b{character}") for character in "-+/;"]
    array = pa.array(["-", "a"], pa.large_string())
    assert together(array, known) == alone(array, known)


def test_until_it_is_compiled_re2_does_it(monkeypatch: pytest.MonkeyPatch, run_by_re2: list[int]) -> None:
    may_compile = threading.Event()
    compiled = hyperscan_sets._compile
    monkeypatch.setattr(hyperscan_sets, "_compile", lambda chosen: may_compile.wait() and compiled(chosen))
    known = [("rlike", regex) for regex in SEVERAL]
    array = pa.array(["aab", "bxc", "abc", "d"], pa.large_string())
    index = PatternIndex([BasePatterns(known, range(4), STRING)])
    first = [set(zip(*map(np.ndarray.tolist, index.matches(array))))]
    assert len(run_by_re2) == 4
    may_compile.set()
    index.regexes[0].wait()
    assert [set(zip(*map(np.ndarray.tolist, index.matches(array))))] == first == [alone(array, known)]
    assert len(run_by_re2) == 4


def test_a_failure_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(hyperscan_sets, "_compile", fail)
    array = pa.array(["aab", "bxc", "abc", "d"], pa.large_string())
    known = [("rlike", regex) for regex in SEVERAL]
    index = PatternIndex([BasePatterns(known, range(4), STRING)])
    for _ in range(3):
        index.regexes[0].wait()
        assert set(zip(*map(np.ndarray.tolist, index.matches(array)))) == alone(array, known)
    (record,) = [record for record in caplog.records if "Hyperscan" in record.getMessage()]
    assert "no room" in record.getMessage() and "RE2" in record.getMessage()


def test_another_process_finds_what_is_compiled(folder: Path) -> None:
    assert HyperscanSet(translated(*SEVERAL)).wait()
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o022 == 0
    found = HyperscanSet(translated(*SEVERAL))
    assert found._thread is None and found.scan([b"aab"])[1].tolist() == [0]


@pytest.mark.parametrize("error", [ImportError("libhs.so: no such file"), ModuleNotFoundError("hyperscan")])
def test_a_package_that_cannot_be_imported(
    error: ImportError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> Any:
        raise error

    hyperscan_sets._is_installed.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(hyperscan_sets, "_hyperscan", fail)
        array = pa.array(["aab", "bxc", "abc", "d"], pa.large_string())
        known = [("rlike", regex) for regex in SEVERAL]
        assert together(array, known) == together(array, known) == alone(array, known)
    hyperscan_sets._is_installed.cache_clear()
    said = [record.getMessage() for record in caplog.records]
    assert [text.rpartition(": ")[2] for text in said] == ["no such file"] * (
        not isinstance(error, ModuleNotFoundError)
    )


SPOIL: dict[str, Callable[[bytes], bytes]] = {
    "end record": lambda data: data[:-96] + bytes([data[-96] ^ 1]) + data[-95:],
    "cut": lambda data: data[:-40],
    "empty": lambda data: b"",
    "changed": lambda data: data[:1000] + b"?" + data[1001:],
    "other": lambda data: data.replace(b"taken", b"token"),
}


@pytest.mark.parametrize("spoil", SPOIL)
def test_spoilt_files_are_made_again(spoil: str, folder: Path) -> None:
    assert HyperscanSet(translated(*SEVERAL)).wait()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(SPOIL[spoil](whole))
    again = HyperscanSet(translated(*SEVERAL))
    assert again._thread and again.wait()
    assert again.scan([b"aab"])[1].tolist() == [0]
    assert HyperscanSet(translated(*SEVERAL))._thread is None


def test_files_of_other_sets(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(hyperscan_sets, "FILES_KEPT", 2)
    for i in range(4):
        made = HyperscanSet(translated(f"a{i}", "b"))
        assert made._thread and made.wait()
    assert len(list(folder.iterdir())) == 2
    other = HyperscanSet([HyperscanPattern(b"a3", False), HyperscanPattern(b"b", True)])
    assert other._thread and other.wait()


def test_the_file_of_another_set_is_not_used(folder: Path) -> None:
    """Its bytes are whole, but its matches are those of other expressions."""
    assert HyperscanSet(translated("xyz", "b")).wait()
    (other,) = folder.iterdir()
    made = HyperscanSet(translated(*SEVERAL))
    assert made.wait()
    (file,) = set(folder.iterdir()) - {other}
    file.write_bytes(other.read_bytes())
    again = HyperscanSet(translated(*SEVERAL))
    assert again._thread and again.wait()
    assert again.scan([b"aab"])[1].tolist() == [0]


def test_a_folder_that_others_can_write_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    made = HyperscanSet(translated(*SEVERAL))
    assert made.wait() and not list(folder.iterdir())


@pytest.mark.parametrize(
    "more",
    [["^.$", "^..$"], ["x\\0?y"], [r"\pL1\pL", r"(a|^b)$c", r"a\b", "(?m)^a$", "(?m)b$"]],
    ids=["characters", "left to RE2", "not exact"],
)
def test_single_events_find_what_batches_find(more: list[str]) -> None:
    """In texts that Hyperscan may read, and in others; matches that are not exact are checked."""
    rules = {i: cm.col("s").rlike(regex) for i, regex in enumerate([*SEVERAL, *more])}
    matcher = cm.Matcher.build(rules, {"s": "string"})
    texts = ["é", "ab", "xy", "x\0y", "a1a", "a", "a\vb", "b\na", "é1é", "bcd", "", "éa"]
    wanted = matcher.match_lists(pa.table({"s": texts})).to_pylist()
    assert [matcher.match_one({"s": text}) for text in texts] == wanted
    patterns_of(inside.attributes(matcher)).wait()
    assert matcher.match_lists(pa.table({"s": texts})).to_pylist() == wanted
    assert [matcher.match_one({"s": text}) for text in texts] == wanted


def test_inserts_use_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """An insert of one expression compiles nothing; a quarter more do."""
    rules = {i: f"s RLIKE 'x{i}[ab]$'" for i in range(40)}
    matcher = cm.Matcher.build(rules, {"s": "string"})
    events = pa.table({"s": [f"x{i}b" for i in range(60)]})

    def matched() -> list[int]:
        patterns_of(inside.attributes(matcher)).wait()
        return sorted(pair["subscription"] for pair in matcher.match(events).to_pylist())

    sizes: list[int] = []
    compiled = hyperscan_sets._compile
    monkeypatch.setattr(hyperscan_sets, "_compile", lambda chosen: sizes.append(len(chosen)) or compiled(chosen))
    assert matched() == list(range(40))
    for i in range(40, 52):
        matcher.insert({i: f"s RLIKE 'x{i}[ab]$'"})
        assert matched() == list(range(i + 1))
    matcher.delete([3])
    assert matched() == [i for i in range(52) if i != 3]
    assert sizes == [40]
    matcher.insert({i: f"s RLIKE 'x{i}[ab]$'" for i in range(52, 54)})
    assert matched() == [i for i in range(54) if i != 3]
    assert sizes == [40, 54]


def test_a_near_set_is_used_until_the_next_is_compiled(monkeypatch: pytest.MonkeyPatch, run_by_re2: list[int]) -> None:
    known = [("rlike", f"x{i}[ab]$") for i in range(30)]
    array = pa.array([f"x{i}b" for i in range(30)], pa.large_string())
    assert together(array, known[:20]) == alone(array, known[:20])
    may_compile = threading.Event()
    compiled = hyperscan_sets._compile
    monkeypatch.setattr(hyperscan_sets, "_compile", lambda chosen: may_compile.wait() and compiled(chosen))
    index = PatternIndex([BasePatterns(known, range(30), STRING)])
    for expected in ([1] * 10, []):  # ten of them have a literal that one string has
        run_by_re2.clear()
        assert set(zip(*map(np.ndarray.tolist, index.matches(array)))) == alone(array, known)
        assert run_by_re2 == expected
        may_compile.set()
        index.regexes[0].wait()


def test_strings_in_the_middle_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [("rlike", regex) for regex in [*SEVERAL, r"\pLb", "(?-s:b)c"]]
    array = pa.array(["aab", "bxc", "é", "abc", "d", "\x0bc", "aab"], pa.large_string())
    index = PatternIndex([BasePatterns(known, range(6), STRING)])
    index.regexes[0].wait()
    pairs = Pairs()
    texts = texts_of(array, 100)
    index.find(texts._replace(begin=1, end=6), lower_texts(texts).part(1, 6), pairs)
    expected = {(value + 100, pattern) for value, pattern in alone(array, known) if 1 <= value < 6}
    assert set(zip(*map(np.ndarray.tolist, pairs.arrays()))) == expected


def test_threads_scan_at_once() -> None:
    known = [("rlike", regex) for regex in SEVERAL]
    index = PatternIndex([BasePatterns(known, range(4), STRING)])
    index.regexes[0].wait()
    array = pa.array(["aab", "bxc", "abc", "d", "é"] * 400, pa.large_string())
    expected = alone(array, known)
    found: list[set[tuple[int, int]]] = []

    def run() -> None:
        found.extend(set(zip(*map(np.ndarray.tolist, index.matches(array)))) for _ in range(5))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_of_a_process_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is not in the child, which starts one of its own."""
    may_compile = threading.Event()
    compiled, parent = hyperscan_sets._compile, os.getpid()
    monkeypatch.setattr(
        hyperscan_sets,
        "_compile",
        lambda chosen: (os.getpid() != parent or may_compile.wait()) and compiled(chosen),
    )
    made = HyperscanSet(translated(*SEVERAL))
    child = os.fork()
    if not child:
        os._exit(0 if made.wait() and made.scan([b"aab"])[1].tolist() == [0] else 1)
    assert os.waitpid(child, 0)[1] == 0
    may_compile.set()
    assert made.wait()


def test_a_wrong_setting_is_no_fault_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.cm"
    cm.Matcher.build([(1, "s RLIKE '^a.*b$'")], {"s": "string"}, "scan").save(path)
    monkeypatch.setenv("COLMATCH_REGEX", "pcre")
    with pytest.raises(cm.OptionError, match=r"^COLMATCH_REGEX=pcre: "):
        cm.Matcher.open(path)


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLMATCH_REGEX", "re2")
    known = [("rlike", regex) for regex in SEVERAL]
    assert not PatternIndex([BasePatterns(known, range(4), STRING)]).regexes[0]._sets
    monkeypatch.setenv("COLMATCH_REGEX", "pcre")
    with pytest.raises(cm.OptionError, match="COLMATCH_REGEX=pcre: .*re2"):
        PatternIndex([BasePatterns(known, range(4), STRING)])
    monkeypatch.delenv("COLMATCH_REGEX")
    used = PatternIndex([BasePatterns(known, range(4), STRING)]).regexes[0]
    assert used._sets
    used.wait()


@few
@given(st.lists(regexes, min_size=1, max_size=8), st.lists(subjects, min_size=1, max_size=4), st.booleans())
def test_one_string_as_alone(chosen: list[str], values: list[str], of_text: bool) -> None:
    """Strings of single events, which become arrays only where RE2 decides."""
    chosen = [regex for regex in chosen if not reduce_pattern("rlike", regex).error]
    type = pa.large_string() if of_text else pa.large_binary()
    index = RegexIndex(chosen, range(10, 10 + len(chosen)), of_text, "s")
    for wait in (False, True):
        if wait:
            index.wait()
        for value in map(str.encode, values):
            array = strings([value], type)
            matches = [10 + i for i, regex in enumerate(chosen) if pc.match_substring_regex(array, regex)[0].as_py()]
            assert sorted(index.find_in_one(value)) == matches


def test_one_expression_is_enough_for_one_string_but_not_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, index = count_re2(monkeypatch), PatternIndex([BasePatterns([("rlike", "^[ab]{2,3}c")], [7], STRING)])
    index.regexes[0].wait()
    assert index.regexes[0].find_in_one(b"abc") == [7] and index.regexes[0].find_in_one(b"cba") == []
    assert not runs
    assert [part.tolist() for part in index.matches(pa.array(["abc", "cba"], pa.large_string()))] == [[0], [7]]
    assert runs == [2]


def test_the_first_string_has_a_few_expressions_compiled() -> None:
    index = RegexIndex(["^[ab]{2,3}c"], [7], True, "s")
    assert not index._sets
    assert index.find_in_one(b"abc") == [7] and len(index._sets) == 1
    assert not RegexIndex(SEVERAL, range(4), True, "s", compiles=False)._sets


def test_one_string_goes_through_all_databases_of_a_set_that_is_nearly_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperscan_sets, "SIZE", 2)
    known = [f"^{letter}+$" for letter in "abcdefgh"]
    other = RegexIndex(known, range(8), True, "s")
    other.wait()
    assert len(other._sets[0]._databases) == 4
    index = RegexIndex([*known[:6], "^[g]{2}$", "^h+$"], range(10, 18), True, "s")
    assert index._sets == other._sets, "one of eight has changed"
    for place, text in enumerate([*(letter * 2 for letter in "abcdefgh"), "gg"]):
        assert index.find_in_one(text.encode()) == [10 + min(place, 7) if text != "gg" else 16]


def test_a_few_expressions_have_a_set_of_their_own() -> None:
    first = RegexIndex(["^[ab]+$", "a?[0]+x"], [0, 1], True, "s")
    first.wait()
    second = RegexIndex(["^[ab]+$", "a?[1]+x"], [0, 1], True, "s")
    second.wait()
    assert second._sets[0] is not first._sets[0] and second.find_in_one(b"1x") == [1]


def test_an_explanation_compiles_nothing() -> None:
    rules = {i: " OR ".join(f"s RLIKE 'w[{j}]+{i}x*y{j}'" for j in range(5)) for i in range(4)}
    matcher = cm.Matcher.build(rules, {"s": "string"})
    patterns_of(inside.attributes(matcher)).wait()
    known = list(hyperscan_sets._recent)
    assert [matcher.explain({"s": "w12xy1"}, i).matched for i in range(4)] == [False, False, True, False]
    assert hyperscan_sets._recent == known


def test_without_hyperscan_one_string_is_given_to_re2_only_with_the_literal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLMATCH_REGEX", "re2")
    runs = count_re2(monkeypatch)
    index = RegexIndex(["id[0-9]+x", "(?i)KEY=[a-z]+"], [0, 1], True, "s")
    assert index.find_in_one(b"nothing") == [] and not runs
    assert index.find_in_one(b"id7x") == [0] and index.find_in_one(b"KEY=A") == [1]
    assert runs == [1, 1]
