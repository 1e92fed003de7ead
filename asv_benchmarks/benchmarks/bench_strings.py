"""Rules of text patterns: user agents, beside Hyperscan alone, and detection rules.

User agents: 1,270 regular expressions over distinct strings, of ``workload``. Hyperscan
alone gets the same expressions and strings, and calls Python for each match, as it does within
colmatch; both find the same matches. ``RE2`` is colmatch with ``COLMATCH_REGEX=re2``. Detections:
2,400 rules of LIKE in any case, over events of which most columns are NULL.

With public data instead, a folder of ``user_agents.json.gz`` and ``sigma_*``:

    python -m benchmarks.bench_strings [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from itertools import compress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from workload import TextWorkload

import colmatch as cm
from benchmarks import public
from benchmarks.measure import medians, one_thread, seconds
from benchmarks.public import Given
from colmatch.events.patterns import patterns_of
from colmatch.kernels._jit import forbid_interpreting
from colmatch.text import hyperscan_sets
from colmatch.text.hyperscan_sets import HyperscanSet

ROWS = 12_000
REPEAT = 7
OURS, RE2, ALONE, COMPILE, COMPILE_ALONE = "colmatch", "RE2", "Hyperscan alone", "compile", "compile, alone"
MATCH, BUILD = "match", "build"


def drawn(name: str) -> Given:
    workload = TextWorkload(name)
    return Given(workload.texts(), workload.schema(), workload.events(ROWS))


def _built(given: Given) -> cm.Matcher:
    options = cm.Options(threads=1, missing_columns="null")
    return cm.Matcher.build(given.rules, given.schema, options=options)


def _patterns(matcher: cm.Matcher) -> Any:
    return patterns_of(matcher._set.now.attributes)


class Alone:
    """Hyperscan and nothing else, with the expressions as they were written."""

    def __init__(self, regexes: list[str]) -> None:
        import hyperscan as hs

        flags = [hs.HS_FLAG_SINGLEMATCH | hs.HS_FLAG_ALLOWEMPTY] * len(regexes)
        self.database = hs.Database(mode=hs.HS_MODE_BLOCK)
        written = [regex.encode() for regex in regexes]
        self.database.compile(expressions=written, ids=list(range(len(written))), elements=len(written), flags=flags)
        self.found: list[int] = []

    def _note(self, number: int, begin: int, end: int, flags: int, context: Any) -> None:
        self.found.append(number)

    def match(self, strings: list[bytes]) -> int:
        self.found.clear()
        for string in strings:
            self.database.scan(string, self._note)
        return len(self.found)


def _regexes(matcher: cm.Matcher) -> tuple[HyperscanSet, list[str]]:
    """The set that Hyperscan runs, and the expressions in it that need nobody else."""
    (regexes,) = _patterns(matcher).index.regexes
    regexes.wait()
    (used,) = regexes._sets
    assert used.taken is not None
    place = regexes._place
    return used, [regexes._regexes[place[one]] for one in compress(used.expressions, used.taken) if one.exact]


def agents(given: Given) -> dict[str, float]:
    """Microseconds a string of each way, and seconds of compiling, both in turns."""
    os.environ.pop("COLMATCH_REGEX", None)
    _, regexes = _regexes(_built(given))
    alone = Alone(regexes)
    rules = pa.table({"id": pa.array(range(len(regexes))), "expression": list(map(public.condition, regexes))})
    strings = [string for string in given.events["agent"].to_pylist() if string.isascii()]
    same = Given(rules, given.schema, pa.table({"agent": strings}))
    raw = [string.encode() for string in strings]
    matcher = _built(same)
    used, _ = _regexes(matcher)
    matches = {"matches": sum(matcher.count(same.events)), "matches, alone": alone.match(raw)}
    taken = medians({OURS: lambda: matcher.count(same.events), ALONE: lambda: alone.match(raw)}, REPEAT)
    os.environ["COLMATCH_REGEX"] = "re2"
    slow, few = _built(same), same.events.slice(0, 1500)
    slow.count(few)
    taken[RE2] = seconds(lambda: slow.count(few)) * len(strings) / few.num_rows
    del os.environ["COLMATCH_REGEX"]
    with tempfile.TemporaryDirectory() as folder, patch.object(hyperscan_sets, "folder", lambda: Path(folder) / "x"):
        ways = {COMPILE: lambda: _compiled(used, folder), COMPILE_ALONE: lambda: Alone(regexes)}
        compiling = medians(ways, 3)
    return {name: 1e6 * value / len(strings) for name, value in taken.items()} | compiling | matches


def _compiled(used: HyperscanSet, folder: str) -> None:
    HyperscanSet(used.expressions).wait()
    shutil.rmtree(Path(folder) / "x")  # or the next one would find it there


def detections(given: Given) -> dict[str, float]:
    """Microseconds an event, and seconds of a second build in one process."""
    matcher = _built(given)
    matcher.count(given.events)
    _patterns(matcher).wait()
    taken = medians({MATCH: lambda: matcher.count(given.events), BUILD: lambda: _built(given)}, REPEAT)
    return {MATCH: 1e6 * taken[MATCH] / given.events.num_rows, BUILD: taken[BUILD]}


class Strings:
    """User agents and detections, drawn."""

    timeout = 600

    def setup_cache(self) -> dict[str, float]:
        one_thread()
        with forbid_interpreting():
            return agents(drawn("user-agents")) | detections(drawn("detections"))

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def track_agents_us(self, taken: dict[str, float]) -> float:
        return taken[OURS]

    def track_agents_ratio_to_hyperscan_alone(self, taken: dict[str, float]) -> float:
        return taken[OURS] / taken[ALONE]

    def track_agents_ratio_to_re2(self, taken: dict[str, float]) -> float:
        return taken[OURS] / taken[RE2]

    def track_compiling_ratio_to_hyperscan_alone(self, taken: dict[str, float]) -> float:
        return taken[COMPILE] / taken[COMPILE_ALONE]

    def track_detections_us(self, taken: dict[str, float]) -> float:
        return taken[MATCH]

    def track_detections_build(self, taken: dict[str, float]) -> float:
        return taken[BUILD]

    track_agents_us.unit = track_detections_us.unit = "us"  # type: ignore[attr-defined]
    track_detections_build.unit = "seconds"  # type: ignore[attr-defined]


def main(folders: list[str]) -> None:
    one_thread()
    folder = Path(folders[0]) if folders else None
    with forbid_interpreting():
        for name, value in agents(public.agents(folder) if folder else drawn("user-agents")).items():
            print(f"user agents, {name:18s}{value:12.2f}")
        for name, value in detections(public.detections(folder) if folder else drawn("detections")).items():
            print(f"detections, {name:19s}{value:12.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
