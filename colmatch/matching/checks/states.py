"""States of attributes, and the sets of states that predicates allow.

An attribute of one value has a state in each event: 0 for no value, else the code of its value. All
values with one code are alike to all predicates. So an event is a choice of states, and a predicate
is a set of states. States of all attributes are numbered together.

An attribute with several values, such as the elements of a list, has a set of states. Its
predicates keep their intervals: some value must lie there, or none may.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of, sizes_of
from colmatch.given.schema import UNITS, UUID, Attribute, Family, Role, Schema
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import ATTR_MASK, FLAG_MULTI, FLAG_NONE, I64, KEY_MAX, KEY_MIN, Bools, Predicates
from colmatch.lowering.keys import HIGHEST, LOWEST, NAN, UINT64_OFFSET, float_keys
from colmatch.lowering.times import EPOCH
from colmatch.predicates.columns import has_runs
from colmatch.updates.combined import combine
from colmatch.updates.literals import whole
from colmatch.updates.versions import Version

LONGEST_LIST = 1000  # elements of a list in an example
_FIRST_DAY, _LAST_DAY = 1 - EPOCH, dt.date.max.toordinal() - EPOCH  # those that Python has


class Runs(NamedTuple):
    """Closed intervals of states, by predicate."""

    first: I64  # (P + 1) predicate -> its intervals
    low: I64
    high: I64

    def of(self, p: int) -> list[tuple[int, int]]:
        """Returns the intervals of a predicate."""
        begin, end = self.first[p], self.first[p + 1]
        return list(zip(self.low[begin:end].tolist(), self.high[begin:end].tolist(), strict=True))


class States:
    """The states of the attributes of a version, and its predicates with sets of them.

    Attributes
    ----------
    predicates, codes : of all segments, by subscription, with dense codes
    base : (A + 1) attribute -> its states; the first is "no value"
    attr, multi, none : of each predicate: attribute, whether that has several values, ``FLAG_NONE``
    runs : what each predicate allows; of attributes with several values, its intervals
    possible : (S) False for a state that no event can have
    made : (S) whether a value of the column's type has the state
    key : (S) key of that value; of texts, 2 * n + 1 for literal n, and 2 * n for a text before it
    """

    def __init__(self, version: Version, schema: Schema) -> None:
        self.version = version
        self.schema = schema
        merged = combine(version.segments, version.bases, version.live())
        self.predicates: Predicates = merged.by_subscription()
        self.codes = merged.codes
        self.attributes = version.attributes.members[: len(self.codes.multi)]
        self.top = sizes_of(self.codes.first) + 1
        self.base = ranges_of(self.top + 1)
        word = self.predicates.pred[:, 0]
        self.attr = (word & np.uint32(ATTR_MASK)).astype(np.int64)
        self.multi: Bools = word & np.uint32(FLAG_MULTI) != 0
        self.none: Bools = word & np.uint32(FLAG_NONE) != 0
        self.runs = self._runs()
        self._set_values()

    @cached_property
    def programs(self) -> Bools:
        """Returns whether each conjunction is a program."""
        start = self.predicates.jump_first
        return start >= 0 if len(start) else np.zeros(len(self.predicates.owner), bool)

    def required(self, attr: int) -> bool:
        """Returns whether each event must have a value of an attribute."""
        attribute = self.attributes[attr]
        if attribute.is_free or len(attribute.path) > 1 or attribute.pattern:
            return False
        if attribute.role not in (Role.VALUE, Role.SIZE):
            return False
        return not self.schema.arrow.field(self.schema.column(attribute.path).path[0]).nullable

    def _runs(self) -> Runs:
        pred, run_lo, run_hi = self.predicates.pred, self.predicates.run_lo, self.predicates.run_hi
        low, high = pred[:, 1].astype(np.int64), pred[:, 2].astype(np.int64)
        several, base = has_runs(self.predicates), self.base[self.attr]
        count = np.where(several, high - low, low <= high)
        # Predicates of one value that ask for no value in their intervals allow what is between
        turned = self.none & ~self.multi
        first = ranges_of(count + turned)
        out_low, out_high = np.empty(first[-1], np.int64), np.empty(first[-1], np.int64)
        one = np.flatnonzero(~several & ~turned & (count > 0))
        out_low[first[one]], out_high[first[one]] = (low + base)[one], (high + base)[one]
        some = np.flatnonzero((several | turned) & (count > 0))
        inner = ranges_of(count[some])
        place = members(low[some], inner)
        of = np.repeat(some, count[some])
        at = members(first[some], inner)
        listed = several[of]
        lows, highs = low[of], high[of]
        lows[listed], highs[listed] = run_lo[place[listed]], run_hi[place[listed]]
        around = turned[of]
        out_low[at[~around]], out_high[at[~around]] = (lows + base[of])[~around], (highs + base[of])[~around]
        outer = np.flatnonzero(turned)
        out_low[first[outer]], out_high[first[outer + 1] - 1] = base[outer], (base + self.top[self.attr])[outer]
        out_high[at[around]], out_low[at[around] + 1] = (lows + base[of])[around] - 1, (highs + base[of])[around] + 1
        kept = out_low <= out_high
        if kept.all():
            return Runs(first, out_low, out_high)
        before = ranges_of(kept)
        return Runs(before[first], out_low[kept], out_high[kept])

    @cached_property
    def wide(self) -> Bools:
        """Returns whether several keys have each state: (S)."""
        _, low, high, absent = self.limits
        return (low < high) & ~absent

    @cached_property
    def limits(self) -> tuple[I64, I64, I64, Bools]:
        """Returns attribute, lowest and highest key of each state, and whether it is "no value"."""
        attr = np.repeat(np.arange(len(self.top)), self.top + 1)
        low, high = np.full(len(attr), KEY_MIN), np.full(len(attr), KEY_MAX)
        absent = np.zeros(len(attr), bool)
        absent[self.base[:-1]] = True
        bound = np.arange(len(self.codes.bound)) + np.repeat(
            self.base[:-1] + 1 - self.codes.first[:-1], sizes_of(self.codes.first)
        )
        low[bound + 1], high[bound] = self.codes.bound, self.codes.bound - 1
        return attr, low, high, absent

    def _set_values(self) -> None:
        """Finds out which states are possible, and a value for each."""
        attr, low, high, absent = self.limits
        limits = [_limits(attribute, self.arrow(i)) for i, attribute in enumerate(self.attributes)]
        limit = np.array(limits, np.int64).reshape(-1, 4)
        least, most = np.maximum(low, limit[attr, 0]), np.minimum(high, limit[attr, 1])
        self.possible: Bools = least <= most
        least, most = np.maximum(low, limit[attr, 2]), np.minimum(high, limit[attr, 3])
        self.made: Bools = least <= most
        zero = (least <= 0) & (most >= 0)
        self.key: I64 = np.where(zero, 0, np.where(least > 0, least, most))
        families = np.array([_family(attribute) for attribute in self.attributes], np.int64)
        for family, choose in ((Family.FLOAT, self._choose_floats), (Family.STRING, self._choose_texts)):
            for a in np.flatnonzero(families == family).tolist():
                choose(a, slice(self.base[a] + 1, self.base[a + 1]), low, high)
        self.possible[absent] = [not self.required(a) for a in range(len(self.attributes))]
        self.made[absent] = self.possible[absent]
        self.made &= self.possible

    def _choose_floats(self, a: int, at: slice, low: I64, high: I64) -> None:
        least, most = np.maximum(low[at], LOWEST), np.minimum(high[at], HIGHEST)
        has_nan, has_number = (low[at] <= NAN) & (high[at] >= NAN), least <= most
        self.possible[at] = has_nan | has_number
        width: Any = {16: np.float16, 32: np.float32}.get(getattr(self.arrow(a), "bit_width", 64), np.float64)
        ends = [np.where(keys >= 0, keys, keys ^ np.int64(KEY_MAX)).view(np.float64) for keys in (least, most)]
        key, made = np.full(len(least), NAN), np.zeros(len(least), bool)
        with np.errstate(all="ignore"):
            above = np.nextafter(ends[0].astype(width), width(np.inf))
            tries = [
                above,
                *(end.astype(width) for end in ends),
                np.ceil(ends[0]),
                np.floor(ends[1]),
                np.zeros(len(least)),
            ]
            for value in tries:  # the last finite one that fits is the roundest
                own = float_keys(value.astype(width).astype(np.float64))
                fits = has_number & (least <= own) & (own <= most) & (np.isfinite(value) | ~made)
                key, made = np.where(fits, own, key), made | fits
        self.key[at], self.made[at] = key, made | has_nan

    def _choose_texts(self, a: int, at: slice, low: I64, high: I64) -> None:
        literals = self.literals
        begin, end = (int(literals.first[i]) if i < len(literals.first) else len(literals.label) for i in (a, a + 1))
        label = literals.label[begin:end]
        place = np.searchsorted(label, low[at])
        has = place < len(label)
        has[has] = label[place[has]] <= high[at][has]
        self.key[at] = 2 * (begin + place) + has
        self.possible[at] = True
        own, gaps = self.attributes[a], np.flatnonzero(~has)
        fills = own.type.family is Family.STRING or not pa.types.is_fixed_size_binary(self.arrow(a))
        fills &= own.type.family is not Family.WIDE_DECIMAL and own.type != UUID
        self.made[at] = has | fills
        if fills and own.role is not Role.CALL:
            texts = self.between(begin + place[gaps], begin, end)
            self.possible[np.arange(at.start, at.stop)[gaps]] = pc.is_valid(texts).to_numpy(zero_copy_only=False)

    def between(self, number: I64, begin: int, end: int) -> pa.LargeBinaryArray:
        """Returns a text before each literal and behind the one before it; NULL if there is none.

        begin, end : literals of the attribute
        """
        words = self.words
        before = words.take(pa.array(np.where(number > begin, number - 1, 0), mask=number <= begin))
        after = words.take(pa.array(np.where(number < end, number, 0), mask=number >= end))
        out = pa.nulls(len(number), words.type)
        none, nothing = pa.scalar(None, words.type), pa.scalar(b"", words.type)
        for tail in (b"0", b"\0"):
            text = pc.binary_join_element_wise(before, pa.scalar(tail, words.type), nothing)
            out = pc.coalesce(out, pc.if_else(pc.fill_null(pc.less(text, after), True), text, none))
        first = pc.if_else(pc.fill_null(pc.not_equal(after, nothing), True), nothing, none)
        return pc.if_else(before.is_null(), first, out)

    @cached_property
    def literals(self) -> Any:
        """Returns the string literals of all attributes, with labels."""
        return whole(self.version.literals)

    @cached_property
    def words(self) -> pa.LargeBinaryArray:
        """Returns the bytes of all string literals."""
        offset, data = (np.ascontiguousarray(part) for part in self.literals[1:3])
        buffers = [None, pa.py_buffer(offset), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(offset) - 1, buffers)

    def arrow(self, a: int) -> pa.DataType:
        """Returns the Arrow type of an attribute's values, without a dictionary around it."""
        attribute = self.attributes[a]
        if attribute.is_free or attribute.role in (Role.CALL, Role.COMPUTED, Role.SIZE, Role.HAS_NULL):
            return pa.int64()
        type = self.schema.column(attribute.path).arrow
        if attribute.role is Role.ELEMENT:
            type = type.value_type
        elif attribute.role is Role.ENTRY:
            type = type.item_type
        while pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type):
            type = type.value_type
        return type

    def allow(self, allowed: Bools) -> Bools:
        """Returns whether each predicate has an allowed state: (P)."""
        before, (first, low, high) = ranges_of(allowed), self.runs
        some = before[high + 1] > before[low]
        if len(some) == len(first) - 1 and (first[1:] > first[:-1]).all():
            return some  # one interval each
        each = ranges_of(some)
        return each[first[1:]] > each[first[:-1]]

    def fails(self, bad: Bools) -> NDArray[np.bool_]:
        """Returns which plain conjunctions have a bad predicate: (C)."""
        before, first = ranges_of(bad), self.predicates.first
        return (before[first[1:]] > before[first[:-1]]) & ~self.programs


def _family(attribute: Attribute) -> int:
    """Returns FLOAT or STRING for values that need special treatment, or -1."""
    if attribute.pattern or attribute.is_free or attribute.role in (Role.SIZE, Role.HAS_NULL):
        return -1
    if attribute.type.textual:
        return Family.STRING
    return Family.FLOAT if attribute.type.family is Family.FLOAT else -1


def _limits(attribute: Attribute, arrow: pa.DataType) -> tuple[int, int, int, int]:
    """Returns the least and the greatest key that events can have, and of those that are made."""
    family, types = attribute.type.family, pa.types
    if attribute.pattern or attribute.role is Role.HAS_NULL:
        return 1, 1, 1, 1
    if attribute.role is Role.SIZE:
        return 0, KEY_MAX, 0, LONGEST_LIST
    if family is Family.BOOL:
        return 0, 1, 0, 1
    made = KEY_MIN, KEY_MAX
    if family is Family.INT and attribute.role is not Role.COMPUTED and types.is_integer(arrow):
        bits = arrow.bit_width
        made = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if types.is_signed_integer(arrow) else (0, (1 << bits) - 1)
    elif family is Family.UINT64:
        made = -UINT64_OFFSET, KEY_MAX
    elif family is Family.DECIMAL and types.is_decimal(arrow):
        made = 1 - 10**arrow.precision, 10**arrow.precision - 1
    elif family is Family.DATE:
        made = _FIRST_DAY, _LAST_DAY
    elif family is Family.TIMESTAMP:
        day = 86_400 * UNITS[attribute.type.unit]
        made = max(_FIRST_DAY * day, KEY_MIN), min(_LAST_DAY * day, KEY_MAX)
    elif family is Family.TIME:
        made = 0, 86_400 * UNITS[attribute.type.unit] - 1
    return KEY_MIN, KEY_MAX, *made
