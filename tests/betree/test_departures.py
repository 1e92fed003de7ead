"""Expressions differ on purpose from the be-tree library where docs/be-tree.md says so."""

from __future__ import annotations

import pytest

import colmatch as cm

DOMAINS = ["now|integer|true", "segments_with_timestamp|segments|true", "frequency_caps|frequency|true"]


def count(text: str, event: str) -> int:
    matcher = cm.Matcher.build(
        {1: text}, cm.betree.Domains(DOMAINS), "scan", language="betree", constants={1: {"flight_id": 7}}
    )
    return int(matcher.count(cm.betree.events([event], DOMAINS))[0])


def test_segments_are_found_in_any_order() -> None:
    """The library ends its search at the first segment with a larger id."""
    event = '{"now": 100, "segments_with_timestamp": [[9, 99000000], [2, 99000000]]}'
    assert count("segment_within(2, 10)", event) == count("segment_within(9, 10)", event) == 1


@pytest.mark.parametrize("seconds", [2**31, 2**40, 2**62])
def test_seconds_of_segments_have_64_bits(seconds: int) -> None:
    """The library keeps the lower 32 bits, and takes 2**31 for a negative number."""
    event = '{"now": 100, "segments_with_timestamp": [[2, 1000000]]}'
    assert count(f"segment_within(2, {seconds})", event) == 1
    assert count(f"segment_before(2, {seconds})", event) == 0


def test_a_cap_without_brackets_around_its_name_is_no_json() -> None:
    """The library takes a colon there, which JSON does not have between values of a list."""
    text = 'within_frequency_cap("flight", "shop", 3, 0)'
    assert count(text, '{"now": 100, "frequency_caps": [[["flight", 7, "shop"], 3, 1]]}') == 0
    with pytest.raises(cm.EventError, match="line 1: this is not JSON"):
        count(text, '{"now": 100, "frequency_caps": [["flight": 7, "shop", 3, 1]]}')
    with pytest.raises(cm.EventError, match=r'a list of \[\["type", id, "ns"\], value, microseconds\] is needed'):
        count(text, '{"now": 100, "frequency_caps": [["flight", 7, "shop", 3, 1]]}')
