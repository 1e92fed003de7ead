"""What a record of a journal says: one update, lowered, in terms of attributes that it names.

So a record needs no parser when it is read, and no numbers that a matcher has given to attributes.
It begins with a bit for each of ``SECTIONS`` that is not empty, and the bytes of each of these;
then they follow. Many records are read together, column by column, as what they say in the end.

A record has 200 to 400 bytes for one subscription. Only what is left of the records in the end is
indexed: 100,000 single inserts take four seconds.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import distinct, members, ranges_of
from colmatch.errors import StoreError
from colmatch.events.sample import checked_sample
from colmatch.indexing.sound import codes_are_sound, predicates_are_sound
from colmatch.kernels.labels.literals import key_boundaries
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, U8, Codes, Literals, Predicates
from colmatch.lowering.labels import string_labels
from colmatch.lowering.lower import LoweredExpressions
from colmatch.schema import Attribute, Attributes, Family, Role, Type
from colmatch.subscriptions.ids import Ids, ids_of_arrays, ids_to_arrays
from colmatch.subscriptions.intake import Intake
from colmatch.subscriptions.rejected import Rejected
from colmatch.subscriptions.tags import Tags
from colmatch.updates.combined import selected
from colmatch.updates.sections import check_sections

I64 = NDArray[np.int64]

# Of A attributes, B boundaries, C conjunctions, P predicates and so on, as in ``layout``. What
# there is one of for each attribute or conjunction is a number of others: a range without its
# beginning.
SECTIONS = {
    "ids": "<i8",  # of new subscriptions, or the bytes of each; what they replace is not told
    "id_size": "<u4",
    "id_data": "u1",
    "gone": "<i8",  # ids of subscriptions that are deleted
    "gone_size": "<u4",
    "gone_data": "u1",
    "size": "<u4",  # (C) predicates
    "owner": "<u4",  # (C) subscription
    "pred": "<u4",  # (P, 3)
    "run_lo": "<u4",
    "run_hi": "<u4",
    "weight": "<f8",  # (P, 2)
    "program": "u1",  # (C) whether it is a program
    "jump": "<i4",
    "tree_size": "<u4",  # (C)
    "tree": "<i4",
    "attributes": "u1",  # a line of JSON for each
    "bounds": "<u4",  # (A) boundaries
    "bound": "<i8",
    "literals": "<u4",  # (A) literals
    "literal_size": "<u4",
    "literal_data": "u1",
    "rejected": "u1",  # a line of JSON for each
    "local_literal": "u1",
    "priority": "<f8",  # (C)
    "sample": "u1",  # the events that are counted from now on, behind a byte: there may be none
    "tags": "<u4",  # tags of each new subscription
    "tag_size": "<u4",  # bytes of each of them
    "tag_data": "u1",
}
_TYPES = {name: np.dtype(type) for name, type in SECTIONS.items()}
_PLACES = {name: place for place, name in enumerate(SECTIONS)}
_MOST = 2**32 - 1  # bytes of a section


class Change(NamedTuple):
    """What some updates have done together."""

    touched: Ids  # ids of all subscriptions that were inserted, replaced or deleted, once each
    new: Intake  # those that are left
    ids: Ids  # what each update touched, in no particular order
    update: I64  # which one, as the number of its record, did so
    rejected: dict[int, list[Rejected]]  # what updates left out, by the number of the record
    sample: U8 | None  # the events that are counted from then on, None where these stay


def of_insert(new: Intake) -> bytes:
    """Returns the record of an insert or a replace."""
    predicates, codes, literals, _ = new.lowered
    attr = predicates.pred[:, 0] & np.uint32(ATTR_MASK)
    used = distinct(attr)
    pred = predicates.pred.copy()
    pred[:, 0] ^= attr ^ used.searchsorted(attr).astype(np.uint32)
    bounds, bound = _of_some(used, codes.first, codes.bound)
    sections = {
        "size": predicates.first[1:] - predicates.first[:-1],
        "owner": predicates.owner,
        "pred": pred,
        "run_lo": predicates.run_lo,
        "run_hi": predicates.run_hi,
        "weight": predicates.weight,
        "priority": predicates.priority,
        "bounds": bounds,
        "bound": bound,
    } | _ids("ids", "id", new.ids)
    if len(predicates.jump_first):
        sections |= {"program": predicates.jump_first >= 0, "jump": predicates.jump, "tree": predicates.tree}
        sections["tree_size"] = predicates.tree_first[1:] - predicates.tree_first[:-1]
    if len(literals.offset) > 1:
        sections |= _literals(used, literals)
    if len(new.tags):
        sections |= new.tags.sections(len(new.ids))
    members = new.attributes.members
    texts = {
        "attributes": b"\n".join([_attribute_text(members[a]) for a in used.tolist()]),
        "rejected": "\n".join([json.dumps(entry) for entry in new.rejected]).encode() if new.rejected else b"",
        "local_literal": (new.local_literal or "").encode(),
    }
    return _packed(sections, texts)


def of_delete(ids: Ids) -> bytes:
    """Returns the record of a delete."""
    return _packed(_ids("gone", "gone", ids), {})


def of_sample(sample: U8) -> bytes:
    """Returns the record of another sample."""
    return _packed({}, {"sample": b"+" + sample.tobytes()})


def _packed(sections: dict[str, NDArray[Any]], texts: dict[str, bytes]) -> bytes:
    parts = {name: array.astype(_TYPES[name]).tobytes() for name, array in sections.items() if len(array)} | texts
    there = sorted([(_PLACES[name], part) for name, part in parts.items() if part])
    sizes = [len(part) for _, part in there]
    if sizes and max(sizes) > _MOST:
        raise StoreError("an update has more than 4 GB of one thing, which no journal takes: make several of it")
    bits = sum(1 << place for place, _ in there)
    return b"".join([struct.pack(f"<I{len(sizes)}I", bits, *sizes), *[part for _, part in there]])


def _ids(name: str, stem: str, ids: Ids) -> dict[str, NDArray[Any]]:
    arrays = ids_to_arrays(ids)
    if "ids.offset" not in arrays:
        return {name: arrays["ids"]}
    return {f"{stem}_size": arrays["ids.offset"][1:] - arrays["ids.offset"][:-1], f"{stem}_data": arrays["ids"]}


def _of_some(used: NDArray[np.uint32], first: I64, values: NDArray[Any]) -> tuple[I64, NDArray[Any]]:
    """Returns the sizes of some ranges, and what is in them."""
    size: I64 = (first[1:] - first[:-1])[used]
    if size.sum() == len(values):  # as usual: no predicate is about other attributes
        return size, values
    return size, values[members(first[used], ranges_of(size))]


def _literals(used: NDArray[np.uint32], literals: Literals) -> dict[str, NDArray[Any]]:
    offset, data = literals.offset, literals.data
    count, size = _of_some(used, literals.first, offset[1:] - offset[:-1])
    if len(size) < len(offset) - 1:
        begin = offset[members(literals.first[used], ranges_of(count))]
        data = data[members(begin, ranges_of(size))]
    return {"literals": count, "literal_size": size, "literal_data": data}


def attribute_entry(attribute: Attribute) -> list[Any]:
    """Returns an attribute as JSON can hold it."""
    t, pattern = attribute.type, list(attribute.pattern) if attribute.pattern else None
    kind = [int(t.family), t.scale, t.unit, t.zone, t.name]
    return [list(attribute.path), int(attribute.role), kind, attribute.key, pattern]


def attribute_of(entry: Sequence[Any]) -> Attribute:
    """Returns the attribute that ``attribute_entry`` has written down.

    Raises
    ------
    ValueError, TypeError : the entry is of no attribute
    """
    path, role, (family, scale, unit, zone, name), key, pattern = entry
    operator, operand = pattern or ("", "")
    texts = (*path, unit, name, operator, operand, zone or "")
    if not all(isinstance(text, str) for text in texts) or not isinstance(scale, int):
        raise ValueError("an attribute has a value of another type than it should")
    if not isinstance(key, str | int | None):
        raise ValueError("an attribute has a key that is no text, nor a number")
    type = Type(Family(family), scale, unit, zone, name)
    return Attribute(tuple(path), Role(role), type, key, (operator, operand) if pattern else None)


@lru_cache(10_000)
def _attribute_text(attribute: Attribute) -> bytes:
    return json.dumps(attribute_entry(attribute), separators=(",", ":")).encode()


@lru_cache(10_000)
def _attribute(text: bytes) -> Attribute:
    return attribute_of(json.loads(text))


def id_type(record: bytes) -> pa.DataType | None:
    """Returns the type of the ids that a record names, None where it names none."""
    (bits,) = struct.unpack_from("<I", record)
    if bits & (1 << _PLACES["id_size"] | 1 << _PLACES["gone_size"]):
        return pa.string()
    return pa.int64() if bits & (1 << _PLACES["ids"] | 1 << _PLACES["gone"]) else None


class _Columns:
    """The sections of some records, one behind the other."""

    def __init__(self, records: Sequence[bytes]) -> None:
        self._pieces: list[list[bytes]] = [[] for _ in SECTIONS]
        self._sizes = np.zeros((len(SECTIONS), len(records)), np.int64)  # in bytes
        for r, record in enumerate(records):
            (bits,) = struct.unpack_from("<I", record)
            places = [place for place in range(len(SECTIONS)) if bits >> place & 1]
            sizes = struct.unpack_from(f"<{len(places)}I", record, 4)
            at = 4 + 4 * len(places)
            for place, size in zip(places, sizes, strict=True):
                self._pieces[place].append(record[at : at + size])
                self._sizes[place, r] = size
                at += size
            if bits >> len(SECTIONS) or at != len(record):
                raise ValueError("its sections do not fit it")

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.frombuffer(b"".join(self._pieces[_PLACES[name]]), _TYPES[name]).copy()

    def texts(self, name: str) -> list[bytes]:
        """Returns what there is of each record that has it."""
        return self._pieces[_PLACES[name]]

    def sizes(self, name: str) -> I64:
        """Returns how many values each record has."""
        sizes: I64 = self._sizes[_PLACES[name]] // _TYPES[name].itemsize
        return sizes

    def filled(self, name: str, sizes: I64) -> NDArray[Any]:
        """Returns values with zeros for those records that have none; nothing if none has any."""
        values, own = self[name], self.sizes(name)
        if not len(values):
            return values
        whole = np.zeros(int(sizes.sum()), values.dtype)
        whole[members(ranges_of(sizes)[:-1], ranges_of(own))] = values
        return whole


def read(records: Sequence[bytes], attributes: Attributes) -> Change:
    """Returns what some records of one type of ids say in the end.

    attributes : those that are not there are added

    Raises
    ------
    ValueError, TypeError, KeyError, IndexError, struct.error : a record is none of this format
    """
    columns = _Columns(records)
    check_sections(columns)
    slots, size, subs = columns.sizes("bounds"), columns.sizes("size"), columns.sizes("ids") + columns.sizes("id_size")
    slot_attr = np.array(
        [attributes.intern(_attribute(line)) for text in columns.texts("attributes") for line in text.split(b"\n")],
        np.int64,
    )
    predicates = _predicates(columns, subs, size, slots)
    literal_count = columns.filled("literals", slots) if len(columns["literals"]) else np.zeros(len(slot_attr), "<u4")
    literal_attr = np.repeat(slot_attr, literal_count)
    data, offset = columns["literal_data"], ranges_of(columns["literal_size"])
    texts = pa.Array.from_buffers(
        pa.large_binary(), len(literal_attr), [None, pa.py_buffer(offset), pa.py_buffer(data)]
    )
    (labels, *_), literals = string_labels([literal_attr], [texts], len(attributes))
    first, bound = ranges_of(columns["bounds"]), columns["bound"]
    texts_of_slot = np.repeat(literal_count, np.diff(first)).astype(np.int64)
    if len(bound) and ((texts_of_slot > 0) & ((bound < 1) | (bound > 2 * texts_of_slot))).any():
        raise ValueError("a boundary is of no literal")
    key_boundaries(contiguous(first), bound, contiguous(ranges_of(literal_count)), contiguous(labels))
    codes = _coded(predicates, slot_attr, first, bound, attributes)
    codes_are_sound(codes)
    ids = _joined_ids(columns, "ids", "id")
    predicates_are_sound(predicates, codes, len(ids))
    keep, touched, each, update = _left(
        ids, subs, _joined_ids(columns, "gone", "gone"), columns.sizes("gone") + columns.sizes("gone_size")
    )
    tags = Tags.of_sections(columns.filled("tags", subs), columns["tag_size"], columns["tag_data"])
    if not keep.all():
        predicates = selected(predicates, codes, keep)
        ids, tags = ids.filter(keep), tags.filter(keep)
    local = next((text.decode() for text in columns.texts("local_literal")), None)
    lowered = LoweredExpressions(predicates, codes, literals, {}).frozen()
    samples = [contiguous(np.frombuffer(text, np.uint8)[1:]) for text in columns.texts("sample")]
    sample = checked_sample(samples[-1]) if samples else None
    return Change(touched, Intake(lowered, attributes, ids, [], local, tags), each, update, _rejected(columns), sample)


def _joined_ids(columns: _Columns, name: str, stem: str) -> Ids:
    sizes = columns[f"{stem}_size"]
    if not len(sizes):
        return ids_of_arrays({"ids": columns[name]})
    return ids_of_arrays({"ids.offset": ranges_of(sizes).astype(np.int32), "ids": columns[f"{stem}_data"]})


def _rejected(columns: _Columns) -> dict[int, list[Rejected]]:
    """Returns what each record left out that has some."""
    places = np.flatnonzero(columns.sizes("rejected")).tolist()
    return {
        place: [Rejected.of_list(json.loads(line)) for line in text.split(b"\n")]
        for place, text in zip(places, columns.texts("rejected"), strict=True)
    }


def _left(ids: Ids, subs: I64, gone: Ids, deletes: I64) -> tuple[NDArray[np.bool_], Ids, Ids, I64]:
    """Returns whether each subscription that came is there in the end, and all ids, once each.

    The third and fourth are all ids of all records, and the record of each.

    subs, deletes : how many of both each record has
    """
    count = len(ids)
    step = np.repeat(np.concatenate([np.arange(len(subs))] * 2), np.concatenate([subs, deletes]))
    both = [some.array for some in (ids, gone) if len(some)] or [ids.array]
    each = pa.chunked_array(both).combine_chunks()
    known = each.dictionary_encode()
    which = known.indices.to_numpy()
    last = np.full(len(known.dictionary), -1)
    np.maximum.at(last, which, step)
    return last[which[:count]] == step[:count], Ids(known.dictionary), Ids(each), step


def _predicates(columns: _Columns, subs: I64, size: I64, slots: I64) -> Predicates:
    """Returns the predicates of all records; their attributes are numbered through."""
    count = columns.sizes("pred") // 3
    pred = columns["pred"].reshape(-1, 3)
    several = pred[:, 0] & np.uint32(FLAG_RUN) != 0
    pred[:, 0] += _shifts(slots, count)
    pred[several, 1:] += _shifts(columns.sizes("run_lo"), count)[several, None]
    first = ranges_of(columns["size"])
    program = columns.filled("program", size).astype(bool)
    jump_first, tree_first = np.empty(0, np.int64), np.empty(0, np.int64)
    if program.any():
        jump_first = np.full(len(program), -1)
        jump_first[program] = ranges_of(np.diff(first)[program])[:-1]
        tree_first = ranges_of(columns.filled("tree_size", size))
    return Predicates(
        first,
        pred,
        columns["run_lo"],
        columns["run_hi"],
        columns["owner"] + _shifts(subs, size),
        columns.filled("weight", 2 * count).reshape(-1, 2),
        jump_first,
        columns["jump"].reshape(-1, 2),
        tree_first,
        columns["tree"],
        columns.filled("priority", size),
    )


def _shifts(sizes: I64, counts: I64) -> NDArray[np.uint32]:
    """Returns how many of one thing earlier records have, for each of another thing."""
    return np.repeat(ranges_of(sizes)[:-1], counts).astype(np.uint32)


def _coded(predicates: Predicates, slot_attr: I64, first: I64, bound: I64, attributes: Attributes) -> Codes:
    """Returns codes of all boundaries, and gives the predicates these codes and attributes.

    slot_attr (S) : attribute of each number that predicates have for one
    first (S + 1), bound (B) : boundaries that their codes are of
    """
    attr = np.repeat(slot_attr, np.diff(first))
    order = np.lexsort((bound, attr))
    attr, bound = attr[order], bound[order]
    new = np.ones(len(order), bool)
    new[1:] = (attr[1:] != attr[:-1]) | (bound[1:] != bound[:-1])
    place = np.zeros(len(order) + 1, np.int64)  # one more, for those that have no boundary
    place[order] = np.cumsum(new) - 1
    out_first = np.searchsorted(attr[new], np.arange(len(attributes) + 1))
    pred = predicates.pred
    slot = (pred[:, 0] & np.uint32(ATTR_MASK)).astype(np.int64)
    several = pred[:, 0] & np.uint32(FLAG_RUN) != 0
    runs = pred[several, 1].astype(np.int64)
    each = ranges_of(pred[several, 2] - runs)
    run_slot, used = np.zeros(len(predicates.run_lo), np.int64), np.zeros(len(predicates.run_lo), bool)
    place_of_run = members(runs, each)
    run_slot[place_of_run], used[place_of_run] = np.repeat(slot[several], np.diff(each)), True
    for low, high, own, which in (
        (pred[:, 1], pred[:, 2], slot, ~several & (pred[:, 1] <= pred[:, 2])),
        (predicates.run_lo, predicates.run_hi, run_slot, used),
    ):
        begin, end, base, top = first[own], first[own + 1], out_first[slot_attr[own]], out_first[slot_attr[own] + 1]
        below, above = begin + low.astype(np.int64) - 2, begin + high.astype(np.int64) - 1
        lowest = np.where(low > 1, place[np.where(which & (low > 1), below, -1)] - base + 2, 1)
        inside = above < end
        highest = np.where(inside, place[np.where(which & inside, above, -1)], top) - base + 1
        low[which], high[which] = lowest[which], highest[which]
    pred[:, 0] ^= (slot ^ slot_attr[slot]).astype(np.uint32)
    return Codes(out_first, bound[new], np.array(attributes.multi, np.uint8))
