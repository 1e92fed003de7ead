"""Unleash's specification of toggles."""

import unleash
from saying import needs_suites, run


@needs_suites
def test_unleash() -> None:
    results = run(unleash.cases())
    assert results.disagree == []
    assert results.unsaid == {}
    assert results.agree == 223
