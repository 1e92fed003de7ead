r"""Literals that a string must have for a regular expression to match anywhere in it.

They are read from the expression's tokens. For example ``err(or)?: [0-9]+ (disk|memory) full``
needs ``: ``, one of ``disk`` and ``memory``, and `` full``, which filters best. The reader gives up
where it is not sure. Its literals are necessary, never sufficient. After a leading ``(?i)`` they
are in ASCII lower case, without K and S. To RE2, the Kelvin sign is a K as well, and the long s an
S.
"""

from __future__ import annotations

from typing import NamedTuple

from colmatch.text.regex_tokens import FLAGS, RegexToken, Sort, UnknownSyntaxError, tokens

FEW_LITERALS = 16  # most alternative literals: with more, a filter excludes little
DEEP = 50  # groups within each other; Python's stack is the limit
LONG = 4  # bytes after which a longer literal is no better

Needed = tuple[bytes, ...]  # one of these


class Requirement(NamedTuple):
    """A condition for a match: the string has one of ``literals``; none if nothing is known.

    ``folded``: the string has it after A to Z have become a to z.
    """

    literals: Needed
    folded: bool


def requirement(regex: str) -> Requirement:
    """Reads the literals that a regular expression needs.

    Examples
    --------
    >>> requirement("a[0-9]+bcd|xyz+")
    Requirement(literals=(b'bcd', b'xyz'), folded=False)
    >>> requirement("[ab]+")
    Requirement(literals=(), folded=False)
    """
    flags = FLAGS.match(regex)
    folded = flags is not None and "i" in flags[1]
    try:
        reader = _RegexReader(tokens(regex[flags.end() :] if flags else regex), folded)
        literals = reader.alternatives(0)
    except UnknownSyntaxError:
        return Requirement((), False)
    return Requirement(literals or (), folded and bool(literals))


def _rank(needed: Needed) -> tuple[int, int, int]:
    shortest = min(map(len, needed))
    return min(shortest, LONG), -len(needed), shortest


class _RegexReader:
    def __init__(self, parts: list[RegexToken], folded: bool) -> None:
        self.parts = parts
        self.at = 0
        self.folded = folded

    def alternatives(self, depth: int) -> Needed | None:
        if depth > DEEP:
            raise UnknownSyntaxError
        branches = [self._sequence(depth)]
        while self._sort() is Sort.OR:
            self.at += 1
            branches.append(self._sequence(depth))
        if depth == 0 and self.at < len(self.parts):
            raise UnknownSyntaxError
        if None in branches:
            return None
        union = tuple(sorted({literal for needed in branches if needed for literal in needed}))
        return union if len(union) <= FEW_LITERALS else None

    def _sort(self) -> Sort | None:
        return self.parts[self.at].sort if self.at < len(self.parts) else None

    def _sequence(self, depth: int) -> Needed | None:
        best: Needed | None = None
        run = ""
        while self._sort() not in (None, Sort.OR, Sort.CLOSE):
            atom = self._atom(depth)
            least, once = self._repeat()
            if isinstance(atom, str) and once:
                run += atom
                continue
            if isinstance(atom, str) and least:
                run += atom
                best = _better(best, (run.encode(),))
                run = atom  # the last of them precedes the next atom
                continue
            best = _better(best, (run.encode(),))
            run = ""
            if atom and least and not isinstance(atom, str):
                best = _better(best, atom)
        return _better(best, (run.encode(),))

    def _atom(self, depth: int) -> str | Needed | None:
        """Returns a character as a string, the literals that a group needs, or None for others."""
        part = self.parts[self.at]
        self.at += 1
        if "i" in part.value and part.sort in (Sort.OPEN, Sort.FLAGS):
            raise UnknownSyntaxError
        if part.sort is Sort.OPEN:
            literals = self.alternatives(depth + 1)
            if self._sort() is not Sort.CLOSE:
                raise UnknownSyntaxError
            self.at += 1
            return literals
        return self._literal(part) if part.sort is Sort.CHARACTER else None

    def _literal(self, part: RegexToken) -> str | None:
        character = part.value
        if not self.folded or part.text.startswith("\\"):  # escaped ones have no case
            return character
        return character.lower() if character.isascii() and character not in "kKsS" else None

    def _repeat(self) -> tuple[int, bool]:
        """Returns the least number of times, and whether it is exactly once."""
        if self._sort() is not Sort.REPEAT:
            return 1, True
        least = self.parts[self.at].least
        self.at += 1
        return least, False


def _better(a: Needed | None, b: Needed) -> Needed | None:
    if not all(b):
        return a
    return b if a is None or _rank(b) > _rank(a) else a
