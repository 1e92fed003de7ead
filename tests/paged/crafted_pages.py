"""Files of pages with right checksums, not written by colmatch, and a process that checks them.

``python crafted_pages.py FILE ...`` checks each file, and uses those without a fault.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import colmatch as cm
from colmatch.paged import metadata
from colmatch.paged.cache import PAGE, checksum
from colmatch.paged.check import check
from colmatch.paged.header import header_bytes, headers
from colmatch.store.file import pack, unpack

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))  # also where this file is a process of its own
import crafted

Words = NDArray[np.uint32]


def source(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object] | None = None) -> Path:
    """Makes a file with all that one can have. ``change`` edits what describes subscriptions."""
    saved = cm.Matcher.open(crafted.saved(path.with_suffix(".saved"), "scan", "text" if change is None else "number"))
    there = {
        id: f"a = {i % 9} AND b > {i % 5} OR c = 'x{i}' AND l IS NOT NULL" for i, id in enumerate(saved.ids.to_pylist())
    }
    few = dict.fromkeys(list(there)[:4], "(a < 3 OR b = 2) AND (a > 5 OR c LIKE 'x%') AND NOT (b IN (1, 4, 8))")
    tags = {id: ["one", "two"][: i % 3] for i, id in enumerate(there)}
    write = metadata.chains_of

    def chains(parts: Any) -> dict[int, bytes]:
        written = write(parts)
        for chain in written if change else ():
            header, arrays = unpack(written[chain])
            arrays = {name: array.copy() for name, array in arrays.items()}
            change(header, arrays)  # type: ignore[misc]
            written[chain] = pack(header, arrays)
        return written

    index = cm.index("pbtree", path=str(path), dnf_budget=2)
    with patch.object(metadata, "chains_of", chains):
        matcher = cm.Matcher.build(there | few, crafted.SCHEMA, index=index, tags=tags)
    if change is None:
        more = {f"new {i}": f"a = {i % 3} AND b = {i}" for i in range(400)}  # trees with pages of their own
        matcher.insert(more)
        matcher.delete(list(more)[100:150])
    matcher.close()
    return path


def changed(path: Path, target: Path, change: Callable[[Words], object]) -> Path:
    """Writes the pages of a file anew with a change, and with right checksums."""
    words = np.frombuffer(path.read_bytes(), np.uint32).reshape(-1, PAGE // 4).copy()
    before = words.copy()
    change(words)
    for page in np.flatnonzero((words != before).any(axis=1)).tolist():
        words[page, 0] = checksum(words[page].tobytes(), page)
    target.write_bytes(words.tobytes())
    return target


def craft(path: Path, target: Path, seed: int) -> str:
    """Writes a changed file. Returns what was changed."""
    random, said = Random(seed), []

    def in_pages(words: Words) -> None:
        for _ in range(random.choice([1, 1, 2])):
            page = random.choice([2, random.randrange(2, len(words))])
            place = random.choice([random.randrange(1, 24), int(random.choice(np.flatnonzero(words[page])))])
            near = int(words[page, place]) + random.choice([-1, 1, 2])
            value = random.choice([0, 1, near, random.randrange(len(words)), 2**16, 2**31, 2**32 - 1])
            words[page, place] = value & 0xFFFFFFFF
            said.append(f"page {page}, word {place}: {value}")

    def in_description(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        said.append(crafted.mutated(header, arrays, random) if header else "")

    if random.random() < 0.25:
        try:
            source(target, in_description)
        except cm.ColmatchError:  # it is opened when it was built
            said.append("(refused at once)")
    else:
        changed(path, target, in_pages)
    return f"seed {seed}: {', '.join(said)}"


def of_so_many(path: Path, target: Path, pages: int) -> Path:
    """Writes a file whose headers claim so many pages."""
    data = path.read_bytes()
    target.write_bytes(headers(1 << 60, 1 << 60, pages) + data[2 * PAGE :])
    assert header_bytes(1 << 60, 1 << 60, pages) in target.read_bytes()
    return target


if __name__ == "__main__":
    use = crafted.use
    crafted.use = lambda path: (check(path), use(path))
    crafted.main(sys.argv[1:])
