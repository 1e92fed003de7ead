"""What a kernel's machine code depends on is read off the imports of its module, in one form."""

from __future__ import annotations

import ast
from pathlib import Path

from test_house import dotted, imported

from colmatch.kernels import _closure

SOURCES = sorted(_closure.STATUSES)
MODULES = [name for name in SOURCES if not name.startswith("_") and not name.endswith("__init__.py")]
# Modules with an underscore make no machine code, so an edit there makes nothing stale. ``_jit``
# counts for every kernel, and ``register_twin`` is of Python alone.
TAKEN = {
    "colmatch.kernels._jit": {"brief", "device", "inlined", "kernel"},
    "colmatch.kernels._interpret": {"register_twin"},
}


def name_of(module: str) -> str:
    """Returns the path of a module that has a dotted name."""
    return module.removeprefix("colmatch.kernels").lstrip(".").replace(".", "/") + ".py"


def reached() -> dict[str, set[str]]:
    """Returns what each module imports, itself included, as Python's parser says."""
    known = dotted("kernels")
    below = {name_of(name): {name_of(one) for one in imported(module, known)} for name, module in known.items()}
    found = {}
    for name in MODULES:
        todo, seen = [name], set()
        while todo:
            one = todo.pop()
            if one in seen or one not in below or one.startswith("_"):
                continue
            seen.add(one)
            todo += below[one]
        found[name] = seen | set(_closure.ALWAYS)
    return found


def test_closures_are_what_pythons_parser_says() -> None:
    expected = reached()
    assert len(expected) > 100
    for name in MODULES:
        assert _closure.closure(name.removesuffix(".py").replace("/", ".")) == expected[name], name


def test_kernels_take_nothing_compiled_from_modules_with_an_underscore() -> None:
    for name in MODULES:
        for node in ast.walk(ast.parse(Path(_closure.ROOT, name).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2].startswith("_"):
                if node.module == "__future__":
                    continue
                assert {one.name for one in node.names} <= TAKEN.get(node.module or "", set()), (name, node.module)
