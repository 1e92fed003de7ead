"""Where pages stand in the site, and where their links lead."""

import os
import re
from pathlib import Path

# Documents at the top of the repository that are pages, too.
DOCUMENTS = {
    "ARCHITECTURE.md": "architecture",
    "BENCHMARKS.md": "figures",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "README.md": "index",
}
LINK = re.compile(r"(!?\[(?:[^\]`]|`[^`]*`)*\]\()([^)\s#]+)(#[^)\s]*)?\)")
ROW = re.compile(r"^\| \[[^\]]*\]\(([\w/.-]+)\.md\) \|", re.MULTILINE)
CAPTION = re.compile(r"^\| ([^|\[]+?) \|[ |]*\n\|(?:-+\|)+\n((?:\|.*\n)+)", re.MULTILINE)
LISTS = ("tutorials/index", "recipes/index")  # pages that show what their folder has


def site_links(text: str, source: Path, page: Path, root: Path, repository: str) -> str:
    """Returns the text of ``source`` with its relative links as they must be from ``page``.

    Links to files that the site has not lead to the repository.
    """
    docs = root / "docs"

    def target(found: re.Match[str]) -> str:
        begin, link, anchor = found[1], found[2], found[3] or ""
        if re.match(r"[a-z]+:", link):
            return found[0]
        path = (source.parent / link).resolve()
        if path.parent == root and path.name in DOCUMENTS:
            path = docs / DOCUMENTS[path.name]
            path = next(file for suffix in (".markdown", ".rst") if (file := path.with_suffix(suffix)).exists())
            anchor = anchor if path.suffix == ".markdown" else ""
        elif not path.is_relative_to(docs) and not begin.startswith("!"):
            kind = "tree" if path.is_dir() else "blob"
            return f"{begin}{repository}/{kind}/main/{path.relative_to(root).as_posix()}{anchor})"
        return f"{begin}{os.path.relpath(path, page.parent)}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(target, part) for part in parts)


def listed(docs: Path) -> list[tuple[str, list[str]]]:
    """Returns the tables of the guide's list: the caption of each, and the pages in it."""
    text = (docs / "guide.md").read_text()
    return [(caption, pages) for caption, rows in CAPTION.findall(text) if (pages := ROW.findall(rows))]


def children(docs: Path, name: str) -> list[tuple[str, list[str]]]:
    """Returns what stands below a page in the site's navigation, in groups with captions.

    Below the guide stand the pages that it lists and that have no place elsewhere. Below any other
    page stand those of the folder with its name.
    """
    if name == "guide":
        sections = set(re.findall(r"^   (?:[^<\n]*<)?([\w/-]+)>?$", (docs / "index.rst").read_text(), re.MULTILINE))
        kept = [
            (caption, [page for page in pages if "/" not in page and page not in sections])
            for caption, pages in listed(docs)
        ]
        return [(caption, pages) for caption, pages in kept if pages]
    folder = name.removesuffix("/index")
    there = sorted(
        path.relative_to(docs).with_suffix("").as_posix()
        for path in (docs / folder).glob("*.*")
        if path.suffix in (".md", ".rst") and path.stem != "index"
    )
    order = re.findall(r"\]\(([\w/-]+)\.md", (docs / "guide.md").read_text())
    there.sort(key=lambda page: order.index(page) if page in order else len(order))
    return [("", there)] if there else []
