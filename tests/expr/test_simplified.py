"""Tests of computed values that are tests of columns, or of values that others share."""

from __future__ import annotations

import ipaddress
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from inside import attributes
from sizes import SMALL

import colmatch as cm
from colmatch.events.computed.addresses import address_texts
from colmatch.expr.simplify import Simplifier
from colmatch.given.schema import Role
from colmatch.text.addresses import address_of, address_text

PLACES = [
    "instr(s, 'ab') > 0", "instr(s, 'ab') = 0", "instr(s, 'ab') >= 1", "instr(s, 'ab') < 1", "instr(s, 'ab') <= 0", "instr(s, 'ab') <> 0",
    "0 < instr(s, 'ab')", "NOT instr(s, 'ab') > 0", "locate('b', s) > 0", "strpos(s, 'b') = 0", "left(s, 2) = 'ab'", "left(s, 2) <> 'ab'",
    "left(s, 3) = 'ab'", "substring(s, 1, 2) = 'ab'", "substr(s, 1, 2) <> 'ab'", "left(s, 2) = 'éx'", "instr(s, '%') > 0",
    "left(s, 0) = ''",
]  # fmt: skip
COMPUTED = [
    "instr(s, 'ab') = 2", "instr(s, '') > 0", "left(s, 1) = 'ab'", "substring(s, 2, 2) = 'ab'", "instr(lower(s), 'ab') > 0",
    "instr(s, 'ab') > -1", "left(s, 2) > 'aa'", "instr(s, 'ab') IS NULL", "left(s, 2) IN ('ab', 'zz')",
    "instr(s, 'ab') <=> 0", "left(s, 2) <=> 'ab'", "instr(s, 'ab') > 0.5",
]  # fmt: skip
TEXTS = ["", "ab", "abc", "xab", "a", "b", "éx", "éxyz", "AB", "%", "zz", None]


def _compare(rules: dict[int, str], events: pa.Table, missing: Any = "unknown") -> cm.Matcher:
    """Builds a matcher, and compares it with one where nothing is simplified."""
    matcher = cm.Matcher.build(rules, events.schema, missing=missing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Simplifier, "simplify", lambda simplifier, predicate: predicate)
        computing = cm.Matcher.build(rules, events.schema, missing=missing)
    assert matcher.match_lists(events).to_pylist() == computing.match_lists(events).to_pylist()
    return matcher


@pytest.mark.parametrize("missing", ["unknown", "false"])
def test_parts_of_texts_are_text_patterns(missing: str) -> None:
    rules = dict(enumerate([*PLACES, *[f"NOT ({text})" for text in PLACES], *[f"({text}) IS NULL" for text in PLACES]]))
    matcher = _compare(rules, pa.table({"s": TEXTS}), missing)
    assert Role.COMPUTED not in [attribute.role for attribute in attributes(matcher)]


def test_others_are_computed() -> None:
    for text in COMPUTED:
        matcher = _compare({1: text}, pa.table({"s": TEXTS}))
        assert Role.COMPUTED in [attribute.role for attribute in attributes(matcher)], text


def test_texts_that_kernels_read() -> None:
    words = [a + b + c for a in "abxyz" for b in "abcde" for c in "bqrst"]
    forms = (
        "instr(s, '{}') > 0 AND left(s, 1) = 'a'",
        "instr(s, '{}') = {}",
        "cidr_contains('10.{1}.0.0/16', s) OR s = '{0}'",
    )
    rules = {i: forms[i % 3].format(words[i % len(words)], i % 4) for i in range(375)}
    _compare(rules, pa.table({"s": [*TEXTS, *words[:20], "abbab", "10.1.2.3", "10.2.0.0"]}))


def test_a_wrong_type_is_told_as_written() -> None:
    for text, says in (
        ("instr(n, 'x') > 0", "instr needs a string, not bigint: cast it, as in instr"),
        ("left(n, 2) = 'ab'", "left needs a string, not bigint: cast it, as in"),
        ("cidr_contains('10.0.0.0/8', n)", "cidr_contains takes a network and a column of strings"),
        ("cidr_contains('10.0.0.0/80', s)", "'10.0.0.0/80' is not a network"),
    ):
        with pytest.raises(cm.ExpressionError, match=says):
            cm.Matcher.build({1: text}, {"n": "int64", "s": "string"})


# Networks


def _some_network(rng: Random) -> str:
    if rng.random() < 0.2:
        return f"2001:db8:{rng.randint(0, 3):x}::/{rng.choice([32, 48, 128])}"
    return f"{rng.randint(1, 3)}.{rng.randint(0, 5)}.{rng.randint(0, 255)}.0/{rng.choice([0, 8, 16, 24, 30, 32])}"


@pytest.mark.parametrize("missing", ["unknown", "false"])
def test_networks_are_ranges_of_one_value(missing: Any) -> None:
    rng = Random(2)
    networks = [_some_network(rng) for _ in range(120)]
    forms = ("cidr_contains('{0}', ip)", "NOT cidr_contains('{0}', ip)", "cidr_contains('{0}', ip) IS NULL")
    forms += ("cidr_contains('{0}', ip) OR cidr_contains('9.0.0.0/8', ip)", "cidr_contains('{0}', ip) = TRUE")
    rules = {i: rng.choice(forms[:4]).format(network) for i, network in enumerate(networks)}
    some = [network.partition("/")[0] for network in networks]
    events = pa.table({"ip": [*some, "9.1.1.1", "nonsense", "", None, "1.2.3", "01.2.3.4", "::ffff:1.2.3.4"]})
    matcher = _compare(rules, events, missing)
    assert len(attributes(matcher)) == 1
    _compare({1: forms[4].format("1.0.0.0/8")}, events, missing)


@pytest.mark.usefixtures("kept_predicates")
def test_an_explanation_shows_networks_and_addresses() -> None:
    rules = {
        1: "cidr_contains('10.0.0.0/8', ip)", 2: "NOT cidr_contains('10.0.0.0/8', ip)", 3: "cidr_contains('2001:db8::/32', ip)",
        4: "cidr_contains('10.0.0.0/8', ip) OR cidr_contains('12.0.0.0/8', ip)", 5: "cidr_contains('0.0.0.0/0', ip) IS NOT TRUE",
    }  # fmt: skip
    matcher = cm.Matcher.build(rules, {"ip": "string"})
    for id, text in rules.items():
        shown = str(matcher.explain({"ip": "10.1.2.3"}, id))
        assert text.removesuffix(" IS NOT TRUE") in shown and "['10.1.2.3']" in shown
    assert "[NULL]" in str(matcher.explain({"ip": "nowhere"}, 1))


def test_addresses_are_read_as_python_reads_them() -> None:
    rng = Random(3)
    parts = [
        "0",
        "1",
        "9",
        "10",
        "99",
        "100",
        "255",
        "256",
        "300",
        "01",
        "00",
        "",
        "1000",
        " 1",
        "1 ",
        "-1",
        "+1",
        "é",
        "1a",
    ]
    odd = [
        "::",
        "::1",
        "2001:db8::1",
        "::ffff:1.2.3.4",
        "fe80::1%eth0",
        "",
        "...",
        "....",
        "1.2.3.4.",
        "1..2.3",
        ".1.2.3",
        "1.2.3.4\n",
    ]
    odd += ["1.2.3.4/24", "x" * 40, "1.2.3.4\0", "1.2.3\0.4", "\0", "255.255.255.255", "0.0.0.0", "1.2.3.4.5"]

    def some() -> str | None:
        quad = ".".join([str(rng.randint(0, 255)) for _ in range(4)])
        nearly = ".".join([rng.choice(parts) for _ in range(rng.choice([3, 4, 4, 5]))])
        return rng.choice(
            [quad, nearly, rng.choice(odd), "".join([rng.choice("0123.") for _ in range(rng.randint(0, 16))]), None]
        )

    texts = [some() for _ in range(2_000 if SMALL else 60_000)]
    for array in (
        pa.array(texts, pa.string()),
        pa.array([None, *texts], pa.string()).slice(1),
        pa.array([], pa.string()),
    ):
        expected = [None if text is None else address_text(text) for text in array.to_pylist()]
        assert address_texts(array).to_pylist() == expected
    found = [text for text in map(address_text, filter(None, texts)) if text is not None]
    assert len(found) > len(texts) / 6 and all(address_text(str(address_of(text))) == text for text in found)
    order = sorted(found)
    assert [(address_of(text).version, int(address_of(text))) for text in order] == sorted(
        (address_of(text).version, int(address_of(text))) for text in found
    )
    assert isinstance(address_of("400000001"), ipaddress.IPv4Address)
