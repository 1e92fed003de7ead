"""LaunchDarkly's evaluations of flags."""

import launchdarkly
import pytest
from saying import needs_suites, run


@needs_suites
def test_launchdarkly() -> None:
    pytest.importorskip("yaml")  # the cases are YAML
    results = run(launchdarkly.cases())
    assert results.disagree == []
    assert results.unsaid == {
        "a malformed rule, for which the SDK gives an error": 75,
        "a list of values of several types": 2,
    }
    assert results.agree == 1308
