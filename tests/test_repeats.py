"""A rule of the house: what is done in six lines or so is written once.

Statements are compared as trees, in which names count by their place of first use. So a copy with
other names is found, too.
"""

import ast
from collections import defaultdict

from test_house import modules

LEAST = 120  # parts of a tree: six or seven lines

# Functions that are alike, and what making one of them would cost.
ALIKE = {
    frozenset({"kernels/kinds/bitslice/masks.py:visit"}): "masks of 32 rows and of 64 have other instructions",
    frozenset({"kernels/kinds/psthash/buckets.py:find_bucket", "kernels/kinds/trees/tables.py:find_part"}): (
        "kinds do not import each other, and a hash table of rows has no type of its own"
    ),
}


def shape(statements):
    """Parts of a tree, in order: names by their place of first use, texts as one."""
    places, parts = {}, []

    def place(kind, name):
        parts.append((kind, places.setdefault((kind, name), len(places))))

    def walk(node):
        if isinstance(node, ast.Name):
            place("name", node.id)
        elif isinstance(node, ast.arg):
            place("name", node.arg)
        elif isinstance(node, ast.Constant):
            parts.append("text" if isinstance(node.value, str) else repr(node.value))
        elif isinstance(node, ast.AST):
            parts.append(type(node).__name__)
            for field, value in ast.iter_fields(node):
                if field == "attr":
                    place("attribute", value)
                elif field not in ("ctx", "name", "annotation", "returns", "type_comment"):
                    walk(value)
            parts.append(")")
        elif isinstance(node, list):
            for one in node:
                walk(one)
            parts.append("]")
        else:
            parts.append(repr(node))

    for statement in statements:
        walk(statement)
    return tuple(parts)


def runs(body):
    """The shortest runs of statements that are long enough, one from each statement on."""
    body = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    shapes = [shape([one]) for one in body]
    for i in range(len(body)):
        size = 0
        for j in range(i, len(body)):
            size += len(shapes[j])
            if size >= LEAST:
                yield body[i], shape(body[i : j + 1])
                break


def bodies(node, function=None):
    """Each list of statements of a function, with the function's name."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    for field, value in ast.iter_fields(node):
        if isinstance(value, list) and function and field in ("body", "orelse", "finalbody"):
            yield function, value
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from bodies(child, function)


def test_nothing_is_written_twice():
    found = defaultdict(set)
    for folder in ("colmatch", "kernels", "asv_benchmarks"):
        for module in modules(folder).values():
            for function, body in bodies(module.tree):
                for first, parts in runs(body):
                    found[parts].add((f"{module.path.as_posix()}:{function}", first.lineno))
    assert len(found) > 1_000
    twice = defaultdict(set)
    for places in found.values():
        if len(places) > 1:
            twice[frozenset(name for name, _ in places)] |= places
    wrong = [sorted(places) for names, places in twice.items() if names not in ALIKE]
    assert not wrong, wrong
    assert set(twice) == set(ALIKE), "what is alike no more is not named"


def test_a_copy_with_other_names_is_found():
    one, other, another = (
        ast.parse(text).body for text in ("a = f(b) + a.c\nb = a", "x = g(y) + x.z\ny = x", "x = g(y) + x.z\ny = y")
    )
    assert shape(one) == shape(other) != shape(another)
