"""Rules of the house about functions: they can be read at one go, and say what they take."""

import ast

from test_house import modules

MOST_LINES = 80

# Functions that take any named argument, and whose fields these are.
OPEN = {
    "colmatch/kinds/plan.py:index": "settings of the kind that is named, which checks them",
    "colmatch/kinds/pstrees.py:trimmed": "arrays of an index, as of ``NamedTuple._replace``",
    "colmatch/spark/session.py:local_session": "settings of Spark",
    "colmatch/updates/versions.py:changed": "fields of ``Version``, as of ``dataclasses.replace``",
}


def functions(*folders):
    for folder in folders:
        for module in modules(folder).values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{module.path.as_posix()}:{node.name}", node


def test_functions_are_short():
    """They have at most 80 lines, docstring included and arguments left out."""
    found = [
        (name, node.end_lineno - node.body[0].lineno + 1)
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
