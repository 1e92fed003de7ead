"""Rules of the house about functions: they can be read at one go, and say what they take."""

import ast
from functools import cache

from test_house import ROOT, modules

MOST_LINES = 77  # of code: a comment a step does not count, so nobody leaves it out

# Functions that take any named argument, and whose fields these are.
OPEN = {
    "colmatch/kinds/plan.py:index": "settings of the kind that is named, which checks them",
    "colmatch/kinds/pstrees.py:trim_tables": "arrays of an index, as of ``NamedTuple._replace``",
    "colmatch/spark/session.py:local_session": "settings of Spark",
    "colmatch/updates/versions.py:with_changes": "fields of ``Version``, as of ``dataclasses.replace``",
}


def functions(*folders):
    for folder in folders:
        for module in modules(folder).values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{module.path.as_posix()}:{node.name}", node


@cache
def comments(path):
    """Returns the numbers of the lines that are comments alone."""
    return {number for number, line in enumerate((ROOT / path).read_text().splitlines(), 1) if line.lstrip()[:1] == "#"}


def code_lines(function, path):
    """Counts the lines of a function without its arguments, docstring and comments."""
    has_docstring = ast.get_docstring(function) is not None
    begin = function.body[0].end_lineno + 1 if has_docstring else function.body[0].lineno
    return sum(line not in comments(path) for line in range(begin, function.end_lineno + 1))


def test_functions_are_short():
    found = [
        (name, code_lines(node, name.partition(":")[0]))
        for name, node in functions("colmatch", "kernels", "asv_benchmarks")
    ]
    assert len(found) > 3000
    assert not [(name, lines) for name, lines in found if lines > MOST_LINES]


def test_arguments_have_names_and_types():
    """No function of the library takes any named argument, but those in ``OPEN``."""
    found = {
        name
        for name, node in functions("colmatch")
        if node.args.kwarg is not None and not ast.unparse(node.args.kwarg.annotation or node).startswith("Unpack[")
    }
    assert found == set(OPEN)
