"""Draws what colmatch does, and the logo.

python docs/pictures/front.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

from drawing import GREY, INK, MATCH, MET, PLAIN, Drawing

RULES = (
    ("cheap", "price < 100 AND", "dest IN ('LIS', 'OPO')"),
    ("long weekend", "nights BETWEEN 3 AND 4", "AND NOT (price > 400", "OR dest LIKE 'L%')"),
    ("anything new", "dest IS NOT NULL"),
)
EVENTS = (("89.5", "LIS", "2"), ("310", "NCE", "4"), ("NULL", "LIS", "3"))
MATCHES = ((0, 2), (1, 2), (2,))
LEFT, TOP, ROW, WIDE, HIGH = 16, 164, 42, 62, 32
FIRST, COLUMN = 226, 178  # where the columns of rules begin, and their width


def front() -> Drawing:
    drawing = Drawing(
        776,
        330,
        "Rows are events, columns are rules",
        "A table with three events, by price, dest and nights. Beside it stands a column for each of three rules, with "
        "its condition above. A cell is marked where the rule is true of the event: the first event matches cheap and "
        "anything new, the second long weekend and anything new, the third anything new.",
    )
    drawing.text(LEFT, 30, "events", bold=True, size=16)
    drawing.text(LEFT, 50, "rows of an Arrow table", color=GREY)
    drawing.text(FIRST, 30, "rules", bold=True, size=16)
    drawing.text(FIRST + 52, 30, "stored in an index, up to many millions", color=GREY)
    for i, (name, *condition) in enumerate(RULES):
        x = FIRST + COLUMN * i
        drawing.box(x, 44, COLUMN - 10, 94, "", MET)
        drawing.text(x + 10, 64, name, bold=True)
        for line, text in enumerate(condition):
            drawing.text(x + 10, 86 + 17 * line, text, size=12)
    for i, name in enumerate(("price", "dest", "nights")):
        drawing.text(LEFT + WIDE * i + WIDE / 2, TOP - 10, name, bold=True, anchor="middle", color=INK)
    for row, (event, matches) in enumerate(zip(EVENTS, MATCHES, strict=True)):
        y = TOP + ROW * row
        for i, value in enumerate(event):
            drawing.box(LEFT + WIDE * i, y, WIDE, HIGH, value, PLAIN)
        for i in range(len(RULES)):
            is_match = i in matches
            drawing.box(
                FIRST + COLUMN * i, y, COLUMN - 10, HIGH, "matches" if is_match else "", MATCH if is_match else PLAIN
            )
    drawing.text(LEFT, 316, "the result", bold=True, size=16)
    lists = ", ".join("[" + ", ".join(f"'{RULES[i][0]}'" for i in matches) + "]" for matches in MATCHES)
    drawing.text(FIRST, 316, f"[{lists}]", size=12)
    return drawing


def logo() -> Drawing:
    """Columns, of which some cells match."""
    drawing = Drawing(64, 64, "colmatch", "Three columns of three cells, of which four are marked.", clear=True)
    for column in range(3):
        for row in range(3):
            colors = MATCH if (column, row) in ((0, 0), (1, 1), (2, 0), (2, 2)) else MET
            drawing.box(
                5 + 19 * column, 5 + 19 * row, 16, 16, "", (colors[1] if colors is MATCH else colors[0], colors[1])
            )
    return drawing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where to write both")
    to, here = parser.parse_args().to, Path(__file__).parent
    front().save((to or here) / "front.svg")
    logo().save((to or here.parent / "_static") / "logo.svg")


if __name__ == "__main__":
    main()
