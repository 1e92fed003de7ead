"""A process that changes a file of pages until it is killed: it says what it is about to do, and
when that is done.

    python tests/paged/writer.py PATH SEED
"""

from __future__ import annotations

import sys
from random import Random

import colmatch as cm
from colmatch.paged import file

SPREAD = 40


def text(id: int) -> str:
    """The expression that a subscription has, whoever asks."""
    rng = Random(id)
    a, b = sorted(rng.choices(range(SPREAD), k=2))
    return rng.choice(
        [f"a between {a} and {b}", f"a > {a} and b <> {b}", f"b in ({a}, {b})", f"a = {a} or c = 'x{id % 50}'"]
    )


def changes(seed: int, there: set[int]):
    """What is done one after the other: ids to insert, ids to delete."""
    rng = Random(seed)
    while True:
        if len(there) < 20 or rng.random() < 0.55:
            new = rng.sample(range(100_000), rng.choice([1, 1, 5, 40]))
            yield sorted(set(new) - there), []
            there |= set(new)
        else:
            gone = rng.sample(sorted(there), min(len(there), rng.choice([1, 1, 5, 30])))
            yield [], gone
            there -= set(gone)


def main(path: str, seed: int) -> None:
    file.LOG_MOST = 300_000  # bytes, so that pages are often copied to the file
    matcher = cm.Matcher.open(path)
    steps = changes(seed, set(matcher.ids.to_pylist()))
    while True:
        new, gone = next(steps)
        if new:
            matcher.insert({id: text(id) for id in new})
        if gone:
            matcher.delete(gone)
        print(matcher.version, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
