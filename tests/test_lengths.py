"""Rules of the house about size: functions that can be read at one go."""

import ast
from functools import cache

from test_house import modules

MOST_LINES, MOST_ARGUMENTS = 80, 12

PLAIN = "arrays in NamedTuples: each insert hands them over from Python in 0.5 us each instead of 0.15"

# Functions that may be longer or take more, and what shortening them would cost.
LONG = {
    "kernels/labels/boundaries.py:append_predicates": PLAIN,
    "kernels/labels/literals.py:_key_known": PLAIN,
    "kernels/scan/match.py:_enter_heads": PLAIN,
}


@cache
def long_functions():
    """Path and name -> lines, docstring included, and arguments, of those that have too many."""
    sizes = {
        f"{module.path.as_posix()}:{node.name}": (node.end_lineno - node.lineno + 1, arguments(node.args))
        for folder in ("colmatch", "kernels", "asv_benchmarks")
        for module in modules(folder).values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno - node.lineno >= MOST_LINES or arguments(node.args) > MOST_ARGUMENTS)
    }
    print(f"{len(sizes)} functions are long")
    return sizes


def arguments(node):
    return sum(map(len, (node.posonlyargs, node.args, node.kwonlyargs))) + bool(node.vararg) + bool(node.kwarg)


def test_functions_are_short_and_take_little():
    """At most 80 lines and 12 arguments, but those in ``LONG``."""
    long = {name: size for name, size in long_functions().items() if name not in LONG}
    assert not long, f"lines and arguments: {long}"


def test_what_may_be_long_still_is():
    assert not LONG.keys() - long_functions().keys()
