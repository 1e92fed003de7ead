"""Chooses a smallest set of tests that reach every line and branch of the kernels, and checks it.

Kernels run as plain Python under coverage, which records the lines and branches that each test
reaches. Tests are chosen until nothing new is reached, each time the one that reaches the most new
lines and branches per second.

``tests/kernels/reaching.txt`` has the chosen tests, as arguments for pytest. The second file,
``unreached.txt``, has the lines and branches that no test reaches: module, function and text of
the line, and for a branch the line that is not reached from there.

    reaching.py choose junit.xml    after a run of all tests, writes the first file
    reaching.py write               after a run of those chosen, writes the second file
    reaching.py check               after a run of those chosen, fails if the second is out of date
    reaching.py sources             prints modules of kernels with digests of what they depend on

All but the last read the data of coverage in this folder. ``nox -s reaching`` and ``nox -s nojit``
call them.
"""

from __future__ import annotations

import ast
import json
import sqlite3
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from coverage import Coverage

from colmatch.kernels import _closure, _disk, _warm

ROOT = Path(__file__).parents[1]
CHOSEN = ROOT / "tests" / "kernels" / "reaching.txt"
UNREACHED = ROOT / "tests" / "kernels" / "unreached.txt"
AGAIN = "write a test that reaches it, and run nox -s reaching"
# These run without the JIT alone, so that they say nothing of bounds.
NOT_CHOSEN = ("tests/kernels/test_text_work.py", "tests/kernels/test_bits.py::test_without_the_jit")

Arc = tuple[int, int, int]  # file, and the lines that control goes from and to


def reached_by_test(data: Path) -> dict[str, set[Arc]]:
    """Returns what each test reaches, by the name that pytest gives it."""
    query = "SELECT context, file_id, fromno, tono FROM arc JOIN context ON context.id = context_id WHERE context != ''"
    found: dict[str, set[Arc]] = defaultdict(set)
    with sqlite3.connect(data) as connection:
        for context, *arc in connection.execute(query):
            test = context.rpartition("|")[0]  # the phase stands behind the name: setup, run
            if not test.startswith(NOT_CHOSEN):
                found[test].add(tuple(arc))
    return found


def seconds_of_test(junit: Path) -> dict[str, float]:
    """Returns how long each test took, by its name in JUnit's form."""
    cases = ElementTree.parse(junit).iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}": float(case.get("time", 0)) for case in cases}


def in_junit(test: str) -> str:
    file, _, name = test.partition("::")
    return f"{file.removesuffix('.py').replace('/', '.')}.{name.replace('::', '.')}"


def chosen(reached: dict[str, set[Arc]], seconds: dict[str, float]) -> list[str]:
    """Returns tests that together reach all that is reached: a greedy cover."""
    left = set().union(*reached.values())
    new = {test: set(arcs) for test, arcs in reached.items()}
    found = []
    while left:
        # a tenth of a second is what any test costs
        best = max(sorted(new), key=lambda test: len(new[test]) / (0.1 + seconds.get(in_junit(test), 0)))
        found.append(best)
        gained = new.pop(best)
        left -= gained
        new = {test: rest for test, arcs in new.items() if (rest := arcs - gained)}
    # A test that was chosen early may have become superfluous by later ones.
    for test in list(found):
        if reached[test] <= set().union(*(reached[other] for other in found if other != test)):
            found.remove(test)
    return sorted(found)


@cache
def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


@cache
def functions_of(path: Path) -> list[ast.FunctionDef]:
    return [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.FunctionDef)]


def function_at(path: Path, line: int) -> str:
    """Returns the function that a line belongs to."""
    around = [one for one in functions_of(path) if one.lineno <= line <= (one.end_lineno or 0)]
    return around[-1].name if around else "the module"


def unreached(coverage: Coverage) -> Iterator[str]:
    """Yields the lines and branches of the kernels that the data does not have."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        coverage.json_report(outfile=str(report))
        files = json.loads(report.read_text())["files"]
    for module, said in sorted(files.items()):
        path = ROOT / module
        text = lines_of(path)
        for line in said["missing_lines"]:
            yield f"{module}: {function_at(path, line)}: {text[line - 1].strip()}"
        for line, target in said["missing_branches"]:
            if line not in said["missing_lines"]:
                end = text[target - 1].strip() if target > 0 else "its end"
                yield f"{module}: {function_at(path, line)}: {text[line - 1].strip()} -> {end}"


def main(what: str, junit: str = "") -> int:
    if what == "sources":
        folder = _disk.cache_dir()  # its name has the versions, settings and processor
        assert folder is not None
        for module in sorted(
            {task.kernel.py_func.__module__.removeprefix(f"{_disk.PACKAGE}.") for task in _warm.list_tasks()}
        ):
            digest = _closure.digest(module)
            assert digest is not None, f"{module} was edited meanwhile"
            print(module, digest, folder.name)
        return 0
    coverage = Coverage()
    coverage.load()
    missing = sorted(unreached(coverage))
    if what == "choose":
        tests = chosen(reached_by_test(Path(coverage.get_data().data_filename())), seconds_of_test(Path(junit)))
        CHOSEN.write_text("".join(f"{test}\n" for test in tests))
        print(f"{len(tests)} tests reach what all reach, but for {len(missing)} lines and branches that none does")
        return 0
    if what == "write":
        UNREACHED.write_text("".join(f"{line}\n" for line in missing))
        return 0
    known = UNREACHED.read_text().splitlines()
    for line in sorted((Counter(missing) - Counter(known)).elements()):
        print(f"no test of {CHOSEN.name} reaches {line}")
    for line in sorted((Counter(known) - Counter(missing)).elements()):
        print(f"{UNREACHED.name} is out of date: reached, or not there any more, is {line}")
    if missing != known:
        print(AGAIN)
    return missing != known


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
