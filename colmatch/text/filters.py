r"""Filters: necessary conditions on a string for a text pattern to be true.

A filter has literals that an index finds, and the rest of the pattern to check.

Most patterns are decided by their literal; the rest of a LIKE pattern is a program for
``kernels/text/verify.py``::

    'Nice'       all of it            'Ni%'   at the start
    '%ce'        at the end           '%ic%'  anywhere
    'N_ce%air%'  'air' anywhere, then N_ce, air

Of several literals the index gets the one in the fewest patterns, if it has three bytes. In a list
of addresses that all have 'https://www.' in them, this text is the longest literal and filters
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from colmatch.text.like import ANY_CHARACTER, LiteralPosition, read_like

LONG = 3  # bytes of a literal that few strings have by chance


class Filter(NamedTuple):
    """A pattern that is true only where one of ``literals`` is in its place.

    ``also`` must be somewhere as well, if it is not empty. ``pieces`` are the pieces of the whole
    pattern, with ``ANY_CHARACTER`` for ``_``, if the literals do not decide it.
    """

    place: LiteralPosition
    literals: tuple[bytes, ...]
    also: bytes = b""
    pieces: tuple[bytes, ...] = ()
    open_start: bool = False
    open_end: bool = False


Choice = tuple[
    Filter, tuple[tuple[bytes, LiteralPosition], ...]
]  # a filter without its literal, and the possible literals


def filters_of(patterns: Sequence[tuple[str, str]]) -> list[Filter]:
    """Chooses a filter for each pattern (operator, operand), of endswith, contains and like."""
    choices = [_choices(op, operand) for op, operand in patterns]
    shared = Counter(literal for _, literals in choices for literal, _ in set(literals) if len(literals) > 1)
    return [_choose_literal(filter, literals, shared) for filter, literals in choices]


def _choose_literal(filter: Filter, found: Sequence[tuple[bytes, LiteralPosition]], shared: Counter[bytes]) -> Filter:
    if not found:
        return filter
    ranked = sorted(found, key=lambda known: (-min(len(known[0]), LONG), shared[known[0]], -len(known[0]), known[1]))
    literal, place = ranked[0]
    also = next((other for other, _ in ranked if other != literal), b"")
    return filter._replace(literals=(literal,), place=place, also=also)


def _choices(op: str, operand: str) -> Choice:
    if op == "contains":
        return Filter(LiteralPosition.INSIDE if operand else LiteralPosition.HEAD, (operand.encode(),)), ()
    if op == "endswith":
        return Filter(LiteralPosition.TAIL, (operand.encode(),)), ()
    assert op == "like", op
    pattern = read_like(operand)
    if pattern.literal is not None:
        return Filter(pattern.place, (pattern.literal,)), ()
    literals = []
    for i, piece in enumerate(pattern.pieces):
        runs = piece.split(ANY_CHARACTER)
        for j, run in enumerate(runs):
            if run:
                starts = i == j == 0 and not pattern.open_start
                ends = i == len(pattern.pieces) - 1 and j == len(runs) - 1 and not pattern.open_end
                literals.append(
                    (run, LiteralPosition.HEAD if starts else LiteralPosition.TAIL if ends else LiteralPosition.INSIDE)
                )
    return Filter(LiteralPosition.HEAD, (b"",), b"", *pattern), tuple(literals)
