"""A rule of the house: no run of six lines stands twice without a reason next to it."""

import ast
import re
from collections import defaultdict

from test_house import ROOT, modules

RUN = 6
THIN = re.compile(r"[\w\s.,*\[\]\"'(){}:]*,?|\w+ = [\w.]+")  # names, brackets and strings; a field taken out of a tuple
REASON = re.compile(r"# .*\bstands in .* as well\b")


def lines(module, text):
    """(Number, text) of the lines that say something: no prose, imports nor lists of names."""
    told = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            told |= set(range(node.lineno, node.end_lineno + 1))
    stripped = (
        (n, re.sub(r"\s+# .*", "", line).strip()) for n, line in enumerate(text.splitlines(), 1) if n not in told
    )
    return [(n, line) for n, line in stripped if not line.startswith("#") and not THIN.fullmatch(line)]


def test_no_run_of_lines_stands_twice_without_a_reason():
    runs, texts = defaultdict(list), {}
    for folder in ("colmatch", "kernels", "asv_benchmarks"):
        for module in modules(folder).values():
            texts[module.path] = (ROOT / module.path).read_text()
            some = lines(module, texts[module.path])
            for i in range(len(some) - RUN + 1):
                runs[tuple(line for _, line in some[i : i + RUN])].append((module.path, some[i][0]))
    assert len(runs) > 5_000

    def told(path, number):
        around = texts[path].splitlines()[max(number - 8, 0) : number + 8]
        return any(REASON.search(line) for line in around)

    twice = [places for places in runs.values() if len(places) > 1]
    assert not [places for places in twice if not all(told(*place) for place in places)]
