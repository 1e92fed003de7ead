"""Documents: where their links lead, and what the guide must name."""

import dataclasses
import os
import re
import subprocess
import sys

import pytest
from guide import DOCUMENTS, GUIDE, README, ROOT, anchors_of, links_of

import colmatch as cm
from colmatch.cli.commands import cli
from colmatch.matching.request import Among


def named(page):
    return page.relative_to(ROOT).as_posix()


def test_there_is_a_guide():
    assert len(GUIDE) > 15 and README in DOCUMENTS


@pytest.mark.parametrize("page", DOCUMENTS, ids=named)
def test_links_lead_to_files_and_headings(page):
    wrong = []
    for line, target in links_of(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (page.parent / file).resolve() if file else page
        good = to.is_file() and (not anchor or anchor in anchors_of(to.read_text()))
        if not good:
            wrong.append(f"{named(page)}:{line}: {target}")
    assert not wrong


def test_each_page_is_in_the_index_and_leads_to_others():
    index = ROOT / "docs" / "guide.md"
    listed = {(index.parent / target).resolve() for _, target in links_of(index.read_text())}
    assert set(GUIDE) - {index} <= listed
    assert not [named(page) for page in GUIDE if not links_of(page.read_text())]


def test_pages_and_headings_that_code_names_are_there():
    """An error or a docstring names a page as docs/files.md, and a heading in quotes behind it."""
    files = [
        path for folder in ("colmatch", "kernels", "tests", "asv_benchmarks") for path in (ROOT / folder).rglob("*.py")
    ]
    found = 0
    for path in files:
        text = re.sub(r"\s+", " ", path.read_text())
        for page, _, heading in re.findall(r'\bdocs/([\w/-]+\.md)(, "([^"]+)")?', text):
            there = ROOT / "docs" / page
            assert there.is_file(), f"{path} names {page}"
            if heading:
                assert re.search(rf"^#+ {re.escape(heading)}$", there.read_text(), re.MULTILINE), f"{path}: {heading}"
            found += 1
    assert found > 1


def public():
    """Names of all that a user may write, each with the place where it is declared."""
    yield from ((f"cm.{name}", name) for name in cm.__all__)
    yield from ((f"Matcher.{name}", name) for name in vars(cm.Matcher) if not name.startswith("_"))
    yield from ((f"Options.{field.name}", field.name) for field in dataclasses.fields(cm.Options))
    yield from ((f"colmatch {name}", name) for name in cli.commands)
    yield from ((f"kind {name}", name) for name in cm.index_kinds())
    yield from ((f"Among.{name}", f"{name}=") for name in Among.__annotations__)


def test_the_guide_names_all_that_is_public():
    words = set()
    for page in GUIDE:
        for code in re.findall(r"`([^`\n]+)`", "\n".join(page.read_text().split("```")[::2])):
            if found := re.match(r"(?:(?:cm|matcher|Matcher)\.|Options\(|colmatch )?((\w+)=?)", code):
                words |= set(found.groups())
    assert len(list(public())) > 80
    assert not [place for place, name in public() if name not in words]


def programs():
    found = {found for page in DOCUMENTS for found in re.findall(r"\bpython ((?:\w+/)+\w+\.py)", page.read_text())}
    assert len(found) > 4
    return sorted(found)


@pytest.mark.parametrize("program", programs())
def test_programs_that_documents_run_begin(program):
    """They find what they import, though no test runner has said where that is."""
    environment = dict(os.environ)
    if (ROOT / "colmatch" / "kernels").exists():  # in an sdist, colmatch is where it was installed
        environment["PYTHONPATH"] = str(ROOT)
    asked = [sys.executable, program, "--help"]
    done = subprocess.run(asked, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "usage" in done.stdout.lower(), done.stderr
