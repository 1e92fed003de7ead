"""Rules of the house about documents: the names in them are there."""

import ast
import re
from functools import cache

import pytest
from test_house import FLOORS, ROOT, everywhere, kinds

from colmatch.cli.commands import cli
from colmatch.kinds.plan import AutoSettings


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASE.md", "BENCHMARKS.md"])
def test_files_that_documents_name_are_there(name):
    text = (ROOT / name).read_text()
    paths = {path for path in re.findall(r"`([\w/.]+)`", text) if path.endswith(("/", ".py")) and "/" in path}
    homes = (ROOT, ROOT / "colmatch", ROOT / "kernels")
    assert not {path for path in paths if not any((home / path).exists() for home in homes)}


def written(text):
    """What stands in backticks, with what stands before it in its paragraph."""
    for paragraph in text.splitlines():
        for found in re.finditer(r"`([^`]+)`", paragraph):
            yield found[1], paragraph[: found.start()]


def homes(before):
    """Folders in which a path may begin: those of the house, and those that the line has named."""
    named = [name for name, _ in written(before) if name.endswith("/")]
    own = [ROOT, ROOT / "colmatch", ROOT / "kernels"]
    return [*own, *(home / name for home in own for name in named)]


def members(of):
    """Names that a class has: methods, fields, and what its methods write to ``self``."""
    for node in ast.walk(of):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def top_names(module):
    """Names that a module defines: classes, functions, constants."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@cache
def known_names():
    """All that a document may call by name: modules, folders, kinds, names, ``Class.member``."""
    names = {*kinds(), AutoSettings.kind}
    for module in everywhere():
        names |= {module.path.stem, *module.path.parent.parts, ".".join(module.path.parent.parts), *top_names(module)}
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                names |= {f"{node.name}.{member}" for member in members(node)}
    return names | {f"colmatch.{name}" for name in names if name.partition(".")[0] == "kernels"}


def is_there(name, before):
    """Whether a path, a command, a name or an argument of the house is there."""
    if name.startswith("colmatch "):
        return name.removeprefix("colmatch ") in cli.commands
    if "/" in name or name.endswith(".py"):
        return any((home / name).exists() for home in homes(before))
    if call := re.fullmatch(r"(\w+)\((\w+)=.*\)", name):
        return f"{call[1]}.{call[2]}" in known_names()
    if argument := re.fullmatch(r"(\w+)=.*", name):
        return any(known.endswith(f"Settings.{argument[1]}") for known in known_names())
    return name in known_names()


def test_architecture_names_what_is_there():
    """Each name in backticks is a path, a command, or a name in the code; of a file, one in it."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(list(written(text))) > 200
    assert not [name for name, before in written(text) if not is_there(name, before)]
    paths = {module.path.as_posix().removeprefix("colmatch/"): module for module in everywhere()}
    inside = re.findall(r"`(\w+)` of `([\w/]+\.py)`", text)
    assert inside and not [(name, path) for name, path in inside if name not in top_names(paths[path])]


def table(heading):
    """The rows of the first table below a heading of ARCHITECTURE, without its head."""
    below = (ROOT / "ARCHITECTURE.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in below.splitlines() if line.startswith("|")][2:]


def test_terms_are_few_and_defined_before_they_are_used():
    terms = [(row[0].split(", "), row[1]) for row in table("Terms")]
    assert 15 <= len(terms) <= 25
    later = [(one, what) for i, (_, what) in enumerate(terms) for ones, _ in terms[i + 1 :] for one in ones]
    assert not [(one, what) for one, what in later if re.search(rf"\b{one}s?\b", what)]


def test_floors_in_architecture_are_those_that_imports_keep_to():
    floors = [tuple(re.findall(r"`(\w+)`", row[1])) for row in table("Floors")]
    assert floors == list(FLOORS)
