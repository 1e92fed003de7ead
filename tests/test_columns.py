"""A rule of the house: how files import the numbers of columns."""

import ast

from test_house import everywhere, modules

# What ``arrays.py`` of each folder of the kernels is called where it is imported whole.
ARRAYS = {
    "bitslice": "bs",
    "opindex": "oi",
    "pbtree": "pb",
    "propagation": "pr",
    "pstbloom": "psb",
    "psthash": "psh",
    "pstree": "ps",
    "sql": "sq",
    "trees": "bt",
}


def test_many_columns_are_imported_as_one_module():
    """Column numbers stand in one line of an import, or come as ``bt.LEFT``."""
    wrong = [
        f"{module.path}, line {node.lineno}"
        for folder in ("colmatch", "kernels")
        for module in modules(folder).values()
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom)
        and node.module.endswith((".arrays", ".layout", ".structs", ".select"))
        and node.end_lineno > node.lineno
        and sum(alias.name.isupper() for alias in node.names) > 4
    ]
    assert not wrong


def test_arrays_of_a_folder_have_one_short_name():
    names = {
        (node.module.rpartition(".")[2], alias.asname)
        for module in everywhere()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == "arrays" and node.module.startswith("colmatch.kernels.")
    }
    assert len(names) > 5 and names <= set(ARRAYS.items())
