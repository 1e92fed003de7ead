"""GrowthBook's cases of targeting conditions."""

import growthbook
from saying import needs_suites, run, shown_counts

# GrowthBook compares what is no semantic version, too: parts between dots and hyphens, one by one
_NO_VERSIONS = [
    "version a.b.c.d.e.f > 1.2.3",
    "version 1-2-3 == 1.2.3",
    "version 1-2-3 == 1-2.3+build99",
    "version 1-2-3 == v1.2.3",
    "version 1.2.3.4 == 1.2.3-4",
]


@needs_suites
def test_growthbook() -> None:
    results = run(growthbook.cases())
    assert results.disagree == _NO_VERSIONS
    assert [reason.partition(",")[0].partition(":")[0] for reason in results.unsaid] == [
        "a list is needed",
        "there is no operator '$regx'",
        "not a regular expression that RE2 can run in linear time",
        "there is no group 'unknowngroup_id'",
    ]
    assert shown_counts("growthbook.md") == [(235, 223, 5, 7)] and results.agree == 223
    assert sum(results.unsaid.values()) == 7
