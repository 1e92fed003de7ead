"""Records of a journal: one lowered update each, with the attributes that it names.

So a record is read without a parser, and does not depend on a matcher's attribute ids. It holds
subscriptions by key, as pages do; keys of texts count the literals of the record. Many records are
read together, section by section, for their effect in the end.

A record has 200 to 400 bytes for one subscription. Only subscriptions that are left in the end are
indexed: 100,000 single inserts take four seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import distinct, members, ranges_of, rows_of, sizes_of
from colmatch.errors import Rejected, StoreError, parse_rejected
from colmatch.events.sample import check_sample
from colmatch.given.schema import Attribute, Attributes, Family, Role, Type
from colmatch.given.session import SessionParts, read_session_parts
from colmatch.kernels.layout import ATTR_MASK, I64, KEY_MAX, KEY_MIN, U8, Literals
from colmatch.kinds.sound import check_codes, check_predicates
from colmatch.lowering.labels import string_labels
from colmatch.lowering.lower import LoweredExpressions
from colmatch.predicates.columns import take
from colmatch.predicates.keys import KeyIntervals, keys_of, to_codes
from colmatch.predicates.records import RecordLayout, RecordReader, check, sums
from colmatch.predicates.sections import predicates_of, shifts
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.intake import NewSubscriptions
from colmatch.updates.sections import (
    BYTES,
    SECTIONS,
    SIZE,
    bytes_of,
    id_sections,
    ids_of,
    kept_texts_of,
    sections_of,
    sections_of_ids,
    tags_of,
)

# A size represents a text, or a range of rows, as of an attribute's literals.
FORM = RecordLayout(
    id_sections("gone", "gone")  # of deleted subscriptions; replaced ones are not recorded
    | dict.fromkeys(("attributes", "rejected"), BYTES)  # a line of JSON for each
    | {"literals": SIZE, "literal_size": SIZE, "literal_data": BYTES}  # literals of each attribute
    | {"session_parts": BYTES}  # a line of JSON
    | {"sample": BYTES}  # the events that are counted from now on, behind a byte: there may be none
    | SECTIONS
    | {"definitions": BYTES}  # an object of JSON: all of them, where some have changed
    | {"restored": BYTES}  # a whole matcher, as it is saved, in place of everything before
)


class RecordedChange(NamedTuple):
    """The effect of several updates together."""

    touched: Ids  # ids of all subscriptions that were inserted, replaced or deleted, once each
    new: NewSubscriptions  # subscriptions that are left
    ids: Ids  # touched by each update, in no particular order
    update: I64  # number of the record that touched each id
    rejected: dict[int, list[Rejected]]  # rejected subscriptions, by the number of the record
    sample: U8 | None  # the events that are counted from then on, None without a change
    definitions: dict[str, str] | None  # all definitions from then on, None without a change


def of_update(new: NewSubscriptions | None, gone: Ids | None, definitions: Mapping[str, str] | None) -> bytes:
    """Returns the record of an update: new subscriptions, and ids that were deleted before.

    definitions : all definitions, where some have changed
    """
    sections = {} if new is None else _sections_of_new(new)
    if definitions is not None:
        sections["definitions"] = _text(json.dumps(dict(definitions)).encode())
    if gone is not None:
        parts = sections_of_ids("gone", "gone", gone, np.array([0, len(gone)]))
        sections |= {name: rows for name, (rows, _) in parts.items()}
    return _pack(sections)


def _sections_of_new(new: NewSubscriptions) -> dict[str, NDArray[Any]]:
    predicates, codes, literals, _ = new.lowered
    attr = predicates.pred[:, 0] & np.uint32(ATTR_MASK)
    used = distinct(attr)
    # Store predicates, ids and tags
    each = np.array([0, len(predicates.owner)]), np.array([0, len(new.ids)])
    parts = sections_of(predicates, keys_of(predicates, codes), new.ids, new.tags, new.texts, *each)
    sections = {name: rows for name, (rows, _) in parts.items()}
    # Number the attributes within the record
    sections["word"] = sections["word"] ^ attr ^ used.searchsorted(attr).astype(np.uint32)
    if len(literals.offset) > 1:
        sections |= _literals(used, literals)
    members = new.attributes.members
    sections["attributes"] = _text(b"\n".join([_attribute_text(members[a]) for a in used.tolist()]))
    if new.rejected:
        sections["rejected"] = _text("\n".join([json.dumps(entry) for entry in new.rejected]).encode())
    if any(new.session_parts):
        sections["session_parts"] = _text(json.dumps(new.session_parts).encode())
    return sections


def of_restored(saved: bytes) -> bytes:
    """Returns the record of a version that was restored, from the bytes of a saved matcher."""
    return _pack({"restored": _text(saved)})


def is_restored(record: bytes) -> bool:
    """Returns whether a record is of a version that was restored."""
    return "restored" in FORM.names(record)


def restored(record: bytes) -> bytes:
    """Returns the saved matcher of the record of a restored version."""
    records = RecordReader(FORM, np.frombuffer(record, np.uint32), ranges_of([len(record) // 4]))
    return next(iter(records.texts("restored")))


def of_sample(sample: U8) -> bytes:
    """Returns the record of a new sample."""
    return _pack({"sample": _text(b"+" + sample.tobytes())})


def _text(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _pack(sections: dict[str, NDArray[Any]]) -> bytes:
    try:
        return FORM.pack(sections)
    except OverflowError:
        raise StoreError(
            "an update has more than 4 GB of one thing, which no journal takes: make several of it"
        ) from None


def _literals(used: NDArray[np.uint32], literals: Literals) -> dict[str, NDArray[Any]]:
    """Returns the literals of some attributes."""
    first, size = literals.first, sizes_of(literals.offset)
    count = sizes_of(first)[used]
    chosen = members(first[used], ranges_of(count))
    data = rows_of(literals.data, literals.offset[chosen], ranges_of(size[chosen]))
    return {"literals": count, "literal_size": size[chosen], "literal_data": data}


def attribute_entry(attribute: Attribute) -> list[Any]:
    """Returns an attribute as a list for JSON."""
    t, pattern = attribute.type, list(attribute.pattern) if attribute.pattern else None
    kind = [int(t.family), t.scale, t.unit, t.zone, t.name]
    return [list(attribute.path), int(attribute.role), kind, attribute.key, pattern]


def attribute_of(entry: Sequence[Any]) -> Attribute:
    """Returns the attribute of an entry that ``attribute_entry`` made.

    Raises ValueError, TypeError: the entry is of no attribute.
    """
    path, role, (family, scale, unit, zone, name), key, pattern = entry
    operator, operand = pattern or ("", "")
    texts = (*path, unit, name, operator, operand, "" if zone is None else zone)
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
    """Returns the type of the ids in a record, None where it has no ids."""
    there = FORM.names(record)
    if not there.isdisjoint(("id_size", "gone_size")):
        return pa.string()
    return None if there.isdisjoint(("ids", "gone")) else pa.int64()


def read(journalled: Sequence[bytes], attributes: Attributes) -> RecordedChange:
    """Returns the effect of records that have one type of ids.

    attributes : missing ones are added

    Raises ValueError, TypeError, KeyError, IndexError, struct.error: a record has another format.
    """
    check(not any(len(record) % 4 for record in journalled))
    first = ranges_of([len(record) // 4 for record in journalled])
    records = RecordReader(FORM, np.frombuffer(b"".join(journalled), np.uint32), first)
    # Read ids and predicates
    (ids, subs), (gone, deletes) = ids_of(records), ids_of(records, "gone", "gone")
    preds, keys = predicates_of(records, subs)
    # Give each attribute of a record the id that it has in ``attributes``
    lines = [text.split(b"\n") for text in records.texts("attributes")]
    slots = np.zeros(records.count, np.int64)
    slots[records.counts("attributes") > 0] = [len(group) for group in lines]
    slot_attr = np.array([attributes.intern(_attribute(line)) for group in lines for line in group], np.int64)
    word = preds.pred[:, 0]
    slot = (word & np.uint32(ATTR_MASK)) + shifts(slots, records.counts("word"))
    # Replace numbers of literals by keys
    literal_count = records.fill_rows("literals", slots)
    check((sums(literal_count, slots) == records.counts("literal_size")).all())
    labels, literals = _read_literals(records, np.repeat(slot_attr, literal_count), len(attributes))
    keys = _with_labels(keys, slot, ranges_of(literal_count), labels)
    preds.pred[:, 0] = word & ~np.uint32(ATTR_MASK) | slot_attr[slot].astype(np.uint32)
    # Code the keys, and check the result
    predicates, codes = to_codes(preds, keys, np.array(attributes.multi, np.uint8))
    check_codes(codes)
    check_predicates(predicates, codes, len(ids))
    # Keep the subscriptions that are left in the end
    keep, touched, each, update = _find_left(ids, subs, gone, deletes)
    tags, texts = tags_of(records, subs), kept_texts_of(records, subs)
    if not keep.all():
        predicates = take(predicates, np.flatnonzero(keep[predicates.owner]))
        predicates = predicates._replace(owner=np.cumsum(keep, dtype=np.uint32)[predicates.owner] - np.uint32(1))
        ids, tags, texts = ids.filter(keep), tags.filter(keep), texts.filter(pa.array(keep))
    parts = reduce(
        SessionParts.with_others,
        map(read_session_parts, map(json.loads, records.texts("session_parts"))),
        SessionParts(),
    )
    lowered = LoweredExpressions(predicates, codes, literals, {}).freeze()
    samples = [contiguous(np.frombuffer(text, np.uint8)[1:]) for text in records.texts("sample")]
    sample = check_sample(samples[-1]) if samples else None
    definitions = [check_definitions(json.loads(text)) for text in records.texts("definitions")]
    return RecordedChange(
        touched,
        NewSubscriptions(lowered, attributes, ids, [], parts, tags, texts),
        each,
        update,
        _read_rejected(records),
        sample,
        definitions[-1] if definitions else None,
    )


def check_definitions(read: object) -> dict[str, str]:
    """Returns definitions that were read from JSON. Raises ValueError: they are none."""
    if not isinstance(read, dict) or not all(isinstance(text, str) for text in read.values()):
        raise ValueError("definitions are not texts by name")
    return read


def _read_literals(records: RecordReader, attr: I64, attributes: int) -> tuple[I64, Literals]:
    """Returns the key of each literal of a record, and the literals of all records."""
    offset, data = bytes_of(records, "literal_size", "literal_data")
    texts = pa.Array.from_buffers(pa.large_binary(), len(attr), [None, pa.py_buffer(offset), pa.py_buffer(data)])
    (labels, *_), literals = string_labels([attr], [texts], attributes)
    return labels, literals


def _with_labels(keys: KeyIntervals, slot: NDArray[Any], first: I64, labels: I64) -> KeyIntervals:
    """Replaces numbers of literals in keys by labels.

    slot (P) : number of an attribute in its record, counted over all records; the literals of a
        slot begin at ``first``
    labels : of the literals of all records
    """
    if not len(labels):
        return keys
    slot = np.repeat(slot, sizes_of(keys.first))
    begin, most = first[slot], 2 * sizes_of(first)[slot]

    def moved(key: I64, endless: int, behind: int) -> I64:
        which = (most > 0) & (key != endless) & (keys.low <= keys.high)
        bound = key[which] + (behind - 1)
        if ((bound < 0) | (bound >= most[which])).any():
            raise ValueError("a boundary is of no literal")
        out = key.copy()
        out[which] = labels[begin[which] + (bound >> 1)] + (bound & 1) - behind
        return out

    return keys._replace(low=moved(keys.low, KEY_MIN, 0), high=moved(keys.high, KEY_MAX, 1))


def _read_rejected(records: RecordReader) -> dict[int, list[Rejected]]:
    """Returns the rejected subscriptions of each record that has some."""
    places = np.flatnonzero(records.counts("rejected")).tolist()
    return {
        place: [parse_rejected(json.loads(line)) for line in text.split(b"\n")]
        for place, text in zip(places, records.texts("rejected"), strict=True)
    }


def _find_left(ids: Ids, subs: I64, gone: Ids, deletes: I64) -> tuple[NDArray[np.bool_], Ids, Ids, I64]:
    """Returns whether each new subscription is there in the end, and all ids, once each.

    The third and fourth values are all ids of all records, and the record of each.

    subs, deletes : number of new and of deleted subscriptions in each record
    """
    count = len(ids)
    step = np.repeat(np.concatenate([np.arange(len(subs))] * 2), np.concatenate([subs, deletes]))
    both = [part.array for part in (ids, gone) if len(part)] or [ids.array]
    each = pa.chunked_array(both).combine_chunks()
    encoded = each.dictionary_encode()
    which = encoded.indices.to_numpy()
    last = np.full(len(encoded.dictionary), -1)
    np.maximum.at(last, which, step)
    return last[which[:count]] == step[:count], Ids(encoded.dictionary), Ids(each), step
