"""Events made of states: each attribute of an event has a value with the given state.

Computed values and special functions have no state that could be given to them. Their columns get
ordinary values instead, so that some events are met by chance. ``match`` then says what is true.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of
from colmatch.events.gather import match_names
from colmatch.events.required import RequiredColumns
from colmatch.given.schema import DERIVED, Family, Role, Type, time_type
from colmatch.kernels.layout import I64, Bools
from colmatch.lowering.keys import UINT64_OFFSET, float_key, key_float
from colmatch.lowering.wide import wide_text
from colmatch.matching.checks.states import States

_NUMBERS = (0, 1, 2, 5, 10, 50, 100, 1000, 10**6, -1)
_TEXTS = ("", "a", "A", "1", "0", "abc", "2024-01-01", "a b", "10.0.0.1", "{}")


class Choice:
    """States of attributes in some events, and the value of each state.

    Parameters
    ----------
    event, state : of each value, in any order; state 0 of an attribute is no value
    count : number of events
    """

    def __init__(self, event: I64, state: I64, count: int) -> None:
        order = np.lexsort((event, state))
        self.event, self.state, self.count = event[order], state[order], count


class EventMaker:
    """A maker of events with the columns that a version needs.

    Attributes
    ----------
    schema : of the events; dictionaries are plain
    """

    def __init__(self, states: States) -> None:
        self._states = states
        columns = [*states.version.attributes.columns, *RequiredColumns(states.schema).columns]
        arrow = states.schema.arrow
        self.schema = pa.schema([pa.field(name, _plain(arrow.field(name).type)) for name in dict.fromkeys(columns)])
        self._at: dict[tuple[tuple[str, ...], Role], list[int]] = {}
        self._computed: dict[tuple[str, ...], list[int]] = {}
        self._guessed: set[tuple[str, ...]] = {(name,) for name in RequiredColumns(states.schema).columns}
        for a, attribute in enumerate(states.attributes):
            if attribute.role in DERIVED:
                self._guessed.update(attribute.paths)
                for path in attribute.paths:
                    self._computed.setdefault(path, []).append(a)
            elif not attribute.is_free:
                role = Role.CALL if attribute.pattern else attribute.role  # patterns are apart
                self._at.setdefault((states.schema.column(attribute.path).path, role), []).append(a)

    def make(self, choice: Choice, seed: int) -> pa.RecordBatch:
        """Returns the events of a choice, one after the other."""
        rng = np.random.default_rng(seed)
        columns = [self._column(choice, (field.name,), field.type, rng) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Returns other events with the columns that a version needs; None if values do not fit."""
        columns = []
        for field in self.schema:
            same = match_names(batch.schema.names, [field.name])
            column = batch.column(same[0]) if same else pa.nulls(batch.num_rows, field.type)
            try:
                columns.append(column.cast(_plain(column.type)).cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return None
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, choice: Choice, path: tuple[str, ...], type: pa.DataType, rng: Any) -> pa.Array:
        if pa.types.is_struct(type):
            fields = [self._column(choice, (*path, field.name), field.type, rng) for field in type]
            return pa.StructArray.from_arrays(fields, fields=list(type)) if fields else pa.nulls(choice.count, type)
        if pa.types.is_map(type):
            return self._map(choice, path, type)
        if pa.types.is_list(type) or pa.types.is_large_list(type):
            return self._list(choice, path, type)
        own = self._at.get((path, Role.VALUE), [])
        patterns = self._at.get((path, Role.CALL), [])
        value_type = self._states.schema.column(path).type
        if value_type is None or not (own or patterns or path in self._guessed):
            return pa.nulls(choice.count, type)
        states = np.full(choice.count, -1)
        for a in own:
            event, state = self._of(choice, a)
            states[event] = state
        out = self._values(own[0], states, type) if own else pa.nulls(choice.count, type)
        if path in self._guessed:
            guesses = self._guesses(choice, path, value_type, type, rng)
            out = out if guesses is None else pc.if_else(pa.array(states < 0), guesses, out)
        return self._with_patterns(choice, out, patterns, states) if patterns else out

    def _guesses(
        self, choice: Choice, path: tuple[str, ...], own: Type, type: pa.DataType, rng: Any
    ) -> pa.Array | None:
        """Returns values of a column that others are computed of: ordinary ones, or the computed
        value that is wanted.
        """
        out = _guess(own, type, rng.integers(0, len(_NUMBERS), choice.count))
        for a in self._computed.get(path, []):
            attribute = self._states.attributes[a]
            if out is not None and attribute.role is Role.COMPUTED and attribute.type.family is own.family:
                event, state = self._of(choice, a)
                states = np.full(choice.count, -1)
                states[event] = np.where(rng.random(len(event)) < 0.5, state, -1)
                if attribute.pattern:  # its states are those of a truth, not of a text
                    _, text = _meeting(*attribute.pattern)
                    meets = pa.array(states > self._states.base[a])
                    out = pc.if_else(meets, pa.scalar(text, pa.string()).cast(type), out)
                    continue
                with suppress(pa.ArrowInvalid):  # the column is narrower than the value
                    wanted = self._values(a, states, type)
                    out = pc.coalesce(wanted, out)
        return out

    def _of(self, choice: Choice, a: int) -> tuple[I64, I64]:
        """Returns the events and states of an attribute."""
        begin, end = np.searchsorted(choice.state, self._states.base[a : a + 2])
        return choice.event[begin:end], choice.state[begin:end]

    def _values(self, a: int, states: I64, type: pa.DataType) -> pa.Array:
        """Returns a value for each state of an attribute; NULL for none, and for states below 0."""
        base = self._states.base[a]
        has = states > base
        own = np.where(has, states, base + 1)
        distinct, place = np.unique(own, return_inverse=True)
        made = self._states.made[distinct]
        values = self._of_keys(a, np.where(made, self._states.key[distinct], 0), type)
        return values.take(pa.array(place.ravel(), mask=~(has & made[place.ravel()])))

    def _of_keys(self, a: int, keys: I64, type: pa.DataType) -> pa.Array:
        attribute = self._states.attributes[a]
        if not attribute.type.textual:
            return _of_numbers(attribute.type, keys, type)
        states = self._states
        begin, end = (int(states.literals.first[i]) for i in (a, a + 1))
        number = keys // 2
        if attribute.type.family is Family.WIDE_DECIMAL:
            words = states.words.take(pa.array(np.where(keys % 2, number, 0), mask=keys % 2 == 0)).to_pylist()
            return _of_texts([None if word is None else wide_text(word, attribute.type.scale) for word in words], type)
        whole = states.words.take(pa.array(np.minimum(number, end - 1), mask=keys % 2 == 0))
        texts = pc.coalesce(whole, states.between(np.clip(number, begin, end), begin, end))
        return _of_bytes(texts, type)

    def _with_patterns(self, choice: Choice, values: pa.Array, patterns: list[int], states: I64) -> pa.Array:
        """Returns texts that also meet patterns, as far as they can be made."""
        wanted: dict[int, list[int]] = {}
        there = np.zeros(choice.count, bool)
        for a in patterns:
            event, state = self._of(choice, a)
            there[event] = True
            for row in event[state > self._states.base[a]].tolist():
                wanted.setdefault(row, []).append(a)
        texts = values.to_pylist()
        known: dict[Any, str | None] = {}
        for row in np.flatnonzero(there | (states >= 0)).tolist():
            asked = tuple(wanted.get(row, ()))
            if asked or texts[row] is not None:
                key = asked, texts[row], int(states[row])
                if key not in known:
                    known[key] = self._text(*key)
                texts[row] = known[key]
            elif states[row] < 0:
                texts[row] = "~"  # it meets few patterns
        return pa.array(texts, values.type)

    def _text(self, patterns: tuple[int, ...], given: str | None, state: int) -> str | None:
        """Returns a text for patterns that it must meet, and maybe a state."""
        if not patterns or (state >= 0 and self._states.key[state] % 2 and not self._states.wide[state]):
            return given
        parts: list[tuple[int, str]] = []
        for a in patterns:
            op, operand = self._states.attributes[a].pattern or ("", "")
            parts.append(_meeting(op, operand))
        parts = sorted(dict.fromkeys(parts))
        longest = max((part for _, part in parts), key=len)
        joined = "".join(part for place, part in parts if part not in longest or part == longest or place)
        return joined if given is None or state < 0 else given + joined

    def _list(self, choice: Choice, path: tuple[str, ...], type: pa.DataType) -> pa.Array:
        none = np.empty(0, np.int64)
        parts: dict[Role, tuple[I64, I64, int]] = {}
        for role in (Role.ELEMENT, Role.SIZE, Role.HAS_NULL):
            for a in self._at.get((path, role), [])[:1]:
                parts[role] = *self._of(choice, a), a
        event, state, element = parts.get(Role.ELEMENT, (none, none, -1))
        present = np.zeros(choice.count, bool)
        present[event] = True
        size = np.bincount(event, minlength=choice.count)
        if Role.SIZE in parts:
            own, asked, a = parts[Role.SIZE]
            there = asked > self._states.base[a]
            present[own] = there
            wish = np.where(there, self._states.key[asked], 0)
            wide = self._states.wide[asked]  # many sizes have the state
            size[own] = np.where(there, np.where(wide, np.maximum(wish, size[own]), wish), 0)
        nulls = np.zeros(choice.count, bool)
        if Role.HAS_NULL in parts:
            own, asked, a = parts[Role.HAS_NULL]
            nulls[own] = asked > self._states.base[a]
            present |= nulls
            size = size + (nulls & (Role.SIZE not in parts or size == np.bincount(event, minlength=choice.count)))
        first = ranges_of(np.where(present, size, 0))
        chosen = np.full(first[-1], -1)
        order = np.argsort(event, kind="stable")
        event, state = event[order], state[order]
        within = np.arange(len(event)) - np.searchsorted(event, event)
        fits = within < (first[1:] - first[:-1])[event]
        chosen[first[event[fits]] + within[fits]] = state[fits]
        last = np.repeat(np.arange(choice.count), first[1:] - first[:-1])
        fill = np.full(choice.count, -1)
        fill[event] = state
        empty = (chosen < 0) & ~nulls[last]
        chosen[empty] = fill[last[empty]]
        if element >= 0:
            values = self._values(element, chosen, _plain(type.value_type))
        else:
            values = pa.nulls(len(chosen), _plain(type.value_type))
        if (Role.HAS_NULL in parts or element < 0) and values.null_count:
            some = _any_value(values.type)
            values = values if some is None else pc.if_else(pa.array(nulls[last]), values, values.fill_null(some))
        return _lists(type, first, values, present)

    def _map(self, choice: Choice, path: tuple[str, ...], type: pa.MapType) -> pa.Array:
        present, size = np.zeros(choice.count, bool), np.zeros(choice.count, np.int64)
        events, keys, values = [], [], []
        item = _plain(type.item_type)
        for a in self._at.get((path, Role.ENTRY), []):
            event, state = self._of(choice, a)
            event, state = event[state > self._states.base[a]], state[state > self._states.base[a]]
            if len(event):
                events.append(event)
                keys += [self._states.attributes[a].key] * len(event)
                values.append(self._values(a, state, item))
                present[event] = True
        for a in self._at.get((path, Role.SIZE), [])[:1]:
            event, state = self._of(choice, a)
            there = state > self._states.base[a]
            present[event] |= there
            size[event] = np.where(there, self._states.key[state], 0)
        joined = np.concatenate(events) if events else np.empty(0, np.int64)
        more = np.maximum(size - np.bincount(joined, minlength=choice.count), 0)
        event = np.concatenate([joined, np.repeat(np.arange(choice.count), more)])
        number = (np.arange(more.sum()) - np.repeat(np.cumsum(more) - more, more)).tolist()  # within the event
        key_type = _plain(type.key_type)
        top = 2 ** (key_type.bit_width - 1) - 1 if pa.types.is_integer(key_type) else 0
        keys += [f"key {i}" if pa.types.is_string(key_type) else top - i % (top + 1) for i in number]
        order = np.argsort(event, kind="stable")
        found = pa.concat_arrays([*values, pa.nulls(len(number), item)]).take(pa.array(order))
        first = pa.array(np.append(np.searchsorted(event[order], np.arange(choice.count)), len(event)).astype(np.int32))
        names = pa.array([keys[i] for i in order.tolist()], key_type)
        maps = pa.MapArray.from_arrays(first, names, found)
        return pc.if_else(pa.array(present), maps, pa.nulls(1, maps.type)[0]).cast(type)


def _plain(type: pa.DataType) -> pa.DataType:
    """Returns a type without dictionaries, views and runs, which have the same values."""
    types = pa.types
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return _plain(type.value_type)
    if types.is_string_view(type) or types.is_large_string(type):
        return pa.string()
    if types.is_binary_view(type) or types.is_large_binary(type):
        return pa.binary()
    if types.is_struct(type):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in type])
    if types.is_map(type):
        return pa.map_(_plain(type.key_type), _plain(type.item_type))
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type) or "list_view" in str(type):
        return pa.list_(pa.field("item", _plain(type.value_type)))
    return type


def _lists(type: pa.DataType, first: I64, values: pa.Array, present: Bools) -> pa.Array:
    offsets = pa.array(first.astype(np.int32), mask=np.append(~present, False))
    return pa.ListArray.from_arrays(offsets, values).cast(type)


def _of_numbers(type: Type, keys: I64, arrow: pa.DataType) -> pa.Array:
    """Returns the values of keys, of types that are not textual."""
    family = type.family
    if family is Family.BOOL:
        return pa.array(keys != 0)
    if family is Family.FLOAT:
        return pa.array(np.array([key_float(key) for key in keys.tolist()], np.float64)).cast(arrow, safe=False)
    if family is Family.UINT64:
        return pa.array(keys.astype(np.uint64) + np.uint64(UINT64_OFFSET))
    if family is Family.DECIMAL:
        words = np.stack([keys, keys >> np.int64(63)], axis=1)
        wide = pa.decimal128(38, type.scale)
        return pa.Array.from_buffers(wide, len(keys), [None, pa.py_buffer(words)]).cast(arrow)
    if family is Family.DATE:
        return pa.array(keys.astype(np.int32)).cast(pa.date32()).cast(arrow)
    if family is Family.TIMESTAMP:
        return pa.array(keys).view(pa.timestamp(type.unit, type.zone)).cast(arrow)
    if family is Family.TIME:
        width = np.int32 if type.unit in ("s", "ms") else np.int64
        return pa.array(keys.astype(width)).view(time_type(type.unit)).cast(arrow)
    return pa.array(keys).cast(arrow)


def _of_bytes(texts: pa.Array, arrow: pa.DataType) -> pa.Array:
    if pa.types.is_string(arrow):
        return texts.cast(pa.binary()).cast(arrow)
    storage = pa.binary(16) if isinstance(arrow, pa.UuidType) else arrow
    if pa.types.is_fixed_size_binary(storage):
        fits = pc.equal(pc.binary_length(texts), storage.byte_width)
        texts = pc.if_else(fits, texts, pa.scalar(None, texts.type))
    return texts.cast(storage).cast(arrow)


def _of_texts(texts: list[str | None], arrow: pa.DataType) -> pa.Array:
    """Returns decimals of texts; NULL where one does not fit."""
    from decimal import Decimal, InvalidOperation

    out = []
    for text in texts:
        try:
            out.append(None if text is None else pa.scalar(Decimal(text), arrow).as_py())
        except (pa.ArrowInvalid, InvalidOperation):
            out.append(None)
    return pa.array(out, arrow)


def _guess(type: Type, arrow: pa.DataType, which: NDArray[np.int64]) -> pa.Array | None:
    """Returns ordinary values of a type."""
    place = pa.array(which)
    if type.family is Family.STRING:
        return pa.array(_TEXTS, arrow).take(place)
    if type.family in (Family.BINARY, Family.WIDE_DECIMAL):
        return None if type.family is Family.BINARY else pa.array(which).cast(arrow)
    if type.family is Family.FLOAT:
        return _of_numbers(type, np.array([float_key(float(n)) for n in _NUMBERS]), arrow).take(place)
    scale = {Family.UINT64: UINT64_OFFSET}.get(type.family, 0)
    small = np.array([max(min(n, 100), -1 if type.family is Family.INT else 0) - scale for n in _NUMBERS], np.int64)
    if type.family is Family.INT and not pa.types.is_signed_integer(arrow):
        small = np.abs(small)
    return _of_numbers(type, small, arrow).take(place)


def _any_value(arrow: pa.DataType) -> pa.Scalar | None:
    """Returns a value of a type; None for types of which NULL does as well."""
    types = pa.types
    if types.is_nested(arrow) or types.is_null(arrow) or isinstance(arrow, pa.BaseExtensionType):
        return None
    if types.is_binary(arrow) or types.is_fixed_size_binary(arrow):
        return pa.array([bytes(arrow.byte_width if types.is_fixed_size_binary(arrow) else 0)], arrow)[0]
    if types.is_string(arrow) or types.is_boolean(arrow):
        return pa.array([0], pa.int8()).cast(arrow)[0]
    return pa.array([0], arrow)[0]


def _meeting(op: str, operand: str) -> tuple[int, str]:
    """Returns a text that may meet a pattern, and 0, 1 or 2: it begins, or stands anywhere, or
    ends.
    """
    if op == "rlike":
        text = re.sub(r"\[\^?\\?(.)[^\]]*\]", r"\1", operand)
        for sign, char in (
            (r"\\d", "1"),
            (r"\\w", "a"),
            (r"\\s", " "),
            (r"\\(.)", r"\1"),
            (r"\|[^)]*", ""),
            (r"\(\?[:i]*", "("),
        ):
            text = re.sub(sign, char, text)
        begins, ends = operand.startswith("^"), operand.endswith("$")
        text = re.sub(r"(?<=.)\{\d+(,\d*)?\}|[\^$()*+?]", "", text).replace(".", "a")
        return 0 if begins else 2 if ends else 1, text
    if op in ("contains", "endswith"):
        return 2 if op == "endswith" else 1, operand
    begins, ends = not operand.startswith("%"), not operand.endswith("%")
    text = re.sub(r"\\(.)|%|_", lambda found: found[1] or ("a" if found[0] == "_" else ""), operand)
    return 0 if begins else 2 if ends else 1, text
