"""The lists of tests that reach the kernels, and of what none reaches, name what is there.

Whether the tests reach all of the rest is found by running them: ``nox -s nojit``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = Path(__file__).parent
MOST_UNREACHED = 400  # lines and branches, of some 9,000


@pytest.mark.skipif(not (ROOT / "kernels").is_dir(), reason="kernels are not beside the tests")
def test_what_no_test_reaches_is_there() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "kernels").rglob("*.py")}
    listed = (LISTS / "unreached.txt").read_text().splitlines()
    assert listed == sorted(listed) and len(listed) < MOST_UNREACHED
    for line in listed:
        module, function, text = line.split(": ", 2)
        assert f"def {function}(" in texts[module] or function == "the module", line
        assert text.partition(" -> ")[0] in texts[module], line


def test_the_tests_that_reach_are_there() -> None:
    listed = (LISTS / "reaching.txt").read_text().splitlines()
    assert listed == sorted(set(listed)) and len(listed) > 100
    for line in listed:
        file, _, name = line.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), line
