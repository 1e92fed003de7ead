"""What explain writes can be read again, and means what it meant."""

from __future__ import annotations

import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = {"s": "string"}


@pytest.mark.parametrize("prefix", ["ab", "50%", "a_b", "C:\\temp", "it's", "\\", "\\%", "%", "_\\_"])
@pytest.mark.usefixtures("kept_predicates")
def test_a_prefix_is_read_again_as_it_was(prefix: str) -> None:
    texts = [prefix, prefix + "x", prefix.replace("\\", ""), prefix.replace("%", "y"), prefix.replace("_", "y"), "x"]
    events = pa.table({"s": texts})
    matcher = cm.Matcher.build({1: cm.col("s").startswith(prefix)}, SCHEMA)
    shown = str(matcher.explain(events.slice(0, 1), 1)).splitlines()[-1]
    written = shown[shown.index("s LIKE") :].rsplit("   [", 1)[0]
    assert matcher.count(events).tolist() == [text.startswith(prefix) for text in texts]
    assert cm.Matcher.build({1: written}, SCHEMA).count(events).tolist() == matcher.count(events).tolist()


@pytest.mark.parametrize("text", ["s > 'a' AND s < 'b'", "NOT (s > 'a' AND s < 'b')", "s = 'c' OR s > 'a' AND s < 'b'"])
@pytest.mark.usefixtures("kept_predicates")
def test_the_space_between_two_literals_is_no_literal(text: str) -> None:
    events = pa.table({"s": ["a", "aa", "b", "c"]})
    shown = str(cm.Matcher.build({1: text}, SCHEMA).explain(events.slice(1, 1), 1)).splitlines()[1:]
    written = " OR ".join(f"({line[line.index('s ') :].rsplit('   [', 1)[0]})" for line in shown if "s " in line)
    wanted = cm.Matcher.build({1: text}, SCHEMA).count(events).tolist()
    assert cm.Matcher.build({1: written}, SCHEMA).count(events).tolist() == wanted


@pytest.mark.parametrize("some", ["1, 2", "1, 3", "1, 2, 3, 7", "5"])
@pytest.mark.usefixtures("kept_predicates")
def test_elements_that_are_neighbours_are_all_named(some: str) -> None:
    matcher = cm.Matcher.build(
        {1: f"arrays_overlap(t, array({some}))", 2: "arrays_overlap(f, array(true, false))"},
        {"t": "list<int>", "f": "list<bool>"},
    )
    told = [matcher.explain({"t": [2], "f": [True]}, id).tree.text for id in (1, 2)]
    assert told[0] == (f"arrays_overlap(t, array({some}))" if "," in some else f"array_contains(t, {some})")
    assert told[1] == "arrays_overlap(f, array(FALSE, TRUE))"
