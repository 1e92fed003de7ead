"""JSONLogic's cases with a Boolean result, and those with another one."""

import jsonlogic
from saying import needs_suites, run, shown_counts


@needs_suites
def test_jsonlogic() -> None:
    results = run(jsonlogic.cases())
    assert results.disagree == [
        "comparison/softEquals.json 27",  # null is equal to 0 there, and not in JavaScript
        "comparison/softNotEquals.json 26",
        "exists.json 8",  # a NULL is there, but is as good as absent here
    ]
    assert sum(results.unsaid.values()) == 7
    assert shown_counts("jsonlogic.md") == [(453, 443, 3, 7)] and results.agree == 443


@needs_suites
def test_values() -> None:
    """Numbers and texts, each compared with the result that is right."""
    results = run(jsonlogic.cases(object))
    assert [name for name in results.disagree if not name.startswith("datetime/")] == [
        "compatible.json 220",  # data that are a list
        "compatible.json 221",
        "string/string.json 27",  # trim takes spaces alone
        "val-compat.json 12",
    ]
    assert results.agree == 437
