"""Subscriptions as sections of records: predicates by key, ids and tags; and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import ranges_of, sizes_of
from colmatch.kernels.layout import I64, Predicates
from colmatch.predicates import sections
from colmatch.predicates.keys import KeyIntervals
from colmatch.predicates.records import RecordReader, Section, Sections, check, sums
from colmatch.subscriptions.ids import Ids, ids_of_arrays, ids_to_arrays
from colmatch.subscriptions.tags import Tags
from colmatch.subscriptions.texts_kept import TYPE, columns_of_texts, without_empty

BYTES, SIZE = Section(np.dtype("u1")), Section(np.dtype("<u4"))


def id_sections(name: str, stem: str) -> dict[str, Section]:
    """Returns the sections of ids: numbers, or sizes and bytes of strings."""
    return {name: Section(np.dtype("<i8")), f"{stem}_size": SIZE, f"{stem}_data": BYTES}


SECTIONS = (
    id_sections("ids", "id")
    | {
        "tags": SIZE._replace(fill=0),
        "tag_size": SIZE,
        "tag_data": BYTES,
        "text_size": SIZE._replace(fill=0),
        "text_data": BYTES,
    }  # tags of each subscription, then sizes and bytes of tags, and of the text of each subscription
    | sections.SECTIONS
)


def sections_of(
    preds: Predicates,
    keys: KeyIntervals,
    ids: Ids,
    tags: Tags,
    texts: pa.LargeStringArray | None,
    conj_first: I64,
    sub_first: I64,
) -> Sections:
    """Returns the sections of records.

    texts : of the subscriptions; None where none is kept
    conj_first, sub_first (N + 1) : first conjunction and first subscription of each record
    """
    parts = sections.sections_of(preds, keys, conj_first, sub_first) | sections_of_ids("ids", "id", ids, sub_first)
    if len(tags):
        own = tags.sections(len(ids))
        tag_first = ranges_of(own["tags"])[sub_first]
        firsts = {"tags": sub_first, "tag_size": tag_first, "tag_data": ranges_of(own["tag_size"])[tag_first]}
        parts |= {name: (rows, firsts[name]) for name, rows in own.items()}
    if texts is not None:
        offset, data = columns_of_texts(texts)
        own_data = data[offset[0] : offset[-1]]
        parts |= {
            "text_size": (np.diff(offset), sub_first),
            "text_data": (own_data, contiguous(offset[sub_first] - offset[0])),
        }
    return parts


def sections_of_ids(name: str, stem: str, ids: Ids, first: I64) -> Sections:
    """Returns the sections of ids. The ids of each record begin at ``first`` (N + 1)."""
    arrays = ids_to_arrays(ids)
    if "ids.offset" not in arrays:
        return {name: (arrays["ids"], first)}
    offset = arrays["ids.offset"].astype(np.int64)
    return {f"{stem}_size": (sizes_of(offset), first), f"{stem}_data": (arrays["ids"], offset[first])}


def ids_of(records: RecordReader, name: str = "ids", stem: str = "id") -> tuple[Ids, I64]:
    """Reads ids, and the number of ids in each record.

    Raises ValueError: the sections of a record do not fit each other.
    """
    offset, data = _texts_of(records, f"{stem}_size", f"{stem}_data")
    if len(offset) == 1:
        return ids_of_arrays({"ids": records[name]}), records.counts(name)
    check(not len(records[name]))
    return ids_of_arrays({"ids.offset": offset.astype(np.int32), "ids": data}), records.counts(f"{stem}_size")


def tags_of(records: RecordReader, subs: I64) -> Tags:
    """Reads the tags of subscriptions.

    subs : number of subscriptions in each record

    Raises ValueError: the sections of a record do not fit each other.
    """
    count, (offset, data) = records.fill_rows("tags", subs), _texts_of(records, "tag_size", "tag_data")
    check((sums(count, subs) == records.counts("tag_size")).all())
    return Tags.of_sections(count, sizes_of(offset), data)


def kept_texts_of(records: RecordReader, subs: I64) -> pa.LargeStringArray:
    """Reads the texts of subscriptions, as ``tags_of`` reads tags; NULL where one has none."""
    size, (offset, data) = records.fill_rows("text_size", subs), _texts_of(records, "text_size", "text_data")
    check(len(offset) == 1 or int(sums(size, subs).sum()) == offset[-1])
    buffers = [None, pa.py_buffer(ranges_of(size)), pa.py_buffer(contiguous(data))]
    texts = pa.Array.from_buffers(TYPE, len(size), buffers)
    return without_empty(texts)


def bytes_of(records: RecordReader, sizes: str, data: str) -> tuple[I64, NDArray[Any]]:
    """Reads byte strings: the start of each, and the bytes of all.

    Raises ValueError: the sizes do not fit the bytes.
    """
    size, content = records[sizes], records[data]
    check((sums(size, records.counts(sizes)) == records.counts(data)).all())
    return ranges_of(size), content


def _texts_of(records: RecordReader, sizes: str, data: str) -> tuple[I64, NDArray[Any]]:
    """Reads as ``bytes_of`` does, and checks that each string is a text."""
    offset, content = bytes_of(records, sizes, data)
    if not (whole := content.tobytes()).isascii():
        whole.decode()  # all together; the check below is that each begins at a character
        starts = offset[:-1][sizes_of(offset) > 0]
        if ((content[starts] & 0xC0) == 0x80).any():
            raise ValueError(f"{data} is cut within a character")
    return offset, content
