"""``semver``: the order of Semantic Versioning 2.0.0, checked by a comparison field by field."""

from __future__ import annotations

import functools
from itertools import pairwise, product
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from inside import attributes

import colmatch as cm
from colmatch.text.versions import version_key, version_of

# From semver.org: each is lower than the next
ORDER = [
    "0.0.0-foo", "0.0.0", "0.0.1", "0.9.99", "0.10.0", "1.0.0--", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
    "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.1.0", "1.2.3-4", "1.2.3-4-foo", "1.2.3", "2.0.0", "2.1.0",
    "2.1.1", "9.0.0", "10.0.0", "999999999.0.0", "1000000000.0.0",
]  # fmt: skip
NONE = [
    "", "x", "1.", ".1", "1..2", "01.2.3", "1.02.3", "1.2.3.4", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3 ", " 1.2.3",
    "1.2.3\n", "vv1", "v", "-1", "1.2.3-é", "1.2.3-a_b", "1.٣.0", "1.2.3\0", "a.b.c", "1-2-3-+", "latest", "v 1.0",
]  # fmt: skip
SCHEMA = {"v": "string", "w": "string"}


def compare(one: str, other: str) -> int:
    """Compares two versions as semver.org says, from left to right."""

    def parts(version: str) -> tuple[list[int], list[str]]:
        core, _, prerelease = version.lstrip("vV").partition("-")
        numbers = [int(number) for number in core.split(".")]
        return numbers + [0] * (9 - len(numbers)), prerelease.split(".") if prerelease else []

    (a, before), (b, behind) = parts(one.partition("+")[0]), parts(other.partition("+")[0])
    if a != b:
        return -1 if a < b else 1
    if not before or not behind:
        return bool(behind) - bool(before) if bool(before) != bool(behind) else 0
    for x, y in zip(before, behind, strict=False):
        if x != y:
            if x.isdigit() and y.isdigit():
                return -1 if int(x) < int(y) else 1
            if x.isdigit() or y.isdigit():
                return -1 if x.isdigit() else 1
            return -1 if x.encode() < y.encode() else 1
    return (len(before) > len(behind)) - (len(before) < len(behind))


def some_version(rng: Random) -> str:
    def number() -> str:
        return str(
            rng.choice([0, 0, 1, 2, 9, 10, 11, 99, 100, 10**8, 10**9 - 1, 10**9, 10**99, rng.randrange(10**130)])
        )

    identifier = lambda: rng.choice([number(), "a", "A", "rc", "r2", "r100", "-", "--1", "0a", "alpha", "1-", "Z"])  # noqa: E731
    text = rng.choice(["", "", "v"]) + ".".join([number() for _ in range(rng.randint(1, 3))])
    if rng.random() < 0.6:
        text += "-" + ".".join([identifier() for _ in range(rng.randint(1, 3))])
    return text + rng.choice(["", "", "+b", "+1.01.-"])


def test_keys_have_the_order_of_the_specification() -> None:
    keys = [version_key(version) for version in ORDER]
    assert all(one is not None and other is not None and one < other for one, other in pairwise(keys))
    rng = Random(1)
    some = [some_version(rng) for _ in range(250)]
    for one, other in product(some[:120], some[120:]):
        first, second = version_key(one), version_key(other)
        assert first is not None and second is not None
        assert (first > second) - (first < second) == compare(one, other), (one, other)
    assert sorted(some, key=version_key) == sorted(some, key=functools.cmp_to_key(compare))
    for version in some:
        key = version_key(version)
        assert key is not None and version_key(version_of(key)) == key and compare(version_of(key), version) == 0


def test_what_is_no_version_is_null() -> None:
    assert [version_key(text) for text in NONE] == [None] * len(NONE)
    matcher = cm.Matcher.build(
        {1: "semver(v) IS NULL", 2: "NOT semver(v) < semver('2')", 3: "semver(v) < semver('x')"}, SCHEMA
    )
    assert matcher.match_lists(pa.table({"v": [*NONE, None]})).to_pylist() == [[1]] * (len(NONE) + 1)
    assert all(matcher.match_one({"v": text}) == [1] for text in (*NONE, None))


def test_a_second_argument_allows_more_numbers() -> None:
    assert version_key("1.2.3.4", 4) and version_key("1.2.3.4.5", 4) is None
    assert [version_of(str(version_key(text, 4))) for text in ("1.2.3.4", "1.2", "1.2.3.0")] == [
        "1.2.3.4",
        "1.2.0",
        "1.2.3",
    ]
    rules = {
        1: "semver(v, 4) > semver('1.2.3.4', 4)",
        2: "semver(v, 4) >= semver('1.2.3.10-rc', 4)",
        3: "semver(v, 2) = semver('1.2')",
    }
    matcher = cm.Matcher.build(rules, SCHEMA)
    assert [matcher.match_one({"v": v}) for v in ("1.2.3.4", "1.2.3.10", "1.2.3.5", "1.2", "1.2.0")] == [
        [],
        [1, 2],
        [1],
        [3],
        [],
    ]


@every_kind
def test_conditions_on_versions(kind: str) -> None:
    signs = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "=": (0,), "<>": (-1, 1)}
    rng = Random(2)
    bounds = [some_version(rng) for _ in range(8)] + ORDER[5:9]
    rules: dict[Any, str] = {(sign, b): f"semver(v) {sign} semver('{b}')" for sign in signs for b in bounds}
    ids = dict(enumerate(rules))
    low, high = "1.0.0-alpha.1", "2"
    rules = {i: rules[pair] for i, pair in ids.items()} | {
        -1: f"semver(v) BETWEEN semver('{low}') AND semver('{high}')", -2: f"semver('{high}') IN (semver(v), semver('3-a'))",
        -3: "NOT (semver('1.0') > semver(v))", -4: "semver(v) < semver(w)",
    }  # fmt: skip
    matcher = cm.Matcher.build(rules, SCHEMA, index=kind)
    versions = [*bounds, *[some_version(rng) for _ in range(20)], low, high, "2.0.0+x"]
    events = pa.table({"v": pa.array(versions).dictionary_encode(), "w": versions[::-1]})
    found = matcher.match_lists(events).to_pylist()
    for v, w, matches in zip(versions, versions[::-1], found, strict=True):
        expected = {i for i, (sign, b) in ids.items() if compare(v, b) in signs[sign]}
        expected |= {-1} if compare(v, low) >= 0 >= compare(v, high) else set()
        expected |= {-2} if compare(v, high) == 0 else set()
        expected |= {-3} if compare(v, "1.0") >= 0 else set()
        expected |= {-4} if compare(v, w) < 0 else set()
        assert set(matches) == expected == set(matcher.match_one({"v": v, "w": w})), v


def test_all_bounds_are_intervals_of_one_value() -> None:
    matcher = cm.Matcher.build({i: f"semver(v) >= semver('{i}.0')" for i in range(100)}, SCHEMA)
    assert len(attributes(matcher)) == 1
    assert [a.name for _, a in attributes(matcher).items()] == ["semver(v)"]
    assert len(attributes(cm.Matcher.build({1: "v = lower('A') OR v < concat('a', 'b')"}, SCHEMA))) == 1


def test_an_explanation_shows_versions() -> None:
    rules = {
        1: "semver(v) >= semver('1.2.0-rc.1')", 2: "semver(v) BETWEEN semver('1.0.0') AND semver('2.0.0')",
        3: "semver(v, 4) = semver('1.2.3.4', 4)", 4: "semver(v) <> semver('1.2.3')",
    }  # fmt: skip
    matcher = cm.Matcher.build(rules, SCHEMA)
    for id, text in rules.items():
        shown = str(matcher.explain({"v": "v1.2"}, id))
        assert text in shown and "['1.2.0']" in shown
        assert cm.Matcher.build({1: shown.partition("e   ")[2].partition("   ")[0].strip()}, SCHEMA)
    assert "[NULL]" in str(matcher.explain({"v": "latest"}, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("semver(v) >= '1.0'", r"semver\(v\) is a version: a version is compared with another one, as in semver"),
        ("semver(v) IN ('1', '2')", "is a version: a version is compared with another one"),
        ("semver(v) IN ('1.2.0')", r"or semver\(v\) IN \(semver\('1.2.0'\)\)"),
        ("semver(v) LIKE '1.%'", "is a version: a version is compared with another one"),
        ("semver(v) = w", "not version and string: a version is compared with another one"),
        ("semver(v, 10) = semver(w)", "a version has 1 to 9 numbers, not 10"),
        ("semver(v, 0) = semver(w)", "a version has 1 to 9 numbers, not 0"),
        ("length(semver(v)) = 3", "length needs a string, not version"),
        ("semver(v)", "a version is compared with another one"),
    ],
)
def test_versions_are_no_texts(text: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, SCHEMA)


def test_saved_files_and_inserts_have_versions(tmp_path: Any) -> None:
    matcher = cm.Matcher.build({1: "semver(v) < semver('1.10')"}, SCHEMA)
    matcher.insert(
        {2: "semver(v) < semver('1.2')", 3: cm.function("semver", cm.col("v")) == cm.function("semver", "v1.9")}
    )
    matcher.save(tmp_path / "versions")
    for each in (matcher, cm.Matcher.open(tmp_path / "versions")):
        assert each.match_one({"v": "1.9"}) == [1, 3]
        assert each.match_lists(pa.table({"v": ["1.1", "1.9.0+b"]})).to_pylist() == [[1, 2], [1, 3]]
