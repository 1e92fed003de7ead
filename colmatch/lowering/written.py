"""Predicates back to text: codes -> keys -> literals, as the expression language writes them.

This is the inverse of the other modules of this folder, for people who ask why a subscription
matched. A matcher keeps intervals of keys, not texts, and ``a > 5`` of whole numbers is the same
interval as ``a >= 6``. So the text is the likelier one with this interval: the one with the rounder
numbers.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from decimal import Decimal
from itertools import pairwise
from uuid import UUID as Uuid

import numpy as np
import pyarrow as pa

from colmatch.given.elements import EXISTS, ElementTest
from colmatch.given.schema import UNITS, UUID, Attribute, Family, Role, Type, time_type
from colmatch.given.special import PLACE, UNKNOWN, Call
from colmatch.kernels import layout
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.lowering.forms import arguments_text, quote_text
from colmatch.lowering.keys import NEVER_ROUNDS, UINT64_OFFSET, key_float
from colmatch.lowering.times import EPOCH, interval_text
from colmatch.lowering.wide import wide_text
from colmatch.text.addresses import address_of
from colmatch.text.like import write_like
from colmatch.text.reduce import successor
from colmatch.text.versions import version_of

Runs = list[tuple[int, int]]  # closed intervals of keys, ascending, none touching the next
LISTED = 12  # literals of a list that are shown
_COUNTED = (Family.INT, Family.UINT64, Family.DATE)  # neighbours of these may have been a list
_EXACT = (*_COUNTED, Family.DECIMAL, Family.TIMESTAMP)  # each value but the ends has a neighbour on both sides


def key_runs(predicates: layout.Predicates, codes: layout.Codes, p: int) -> Runs:
    """Returns the intervals of keys that predicate ``p`` looks for."""
    # Read the intervals of codes or labels.
    word, low, high = (int(x) for x in predicates.pred[p])
    if word & layout.FLAG_RUN:
        runs = list(zip(predicates.run_lo[low:high].tolist(), predicates.run_hi[low:high].tolist(), strict=True))
    else:
        runs = [(low, high)] if low <= high else []
    # Turn labels into codes, and codes into keys.
    attr = word & layout.ATTR_MASK
    begin, end = int(codes.first[attr]), int(codes.first[attr + 1])
    bounds = codes.bound[begin:end]
    if len(codes.label):
        label = codes.label[begin:end]
        runs = [
            (int(np.searchsorted(label, lo)) + 1 + (lo > 1), int(np.searchsorted(label, hi + 1)) + 1) for lo, hi in runs
        ]
    return [
        (KEY_MIN if lo == 1 else int(bounds[lo - 2]), KEY_MAX if hi > end - begin else int(bounds[hi - 1]) - 1)
        for lo, hi in runs
    ]


class LiteralTexts:
    """The strings behind the keys of one textual attribute.

    Parameters
    ----------
    literals : of all attributes
    attr : id of the attribute
    """

    def __init__(self, literals: layout.Literals, attr: int) -> None:
        self._literals = literals
        self._first, self._end = int(literals.first[attr]), int(literals.first[attr + 1])

    def __getitem__(self, key: int) -> bytes:
        """Returns the literal with this key."""
        number = self._first + key // 2
        return self._literals.data[self._literals.offset[number] : self._literals.offset[number + 1]].tobytes()

    def dense(self, runs: Runs) -> Runs:
        """Returns intervals of labels without gaps, from intervals of labels with gaps.

        Odd labels are literals, even ones the space before the literal with half the number.
        """
        if not len(self._literals.label):
            return runs
        label = self._literals.label[self._first : self._end]

        def number(key: int) -> int:
            """Returns the label of a literal, or of the space behind one."""
            if key == KEY_MIN:
                return key
            r = int(np.searchsorted(label, key, "right")) - 1
            return 2 * r + 1 + (int(label[r]) != key)

        return [(number(lo), hi if hi == KEY_MAX else number(hi + 1) - 1) for lo, hi in runs]


def predicate_text(attribute: Attribute, texts: LiteralTexts, runs: Runs, none: bool) -> str:
    """Writes a predicate as an expression would.

    texts : literals of the attribute; not used if it is not textual
    runs : intervals of keys that the predicate looks for
    none : the predicate is true if no key is in them
    """
    if attribute.pattern:
        op, operand = attribute.pattern
        name = attribute.name
        text = f"{op}({name}, {operand!r})" if op in ("endswith", "contains") else f"{name} {op.upper()} {operand!r}"
        return f"({text}) IS NOT TRUE" if none else text
    if attribute.role is Role.HAS_NULL:
        return f"{attribute.name} has {'no' if none else 'a'} NULL element"
    if attribute.role is Role.CALL:
        return _call_text(attribute, [texts[key] for key, _ in texts.dense(runs)], none)
    if runs == [(KEY_MIN, KEY_MAX)]:
        owner = ".".join(attribute.path) if attribute.role is Role.SIZE else attribute.name
        if attribute.computed_by[0] == "address":
            owner = f"cidr_contains('::/0', {_argument(owner)})"
        return f"{owner} IS {'' if none else 'NOT '}NULL"
    if not runs:
        return "TRUE" if none else "FALSE"
    text = _Condition(attribute, texts).write(texts.dense(runs) if attribute.type.textual else runs)
    return f"({text}) IS NOT TRUE" if none else text


def asks_presence(attribute: Attribute, runs: Runs) -> bool:
    """Returns whether a predicate only tests if a value, or a NULL element, is there: never
    Unknown.
    """
    return attribute.role is Role.HAS_NULL or (runs == [(KEY_MIN, KEY_MAX)] and not attribute.pattern)


def _call_text(attribute: Attribute, literals: list[bytes], none: bool) -> str:
    """Writes that a special function is true for some of these arguments, or for none."""
    call = Call.of(str(attribute.key))
    if none and len(literals) > 1:  # NOT of a function that is unknown is unknown, too
        literals = [literal for literal in literals if literal != UNKNOWN]
    parts = []
    for literal in literals:
        if literal == UNKNOWN:
            parts.append(f"{attribute.name} IS {'NOT ' if none else ''}NULL")
            continue
        test = ElementTest.of(literal) if call.function == EXISTS else None
        if test is not None:
            text = element_text(attribute, test)
        else:
            text = attribute.name[: -len(PLACE) - 1] + arguments_text(call.function, literal) + ")"
        parts.append(f"NOT {text}" if none is not call.marks_false else text)
    return (" AND " if none else " OR ").join(parts)


def element_text(attribute: Attribute, test: ElementTest) -> str:
    """Writes that a condition holds for some elements of a list."""
    text = f"{attribute.name.partition(PLACE)[0]}{test.condition})"
    return f"{text}) >= {test.least}" if test.least else text


class _Condition:
    """A writer of "some value of this attribute is in these intervals"."""

    def __init__(self, attribute: Attribute, texts: LiteralTexts) -> None:
        self._name = attribute.name
        self._type = attribute.type
        self._multi = attribute.multi
        self._sole = attribute.role in (Role.VALUE, Role.ENTRY, Role.COMPUTED)
        self._texts = texts
        self._function, self._constants = attribute.computed_by

    def write(self, runs: Runs) -> str:
        name = self._name
        if self._function == "address" and (text := self._networks(runs)):
            return text
        if self._multi:  # some elements: neighbouring numbers are one interval
            textual = self._type.textual
            points = [key for lo, hi in runs for key in range(lo, hi + 1) if not textual or key % 2 == 1]
            if len(points) == 1:
                return f"array_contains({name}, {self._literal(points[0])})"
            return f"arrays_overlap({name}, array({self._list(points)}))"
        if self._sole and self._type.family is Family.BOOL:
            false, true = (any(lo <= key <= hi for lo, hi in runs) for key in (0, 1))
            if false is not true:
                return name if true else f"NOT ({name})" if " " in name else f"NOT {name}"
        if listed := self._members(runs):
            return f"{name} = {self._literal(listed[0])}" if len(listed) == 1 else f"{name} IN ({self._list(listed)})"
        if runs[0][0] == KEY_MIN and runs[-1][1] == KEY_MAX:
            gaps = [(a[1] + 1, b[0] - 1) for a, b in pairwise(runs)]
            if missing := self._members(gaps):
                if len(missing) == 1:
                    return f"{name} <> {self._literal(missing[0])}"
                return f"{name} NOT IN ({self._list(missing)})"
            if len(gaps) == 1 and (prefix := self._prefix(*gaps[0])):
                return f"{name} NOT LIKE {prefix}"
            if len(gaps) == 1 and self._type.family in _COUNTED:
                return f"{name} NOT BETWEEN {self._literal(gaps[0][0])} AND {self._literal(gaps[0][1])}"
        elif len(runs) == 1 and (prefix := self._prefix(*runs[0])):
            return f"{name} LIKE {prefix}"
        return " OR ".join([self._range(lo, hi) for lo, hi in runs])

    def _networks(self, runs: Runs) -> str:
        """Writes that an address is in some networks, or in none; empty if the runs are none."""
        is_none = runs[0][0] == KEY_MIN and runs[-1][1] == KEY_MAX
        if is_none:
            runs = [(a[1] + 1, b[0] - 1) for a, b in pairwise(runs)]
        calls: list[str] = []
        for lo, hi in runs:
            if lo < 0 or hi >= KEY_MAX or not (lo % 2 and hi % 2):
                return ""
            ends = [address_of(self._texts[key].decode()) for key in (lo, hi)]
            for network in ipaddress.summarize_address_range(*ends):
                calls.append(f"cidr_contains('{network}', {_argument(self._name)})")
        text = " OR ".join(calls)
        return text if not is_none else f"NOT {text}" if len(calls) == 1 else f"NOT ({text})"

    def _is_point(self, lo: int, hi: int) -> bool:
        """Returns whether an interval is one literal, not the space between two."""
        return lo == hi and (not self._type.textual or lo % 2 == 1)

    def _members(self, runs: Runs) -> list[int]:
        """Returns the values in runs that read like a list; none if the runs read like ranges.

        One run is a list if it has one value, or three: two are the ends of a range.
        """
        if all(self._is_point(lo, hi) for lo, hi in runs):
            return [lo for lo, _ in runs]
        count = sum(hi - lo + 1 for lo, hi in runs)
        if self._type.family not in _COUNTED or count > LISTED or (len(runs) == 1 and count != 3):
            return []
        return [key for lo, hi in runs for key in range(lo, hi + 1)]

    def _literal(self, key: int) -> str:
        if self._function == "micros_between":
            return interval_text(key)
        if not self._type.textual:
            return literal_text(self._type, key)
        data = self._texts[key]
        if self._type == UUID and len(data) == 16:
            return f"'{Uuid(bytes=data)}'"
        if self._type.family is Family.BINARY:
            return f"X'{data.hex().upper()}'"
        if self._type.family is Family.WIDE_DECIMAL:
            return wide_text(data, self._type.scale)
        if self._function == "whole":
            return data.decode()
        if self._function == "semver":
            return f"semver({', '.join([quote_text(version_of(data.decode())), *map(str, self._constants)])})"
        return quote_text(data.decode(errors="backslashreplace"))

    def _list(self, keys: list[int]) -> str:
        shown = ", ".join([self._literal(key) for key in keys[:LISTED]])
        return shown + (f", … {len(keys) - LISTED} more" if len(keys) > LISTED else "")

    def _prefix(self, lo: int, hi: int) -> str:
        """Returns the LIKE pattern that was lowered to this interval; empty if there was none."""
        if (
            self._type.family is not Family.STRING
            or self._function == "semver"
            or lo < 0
            or lo % 2 == 0
            or hi % 2 == 1
            or hi >= KEY_MAX
        ):
            return ""
        start, after = self._texts[lo], self._texts[hi]
        if start == b"" or successor(start) != after:
            return ""
        return quote_text(write_like(start.decode(errors="backslashreplace")) + "%")

    def _range(self, lo: int, hi: int) -> str:
        name, textual = self._name, self._type.textual
        if self._is_point(lo, hi):
            return f"{name} = {self._literal(lo)}"
        at_least, at_most = ">=", "<="
        if textual:
            lo, at_least = (lo, ">=") if lo % 2 else (lo - 1, ">")
            hi, at_most = (hi, "<=") if hi % 2 else (hi + 1, "<")
        elif self._type.family is Family.FLOAT:
            if lo != KEY_MIN and len(repr(key_float(lo - 1))) < len(repr(key_float(lo))):
                lo, at_least = lo - 1, ">"
            if hi != KEY_MAX and len(repr(key_float(hi + 1))) < len(repr(key_float(hi))):
                hi, at_most = hi + 1, "<"
        elif self._type.family in _EXACT:
            lo, at_least, hi, at_most = self._rounder(lo, hi)
        low = "" if lo == KEY_MIN or (textual and lo < 0) else f"{name} {at_least} {self._literal(lo)}"
        high = "" if hi >= KEY_MAX else f"{name} {at_most} {self._literal(hi)}"
        if low and high and (at_least, at_most) == (">=", "<="):
            return f"{name} BETWEEN {self._literal(lo)} AND {self._literal(hi)}"
        return " AND ".join([text for text in (low, high) if text])

    def _rounder(self, lo: int, hi: int) -> tuple[int, str, int, str]:
        """Returns the ends of an interval and their signs.

        The value next to an end replaces the end if it is rounder.
        """
        above = lo > KEY_MIN + 1 and self._roundness(lo - 1) < self._roundness(lo)
        below = hi < KEY_MAX - 1 and self._roundness(hi + 1) < self._roundness(hi)
        if lo != KEY_MIN and hi < KEY_MAX and self._type.family in _COUNTED:
            above = below = above and below  # else it reads best as a BETWEEN
        return (lo - 1, ">", *self._end(hi, below)) if above else (lo, ">=", *self._end(hi, below))

    @staticmethod
    def _end(hi: int, below: bool) -> tuple[int, str]:
        return (hi + 1, "<") if below else (hi, "<=")

    def _roundness(self, key: int) -> int:
        """Returns a number that is lower for values that people are likelier to write."""
        text = literal_text(self._type, key)
        if self._type.family is Family.DATE:
            return len(text.removesuffix("'").removesuffix("-01").removesuffix("-01"))
        if self._type.family is Family.TIMESTAMP:
            return len(text.rstrip("'Z0:. "))
        digits = text.replace(".", "").lstrip("-0")
        significant = digits.rstrip("0")
        return 2 * len(significant) - (significant.endswith("5") or significant != digits)


def _argument(call: str) -> str:
    """Returns the argument of a call with one."""
    return call.partition("(")[2][:-1]


def literal_text(type: Type, key: int) -> str:
    """Writes the literal of a key, for types that are not textual."""
    family = type.family
    if family is Family.BOOL:
        return "TRUE" if key else "FALSE"
    if family is Family.UINT64:
        return str(key + UINT64_OFFSET)
    if family is Family.FLOAT:
        value = key_float(key)
        return (
            f"CAST('{value}' AS DOUBLE)"
            if value != value or value in (float("inf"), float("-inf"))
            else repr(value).removesuffix(".0")
        )
    if family is Family.DECIMAL:
        return str(Decimal(key).scaleb(-type.scale, NEVER_ROUNDS))
    if family is Family.DATE:
        ordinal = key + EPOCH
        return f"DATE '{dt.date.fromordinal(ordinal)}'" if 1 <= ordinal <= dt.date.max.toordinal() else f"day {key}"
    if family is Family.TIME:
        width = pa.int32() if type.unit in ("s", "ms") else pa.int64()
        inside = 0 <= key < 86_400 * UNITS[type.unit]
        text = pa.array([key], width).view(time_type(type.unit)).cast(pa.string())[0].as_py() if inside else str(key)
        return f"'{text}'"
    if family is Family.TIMESTAMP:
        return f"TIMESTAMP '{pa.scalar(key, pa.timestamp(type.unit, 'UTC' if type.zone else None)).cast(pa.string())}'"
    return str(key)


def name_of(attribute: Attribute) -> str:
    """Returns the name of an attribute for people: its map entry, or else its column."""
    return attribute.name if attribute.role is Role.ENTRY else ".".join(attribute.path)
