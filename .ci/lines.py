#!/usr/bin/env python3
"""Counts lines of code in colmatch/ and kernels/: without blank lines, comments and docstrings."""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


def lines_of_code(text: str) -> int:
    """Returns how many lines of a module have code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]
            docstring = node.body[0]  # type: ignore[attr-defined]
            lines.difference_update(range(docstring.lineno, docstring.end_lineno + 1))
    return len(lines)


if __name__ == "__main__":
    count: Counter[str] = Counter()
    for top in ("colmatch", "kernels"):
        for path in Path(top).rglob("*.py"):
            if "colmatch/kernels" not in path.as_posix():  # the link to kernels/
                count[path.parent.as_posix()] += lines_of_code(path.read_text())
    for folder, lines in count.most_common():
        print(f"{lines:6} {folder}")
    print(f"{count.total():6} in all")
