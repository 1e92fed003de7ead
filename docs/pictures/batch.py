"""Draws the way of a batch, from Arrow to results.

python docs/pictures/batch.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

from drawing import GREY, MATCH, MET, PLAIN, Drawing

STATIONS = (
    ("1  Arrow table", "a row: price 89, dest LIS, nights 2", "any library with the Arrow C interface"),
    ("2  gathered", "batches of 8,192 rows, no copy", "events/gather.py"),
    ("3  handed to a thread", "an idle worker takes the batch", "matching/threads.py, matching/worker.py"),
    ("4  read: one attribute after the other", "price 89.0 -> key, dest 'LIS' -> key", "kernels/arrow/read.py"),
    ("5  turned: one event after the other", "keys -> codes: price 2, dest 2, nights 2", "kernels/transpose.py"),
    ("6  matched", "the kernel of the kind writes (row 0, number 0)", "kernels/<kind>/match.py"),
    ("7  ordered, and given ids", "(0, 1), (0, 2): rows of the result", "kernels/sink.py, matching/pieces.py"),
)


def batch() -> Drawing:
    drawing = Drawing(
        760,
        600,
        "The way of a batch",
        "Seven stations below each other: the Arrow table, batches, a thread with a worker, reading by attribute into "
        "keys, turning by event into codes, matching by the kernel of the kind, ordering and giving ids. Beside them "
        "stands the version: attributes and literals serve station 4, codes of each segment station 5, the index and "
        "deleted numbers station 6, ids station 7.",
    )
    drawing.text(16, 28, "a batch", bold=True)
    drawing.text(500, 28, "the version: it never changes", bold=True)
    for number, (head, what, where) in enumerate(STATIONS):
        y = 42 + 78 * number
        colors = MATCH if number == len(STATIONS) - 1 else (MET if number else PLAIN)
        drawing.box(16, y, 430, 58, "", colors)
        drawing.text(28, y + 18, head, bold=True)
        drawing.text(28, y + 35, what)
        drawing.text(28, y + 51, where, color=GREY, size=11)
        if number:
            drawing.arrow(231, y - 19, 231, y - 3, way=True)
    held = (
        (3, "attributes and literals", "which column to read, as what"),
        (4, "codes of each segment", "boundary keys, in order"),
        (5, "segments and deleted numbers", "an index of some kind each"),
        (6, "ids, tags", "number -> id"),
    )
    for number, head, what in held:
        y = 42 + 78 * number
        drawing.box(500, y + 4, 244, 50, (head, what), PLAIN)
        drawing.arrow(497, y + 29, 450, y + 29)
    drawing.text(500, 130, "An update builds the next version beside", color=GREY, size=12)
    drawing.text(500, 146, "this one, and batches that have begun", color=GREY, size=12)
    drawing.text(500, 162, "go on with the old one.", color=GREY, size=12)
    return drawing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent, metavar="FOLDER")
    batch().save(parser.parse_args().to / "batch.svg")


if __name__ == "__main__":
    main()
