"""What is published: versions that agree, a complete sdist, and files for others' tools."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import colmatch as cm
from colmatch.kernels import _code

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_caps_are_where_a_newer_version_would_break():
    """Any later numba (tests/kernels/test_unknown_numba.py) and pandas are taken."""
    project = PROJECT["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    assert {re.split(r"\W", one)[0] for one in asked if "<" in one} == {"sqlglot"}
    assert f"numba>={_code.KNOWN}" in asked


def test_what_development_needs_is_no_extra():
    groups = PROJECT["dependency-groups"]
    assert {"dev", "test"} <= set(groups) and "dev" not in PROJECT["project"]["optional-dependencies"]
    second = re.findall(r"^python3 -m venv .*", (ROOT / "README.md").read_text(), re.MULTILINE)[1]
    # pip knows groups since 25.1, and Python 3.11 to 3.13 may bring an older one.
    assert "pip install -q -U pip &&" in second and "--group test" in second


def test_the_citation_has_the_version_and_each_kind():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {cm.__version__}\n" in text
    named = {kind for note in re.findall(r'notes: "[^:]*: (.*)"|notes: ', text) for kind in note.split(", ")}
    assert named == set(cm.index_kinds()) - {"scan", "bitslice"}  # these two have no paper


def test_pre_commit_has_the_ruff_of_the_group():
    asked = next(one for one in PROJECT["dependency-groups"]["dev"] if isinstance(one, str) and one.startswith("ruff"))
    minor = re.search(r">=(\d+\.\d+)", asked)[1]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.search(rf"ruff-pre-commit\n    rev: v{re.escape(minor)}\.", hooks)


def test_ci_takes_its_commands_from_nox():
    sessions = set(re.findall(r"@nox\.session.*\ndef (\w+)\(", (ROOT / "noxfile.py").read_text()))
    assert sessions == {
        "lint", "types", "quick", "tests", "all", "engines", "cold", "bounds", "nojit", "reaching", "docs", "benchmarks", "sdist",
        "wheel",
    }  # fmt: skip
    scripts = (ROOT / ".ci" / "run").read_text() + (ROOT / ".ci" / "nightly").read_text()
    used = set(re.findall(r"\b(?:check|kernel_tests) (\w+)", scripts))
    assert used and used <= sessions
    workflows = "".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    assert set(re.findall(r"nox (?:--force-python python )?-s (\w+)", workflows)) <= sessions
    listed = re.search(r"session: \[(.*)\]", workflows)[1].split(", ")
    assert set(listed) <= sessions


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
@pytest.mark.skipif(find_spec("build") is None, reason="build is not installed")
def test_the_sdist_has_every_tracked_file(tmp_path):
    """But for the link to the kernels, which are in it once."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = {name for name in tracked.split("\0") if name and (ROOT / name).is_file()}
    clean = tmp_path / "clean"  # setuptools also packs what an old egg-info names
    for name in wanted:
        (clean / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clean / name)
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(tmp_path), str(clean)]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as file:
        packed = {name.partition("/")[2] for name in file.getnames() if file.getmember(name).isfile()}
    assert wanted - packed == set()
    more = {name for name in packed - wanted if ".egg-info/" not in name}
    assert more <= {"PKG-INFO", "setup.cfg"}, more
