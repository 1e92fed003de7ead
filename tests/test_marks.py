"""The table of marks names what is there."""

from __future__ import annotations

import marks
import pytest


@pytest.mark.parametrize("name", sorted({*marks.QUICK, *marks.NOT_QUICK, *marks.COLD, *marks.ENGINES, *marks.SLOW}))
def test_every_name_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    assert (marks.TESTS / file).exists()
    assert not test or f"\ndef {test.partition('[')[0]}(" in (marks.TESTS / file).read_text()


def test_names_are_files_tests_and_folders() -> None:
    some = ("expr", "test_a.py", "b/test_c.py::test_d")
    for name in ("expr/test_x.py", "test_a.py", "test_a.py::test_y", "b/test_c.py::test_d", "b/test_c.py::test_d[1]"):
        assert marks.is_among(name, some)
    for name in ("expression/test_x.py", "test_ab.py", "b/test_c.py", "b/test_c.py::test_dd"):
        assert not marks.is_among(name, some)


def test_no_name_is_both_slow_and_cold() -> None:
    assert not {*marks.SLOW} & {*marks.COLD}


def test_marks_are_given(request: pytest.FixtureRequest) -> None:
    """Of those that were collected with this test: slow ones only with -m ""."""
    items, chosen = request.session.items, request.config.getoption("markexpr")
    spark = [item for item in items if item.get_closest_marker("spark")]
    assert all(item.get_closest_marker("engines") for item in spark)
    assert not [item for item in items if item.get_closest_marker("quick") and item.get_closest_marker("slow")]
    for mark, some in (("quick", "expr/test_parse.py"), ("slow", "store/test_crafted.py"), ("cold", "test_warming.py")):
        mine = [item for item in items if marks.place(item.path) == some]
        assert not mine or f"not {mark}" in chosen or any(item.get_closest_marker(mark) for item in mine)
