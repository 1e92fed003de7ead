"""Draws how each kind of index finds the matches of one event among the same four subscriptions.

python docs/pictures/kinds.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from drawing import GREY, MATCH, MET, PLAIN, SKIPPED, Colors, Drawing

WIDTH, TOP = 760, 82
RULES = (
    "1: price < 100 AND dest = 'LIS'",
    "2: price BETWEEN 50 AND 150 AND nights = 2",
    "3: dest IN ('LIS', 'OPO') AND nights >= 5",
    "4: price > 400 AND nights = 2",
)
EVENT = "event: price 89, dest LIS, nights 2"


def begun(height: int, kind: str, about: str, event: str = EVENT) -> Drawing:
    """Returns a picture with the subscriptions and the event above and the colours below."""
    drawing = Drawing(WIDTH, height, f"{kind}: four subscriptions and one event", about)
    for number, rule in enumerate(RULES):
        drawing.text(16, 22 + 15 * number, rule, color=GREY, size=12)
    drawing.box(WIDTH - 262, 16, 246, 30, event, MET)
    meanings: list[tuple[str, Colors]] = [
        ("the event is here", MET),
        ("match", MATCH),
        ("there, without a match", PLAIN),
        ("never looked at", SKIPPED),
    ]
    for place, (meaning, colors) in enumerate(meanings):
        drawing.box(16 + 185 * place, height - 26, 14, 14, "", colors)
        drawing.text(36 + 185 * place, height - 15, meaning, color=GREY, size=12)
    return drawing


def scan() -> Drawing:
    drawing = begun(
        310,
        "scan",
        "Each subscription has a row: its most selective predicate, then the other. The event is tested with all four "
        "first predicates; those of 1 and 2 hold. Only 1 and 2 are tested further, and both match.",
    )
    for x, head in ((80, "first predicate of each, packed"), (380, "the rest, only of survivors")):
        drawing.text(x, TOP + 28, head, bold=True)
    rows = (
        ("1", "dest = 'LIS'", "price < 100", True),
        ("2", "nights = 2", "price BETWEEN 50 AND 150", True),
        ("3", "nights >= 5", "dest IN ('LIS', 'OPO')", False),
        ("4", "price > 400", "nights = 2", False),
    )
    for number, (name, head, rest, holds) in enumerate(rows):
        y = TOP + 42 + 38 * number
        drawing.text(50, y + 20, name, bold=True)
        drawing.box(80, y, 200, 30, head, MET if holds else PLAIN)
        drawing.box(380, y, 220, 30, rest, MATCH if holds else SKIPPED)
        if holds:
            drawing.arrow(284, y + 15, 376, y + 15, way=True)
        drawing.text(620, y + 20, "match" if holds else "first predicate fails", color=GREY)
    return drawing


def kindex() -> Drawing:
    drawing = begun(
        390,
        "k-index",
        "All subscriptions have two predicates, so K is 2. There is a posting list for each attribute and value. The "
        "event has three lists: dest LIS with 1 and 3, price 50 to 100 with 1 and 2, nights 2 with 2 and 4. Two lists "
        "stand at 1, then two at 2: both match. 3 and 4 stand alone.",
    )
    drawing.text(16, TOP + 22, "posting lists of K = 2 (two predicates)", bold=True)
    lists = (
        ("dest LIS", "13", True),
        ("dest OPO", "3", False),
        ("price below 50", "1", False),
        ("price 50 to 100", "12", True),
        ("price 100 to 150", "2", False),
        ("price above 400", "4", False),
        ("nights 2", "24", True),
        ("nights 5 and more", "3", False),
    )
    for number, (name, entries, own) in enumerate(lists):
        y = TOP + 34 + 30 * number
        drawing.box(16, y, 150, 24, name, MET if own else SKIPPED)
        for place, entry in enumerate(entries):
            drawing.box(176 + 34 * place, y, 28, 24, entry, MET if own else SKIPPED)
    drawing.text(330, TOP + 22, "the event's three lists, side by side", bold=True)
    steps = (
        (("1", "1", "2"), "the first two are equal: 1 matches"),
        (("2", "2", "3"), "the first two are equal: 2 matches"),
        (("3", "4"), "3 is alone: skip it to 4"),
        (("4",), "one list is left, two are needed: done"),
    )
    for number, (stand, what) in enumerate(steps):
        y = TOP + 44 + 44 * number
        for place, entry in enumerate(stand):
            meets = len(stand) == 3 and place < 2
            drawing.box(330 + 36 * place, y, 30, 28, entry, MATCH if meets else MET)
        drawing.text(452, y + 19, what)
        if number:
            drawing.arrow(345, y - 15, 345, y - 3, way=True)
    return drawing


def propagation() -> Drawing:
    drawing = begun(
        380,
        "Propagation",
        "Each distinct predicate has a bit; the event sets five of seven. Subscription 1 stands behind dest = LIS, 2 "
        "and 4 behind nights = 2, and 3 behind nights >= 5, whose bit is not set. Behind the two bits that are set, "
        "the remaining bits of 1, 2 and 4 are tested: those of 1 and 2 are set, that of 4 is not.",
    )
    drawing.text(16, TOP + 22, "distinct predicates, a bit each", bold=True)
    drawing.text(300, TOP + 22, "clusters behind access predicates: test the remaining bits", bold=True)
    bits = (
        ("dest = 'LIS'", 1),
        ("dest IN ('LIS', 'OPO')", 1),
        ("price > 400", 0),
        ("price < 100", 1),
        ("price 50 to 150", 1),
        ("nights = 2", 1),
        ("nights >= 5", 0),
    )
    for number, (name, bit) in enumerate(bits):
        y = TOP + 34 + 32 * number
        drawing.box(16, y, 170, 26, name, MET if bit else PLAIN)
        drawing.box(192, y, 26, 26, str(bit), MET if bit else PLAIN)
    clusters = (
        (0, 0, "1", "price < 100: set", MATCH),
        (5, 0, "2", "price 50 to 150: set", MATCH),
        (5, 1, "4", "price > 400: not set", PLAIN),
        (6, 0, "3", "dest IN ('LIS', 'OPO')", SKIPPED),
    )
    for bit, place, name, rest, colors in clusters:
        y = TOP + 34 + 32 * (bit + place) - (32 if bit == 5 else 0)
        drawing.box(300, y, 30, 26, name, colors)
        drawing.box(336, y, 220, 26, rest, colors)
        drawing.arrow(222, TOP + 47 + 32 * bit, 296, y + 13, way=colors != SKIPPED)
    drawing.text(566, TOP + 34 + 32 * 6 + 17, "its access bit is not set", color=GREY, size=12)
    return drawing


def opindex() -> Drawing:
    drawing = begun(
        410,
        "OpIndex",
        "Subscriptions 1 and 3 have the pivot dest, 2 and 4 the pivot price. Each pivot has a list for each operator, "
        "sorted by attribute and operand. Each predicate that a value of the event meets is counted for its "
        "subscription: 1 and 2 reach two of two and match, 3 and 4 have one.",
    )
    pivots = (
        (
            16,
            "pivot dest: subscriptions 1 and 3",
            (
                ("=", (("dest LIS", "1", True), ("dest LIS", "3", True), ("dest OPO", "3", False))),
                ("<=", (("price < 100", "1", True),)),
                (">=", (("nights 5", "3", False),)),
            ),
            (("1", 2), ("3", 1)),
        ),
        (
            392,
            "pivot price: subscriptions 2 and 4",
            (
                ("=", (("nights 2", "2", True), ("nights 2", "4", True))),
                (">=", (("price > 400", "4", False),)),
                ("BETWEEN", (("50 to 150", "2", True),)),
            ),
            (("2", 2), ("4", 1)),
        ),
    )
    for x, head, lists, counts in pivots:
        drawing.box(x, TOP + 10, 350, 262, "", ("#ffffff", PLAIN[1]))
        drawing.text(x + 12, TOP + 30, head, bold=True)
        y = TOP + 42
        for operator, entries in lists:
            drawing.text(x + 12, y + 18, operator)
            for name, sub, met in entries:
                drawing.box(x + 84, y, 140, 24, f"{name}  ->  {sub}", MET if met else PLAIN)
                y += 28
            y += 4
        for place, (sub, count) in enumerate(counts):
            drawing.text(x + 12 + 168 * place, TOP + 240, f"counter of {sub}:")
            drawing.box(x + 102 + 168 * place, TOP + 222, 56, 26, f"{count} of 2", MATCH if count == 2 else PLAIN)
    drawing.text(16, TOP + 290, "A signature of each segment of a list says what cannot be in it.", color=GREY, size=12)
    return drawing


def _tree(kind: str, about: str, ranges: tuple[str, str, str, str], note: str) -> Drawing:
    drawing = begun(400, kind, about)
    drawing.box(300, TOP + 6, 160, 40, ("root", "leaf: 4"), MET)
    drawing.box(150, TOP + 84, 150, 30, "part: nights", MET)
    drawing.box(470, TOP + 84, 150, 30, "part: dest", MET)
    drawing.arrow(350, TOP + 48, 250, TOP + 81, way=True)
    drawing.arrow(410, TOP + 48, 530, TOP + 81, way=True)
    top, left, right, dest = ranges
    drawing.box(140, TOP + 138, 170, 40, ("bucket", top), MET)
    drawing.box(460, TOP + 138, 170, 40, ("bucket " + dest, "leaf: 1"), MATCH)
    drawing.arrow(225, TOP + 116, 225, TOP + 135, way=True)
    drawing.arrow(545, TOP + 116, 545, TOP + 135, way=True)
    drawing.box(40, TOP + 212, 170, 40, (left, "leaf: 2"), MATCH)
    drawing.box(240, TOP + 212, 170, 40, (right, "leaf: 3"), SKIPPED)
    drawing.arrow(200, TOP + 180, 140, TOP + 209, way=True)
    drawing.arrow(250, TOP + 180, 310, TOP + 209)
    drawing.text(430, TOP + 226, note, color=GREY, size=12)
    return drawing


def betree() -> Drawing:
    return _tree(
        "BE-Tree",
        "The root has subscription 4 in its leaf and two parts, nights and dest. The bucket of nights is halved: nights "
        "below 5 has 2, nights from 5 on has 3. The bucket of dest has 1. The event visits the root, the lower half of "
        "nights, and dest; it never looks at 3.",
        ("nights, its whole domain", "nights below 5", "nights from 5 on", "dest, all"),
        "halves of the domain, wherever predicates lie",
    )


def bestar() -> Drawing:
    return _tree(
        "BE*-Tree",
        "The root has subscription 4 in its leaf and two parts, nights and dest. The buckets of nights are as narrow as "
        "what is in them: exactly 2, and 5 and more. The bucket of dest is exactly LIS. The event visits the root, "
        "nights 2, and dest LIS; it never looks at 3. An event with 3 nights would visit neither bucket of nights.",
        ("nights, what spans a cut", "nights 2 only", "nights 5 and more", "dest LIS only"),
        "buckets as narrow as the predicates in them",
    )


def pstbloom() -> Drawing:
    drawing = begun(
        426,
        "PSTBloom",
        "The ends of predicates cut each attribute into spaces. At dest LIS hang 1 and 3, at dest OPO 3, at price above "
        "400 subscription 4, at nights 2 subscription 2. Other predicates are in the filters of their spaces: 1 and 2 at "
        "price 50 to 100, 4 at nights 2, 3 at nights 5 and more. The event's spaces have 1, 3 and 2 for candidates. The "
        "filter at nights 2 has not 3, which is never verified; 1 and 2 match.",
    )
    drawing.text(16, TOP + 22, "spaces of each attribute: who hangs there, and who is in the filter", bold=True)
    rows = (
        ("dest", 1, ("below", "", ""), ("LIS", "1, 3", ""), ("between", "", ""), ("OPO", "3", ""), ("above", "", "")),
        (
            "price",
            1,
            ("below 50", "", "1"),
            ("50 to 100", "", "1, 2"),
            ("100 to 150", "", "2"),
            ("150 to 400", "", ""),
            ("above 400", "4", ""),
        ),
        ("nights", 1, ("below 2", "", ""), ("2", "2", "4"), ("3 and 4", "", ""), ("5 and more", "", "3")),
    )
    for number, (name, own, *spaces) in enumerate(rows):
        y = TOP + 34 + 62 * number
        drawing.text(16, y + 30, name, bold=True)
        width = 660 / len(spaces)
        for place, (space, hangs, filtered) in enumerate(spaces):
            what = "; ".join([f"hang {hangs}"] * bool(hangs) + [f"filter {filtered}"] * bool(filtered)) or "empty"
            drawing.box(70 + width * place, y, width - 6, 52, (space, what), MET if place == own else SKIPPED)
    y = TOP + 240
    drawing.text(16, y, "candidates", bold=True)
    drawing.text(262, y, "is each in the filter at the event's other values?", bold=True)
    tests = (
        ("1", "filter of price 89: perhaps", "verified: match", MATCH),
        ("3", "filter of nights 2: no", "never verified", PLAIN),
        ("2", "filter of price 89: perhaps", "verified: match", MATCH),
    )
    for place, (sub, test, end, colors) in enumerate(tests):
        x = 16 + 246 * place
        drawing.box(x, y + 12, 30, 42, sub, MET)
        drawing.box(x + 36, y + 12, 200, 42, (test, end), colors)
    return drawing


def psthash() -> Drawing:
    drawing = begun(
        400,
        "PSTHash",
        "A hash table has seven spaces of two attributes. dest LIS with price below 50 and with price 50 to 100 have 1; "
        "dest LIS and dest OPO with nights 5 and more have 3; price 50 to 100 and price 100 to 150 with nights 2 have "
        "2; price above 400 with nights 2 has 4. The event has three spaces and so three pairs. Two of them are in "
        "the table: 1 and 2 are verified and match.",
    )
    drawing.text(16, TOP + 22, "the event's spaces", bold=True)
    for number, name in enumerate(("dest LIS", "price 50 to 100", "nights 2")):
        drawing.box(16, TOP + 50 + 66 * number, 130, 30, name, MET)
    drawing.text(200, TOP + 22, "its pairs", bold=True)
    pairs = (("dest LIS + price 50 to 100", 0, 1), ("dest LIS + nights 2", 0, 2), ("price 50 to 100 + nights 2", 1, 2))
    for number, (name, first, second) in enumerate(pairs):
        y = TOP + 50 + 66 * number
        drawing.box(210, y, 196, 30, name, MET)
        for space in (first, second):
            drawing.arrow(148, TOP + 65 + 66 * space, 207, y + 15, way=True)
    drawing.text(470, TOP + 22, "hash table of pairs of spaces", bold=True)
    table = (
        ("dest LIS + price below 50", "1", SKIPPED),
        ("dest LIS + price 50 to 100", "1", MATCH),
        ("dest LIS + nights 5 and more", "3", SKIPPED),
        ("dest OPO + nights 5 and more", "3", SKIPPED),
        ("price 50 to 100 + nights 2", "2", MATCH),
        ("price 100 to 150 + nights 2", "2", SKIPPED),
        ("price above 400 + nights 2", "4", SKIPPED),
    )
    for number, (name, sub, colors) in enumerate(table):
        y = TOP + 34 + 32 * number
        drawing.box(470, y, 220, 26, name, colors)
        drawing.box(696, y, 30, 26, sub, colors)
    drawing.arrow(409, TOP + 65, 467, TOP + 79, way=True)
    drawing.arrow(409, TOP + 197, 467, TOP + 175, way=True)
    drawing.text(210, TOP + 246, "the second pair is in no subscription", color=GREY, size=12)
    return drawing


def pbtree() -> Drawing:
    drawing = begun(
        420,
        "PB+tree",
        "Each attribute has a B+tree; its leaf has the keys of predicates in order. Lists below lead from keys to "
        "subscriptions: equal, less than, greater than, and ranges with two ends. The event meets dest LIS with 1 and "
        "3, price less than 100 with 1, the range 50 to 150 with 2, and nights 2 with 2 and 4. 1 and 2 are counted "
        "twice and match.",
    )
    trees = (
        (16, "dest", (("LIS", 1), ("OPO", 0)), (("= LIS", "1, 3", True), ("= OPO", "3", False))),
        (
            214,
            "price",
            (("50", 0), ("100", 1), ("150", 0), ("400", 0)),
            (("< 100", "1", True), ("50 to 150", "2", True), ("> 400", "4", False)),
        ),
        (540, "nights", (("2", 1), ("5", 0)), (("= 2", "2, 4", True), (">= 5", "3", False))),
    )
    for x, name, keys, lists in trees:
        width = 58 * len(keys)
        drawing.box(x + width / 2 - 55, TOP + 8, 110, 28, f"root: {name}", MET)
        drawing.arrow(x + width / 2, TOP + 38, x + width / 2, TOP + 61, way=True)
        for place, (key, own) in enumerate(keys):
            drawing.box(x + 58 * place, TOP + 64, 58, 28, key, MET if own else PLAIN)
        for number, (entry, subs, met) in enumerate(lists):
            y = TOP + 128 + 34 * number
            drawing.box(x, y, 100, 26, entry, MET if met else PLAIN)
            drawing.box(x + 106, y, 54, 26, subs, MET if met else PLAIN)
        drawing.arrow(x + 50, TOP + 94, x + 50, TOP + 124, way=True)
    drawing.text(16, TOP + 262, "predicates met:", bold=True)
    for place, (sub, count) in enumerate((("1", 2), ("2", 2), ("3", 1), ("4", 1))):
        drawing.box(140 + 150 * place, TOP + 242, 130, 30, f"{sub}: {count} of 2", MATCH if count == 2 else PLAIN)
    drawing.text(392, TOP + 84 + 64, "pages of 4 KiB,", color=GREY, size=12)
    drawing.text(392, TOP + 84 + 80, "in a file behind a cache", color=GREY, size=12)
    return drawing


def bitslice() -> Drawing:
    drawing = begun(
        470,
        "bitslice",
        "Four events are a batch. Sorted by nights they are rows 0, 1 and 3 with 2 nights, then row 2 with 7. The "
        "posting nights = 2 of subscription 2 is the first three positions: a mask of three bits. Its other predicate, "
        "price 50 to 150, is tested for all of them at once and leaves rows 0 and 3. Likewise 3 matches row 2, 1 "
        "matches row 0, and 4 matches row 1.",
        "a batch of four events: rows 0 to 3",
    )
    head = ("row", "price", "dest", "nights")
    rows = (("0", "89", "LIS", "2"), ("1", "450", "OPO", "2"), ("2", "120", "LIS", "7"), ("3", "60", "NCE", "2"))
    drawing.text(16, TOP + 22, "the batch", bold=True)
    for number, row in enumerate((head, *rows)):
        for place, cell in enumerate(row):
            colors = PLAIN if number == 0 else (MET if number == 1 else ("#ffffff", PLAIN[1]))
            drawing.box(16 + 52 * place, TOP + 32 + 28 * number, 52, 28, cell, colors)
    drawing.text(262, TOP + 22, "rows sorted by one attribute: a posting is a range of positions", bold=True)
    columns = (
        (
            "nights",
            (("0", "2"), ("1", "2"), ("3", "2"), ("2", "7")),
            (("2:  nights = 2", "111", "price 50 to 150", "101", "rows 0, 3"),
             ("3:  nights >= 5", "1", "dest IN (...)", "1", "row 2")),
        ),
        (
            "dest",
            (("0", "LIS"), ("2", "LIS"), ("3", "NCE"), ("1", "OPO")),
            (("1:  dest = 'LIS'", "11", "price < 100", "10", "row 0"),),
        ),
        (
            "price",
            (("3", "60"), ("0", "89"), ("2", "120"), ("1", "450")),
            (("4:  price > 400", "1", "nights = 2", "1", "row 1"),),
        ),
    )  # fmt: skip
    y = TOP + 32
    for name, order, postings in columns:
        drawing.text(262, y + 20, name, bold=True)
        for place, (row, value) in enumerate(order):
            drawing.box(320 + 86 * place, y, 82, 28, f"row {row}: {value}", MET if row == "0" else PLAIN)
        for access, mask, rest, left, matches in postings:
            y += 34
            drawing.box(262, y, 130, 26, access, PLAIN)
            drawing.text(400, y + 18, mask, bold=True)
            drawing.arrow(430, y + 13, 446, y + 13)
            drawing.box(450, y, 130, 26, rest, PLAIN)
            drawing.text(588, y + 18, left, bold=True)
            drawing.arrow(618, y + 13, 634, y + 13)
            drawing.box(638, y, 90, 26, matches, MATCH)
        y += 42
    drawing.text(16, TOP + 204, "A word has 64 positions,", color=GREY, size=12)
    drawing.text(16, TOP + 220, "so 64 events are tested", color=GREY, size=12)
    drawing.text(16, TOP + 236, "by a few instructions.", color=GREY, size=12)
    return drawing


PICTURES: dict[str, Callable[[], Drawing]] = {
    picture.__name__: picture
    for picture in (scan, kindex, propagation, opindex, betree, bestar, pstbloom, psthash, pbtree, bitslice)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent, metavar="FOLDER")
    folder = parser.parse_args().to
    for name, picture in PICTURES.items():
        picture().save(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
