"""A rule of the house: how files name the numbers of columns."""

import ast

from test_house import everywhere

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
