"""Evaluations of flagd: its testbed, and the files of datalogic-rs for its operations."""

from collections.abc import Callable, Iterator

import flagd
import pytest
from saying import SUITES, Case, needs_suites, run, shown_counts

needs_testbed = pytest.mark.skipif(
    not (SUITES / "data/flagd").is_dir(), reason="the folder evaluator of open-feature/flagd-testbed is not there"
)


def count(cases: Callable[[], Iterator[Case]]) -> tuple[int, int, int, int]:
    results = run(cases())
    refused = sum(results.unsaid.values())
    return results.agree + len(results.disagree) + refused, results.agree, len(results.disagree), refused


@needs_testbed
def test_testbed() -> None:
    assert count(flagd.testbed) == shown_counts("flagd.md")[0] == (216, 199, 0, 17)


@needs_suites
def test_operations_of_datalogic() -> None:
    assert count(flagd.datalogic) == shown_counts("flagd.md")[1] == (180, 170, 0, 10)
