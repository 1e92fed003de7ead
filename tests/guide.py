"""README and the pages of the guide, taken apart: blocks of code, prose, links and headings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDE = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *GUIDE]
NAMED = re.compile(r"`([\w.-]+\.\w+)`:")  # a line that says which file the next block is


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str  # "" for what the block before it prints
    text: str
    line: int  # of the page, its first
    name: str  # of the file that it is, else ""
    answer: str | None  # the block without a language that follows, if one does


def blocks_of(text: str) -> list[Block]:
    """Returns the blocks of a page in their order; what a block prints is its answer."""
    found: list[Block] = []
    lines, before, start = text.splitlines(keepends=True), "", None
    for number, line in enumerate(lines):
        if start is None and line.startswith("```"):
            start = number + 1
        elif line == "```\n" and start is not None:
            language, content = lines[start - 1][3:].strip(), "".join(lines[start:number])
            if not language and found and found[-1].answer is None and before == "```\n":
                found[-1] = found[-1]._replace(answer=content)
            else:
                named = NAMED.fullmatch(before.strip())
                found.append(Block(language, content, start + 1, named[1] if named else "", None))
            before, start = line, None
        elif start is None and line.strip():
            before = line
    assert start is None, f"a block that begins in line {start} has no end"
    return found


def prose_of(text: str) -> list[tuple[int, str]]:
    """Returns number and text of each line that is neither code nor a row of a table."""
    found, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside and not line.startswith("|"):
            found.append((number, line))
    return found


def anchors_of(text: str) -> set[str]:
    """Returns the anchors that GitHub gives to the headings of a page."""
    found: dict[str, int] = {}
    anchors = set()
    for _, line in prose_of(text):
        if heading := re.fullmatch(r"#+ (.*)", line):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            times = found[anchor] = found.get(anchor, -1) + 1
            anchors.add(f"{anchor}-{times}" if times else anchor)
    return anchors


def links_of(text: str) -> list[tuple[int, str]]:
    """Returns line and target of each link and picture that is not within code."""
    found, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            plain = re.sub(r"`[^`]*`", "``", line)
            found += [(number, target) for target in re.findall(r"\]\(([^)\s]+)\)", plain)]
    return found
