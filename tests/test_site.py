"""The site without Sphinx: the reference is complete, and every page has its place.

``.ci/docs`` builds it.
"""

import inspect
import re
import sys
import tomllib

import pytest
from guide import ROOT

pytest.importorskip("pyspark")  # the reference has colmatch.spark
sys.path.append(str(ROOT / "docs" / "_ext"))
from navigation import children, listed, site_links
from public_names import public_names
from sections import ENTRY, SECTION, reshape

DOCS = ROOT / "docs"
RULE = re.compile(r"-{3,}")


def entries():
    """Names that the pages of the reference list, with dots."""
    for page in (DOCS / "reference").glob("*.rst"):
        module = ""
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif line.startswith(".. py:data:: "):
                yield line.split()[-1]
            elif (found := re.fullmatch(r"   ([A-Za-z][\w.]*)", line)) and page.stem != "index":
                yield f"{module}.{found[1]}"


def test_the_reference_has_every_public_name_once():
    listed_names = sorted(entries())
    assert len(listed_names) > 90
    assert sorted(set(public_names()) - set(listed_names)) == []
    assert sorted({name for name in listed_names if listed_names.count(name) > 1}) == []


def lines_of(name):
    return (inspect.getdoc(public_names()[name]) or "").splitlines()


@pytest.mark.parametrize("name", sorted(public_names()))
def test_sections_of_public_docstrings_can_be_read(name):
    """Entries stand in sections, and nothing but entries does."""
    wrong, inside, before = [], "", ""
    lines = lines_of(name)
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if RULE.fullmatch(below):
            inside = line if SECTION.match(line) else ""
        elif line and not line.startswith(" ") and not RULE.fullmatch(line):
            entry = ENTRY.match(line)
            if bool(entry) != bool(inside) and not (inside and before):
                wrong.append(line)
        before = "" if RULE.fullmatch(line) else line
    assert lines and not wrong


def test_the_text_of_an_entry_moves_below_its_name():
    assert reshape(["Returns", "-------", "int : how", "many", "", "Else : more"]) == [
        "Returns", "-------", "int", "    how", "    many", "", "Else", "    more",
    ]  # fmt: skip
    assert reshape(["Else : this stays"]) == ["Else : this stays"]


def test_every_page_is_below_one_other():
    """The root lists sections; each has the pages of its folder; the guide has all else."""
    root = re.findall(r"^   [^<\n]+<([\w/-]+)>$", (DOCS / "index.rst").read_text(), re.MULTILINE)
    found, waiting = list(root), list(root)
    while waiting:
        below = [page for _, pages in children(DOCS, waiting.pop()) for page in pages]
        found, waiting = found + below, waiting + below
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(pages - set(found)) == []
    assert sorted({page for page in found if found.count(page) > 1}) == []


def test_the_tables_of_the_guide_are_its_groups():
    captions = [caption for caption, _ in listed(DOCS)]
    assert "match" in captions and captions.index("match") < captions.index("keep")


def test_the_start_page_leads_to_the_repository():
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert f"[the repository]({urls['Repository']})" in (DOCS / "start.md").read_text()


def test_links_lead_to_pages_of_the_site_or_to_the_repository():
    page = DOCS / "match" / "one.md"
    text = (
        "[a](../kinds.md#b) [b](../../BENCHMARKS.md#c) [`c`](../../kernels/_jit.py) [d](https://x.y) ![e](../../p.svg)"
    )
    assert site_links(text, page, page, ROOT, "https://repo") == (
        "[a](../kinds.md#b) [b](../figures.markdown#c) [`c`](https://repo/blob/main/kernels/_jit.py) "
        "[d](https://x.y) ![e](../../p.svg)"
    )
    assert (
        site_links("```\n[a](../../LICENSE)\n```", page, page, ROOT, "https://repo") == "```\n[a](../../LICENSE)\n```"
    )
