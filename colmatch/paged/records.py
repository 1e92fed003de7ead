"""Records of subscriptions in pages: 32-bit words, with predicates by key.

A record has the sections of one subscription in a journal's record, and the slots of its
conjunctions. Many records are read together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of
from colmatch.errors import StoreError
from colmatch.kernels.layout import I64, U32, Predicates
from colmatch.predicates.keys import KeyIntervals
from colmatch.predicates.records import RecordLayout, RecordReader, Section, check
from colmatch.predicates.sections import predicates_of
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.tags import Tags
from colmatch.updates.sections import SECTIONS, ids_of, kept_texts_of, sections_of, tags_of

FORM = RecordLayout({"slot": Section(np.dtype("<u4"))} | SECTIONS)


class KeyedSubscriptions(NamedTuple):
    """Subscriptions by key. The codes in ``predicates.pred`` do not count."""

    predicates: Predicates
    keys: KeyIntervals
    ids: Ids
    tags: Tags
    texts: pa.LargeStringArray | None
    slots: NDArray[np.uint32]  # of each subscription: one for each conjunction, or one if it has none
    sizes: I64  # (S) conjunctions

    @property
    def slot_first(self) -> I64:
        """Returns the place of each subscription's first slot: (S + 1)."""
        return ranges_of(np.maximum(self.sizes, 1))

    @property
    def is_of_conjunction(self) -> NDArray[np.bool_]:
        """Returns for each slot whether it belongs to a conjunction."""
        return np.repeat(self.sizes > 0, np.maximum(self.sizes, 1))


def pack(some: KeyedSubscriptions) -> tuple[U32, I64]:
    """Returns the words of all records, and the beginning of each (S + 1)."""
    preds, keys, ids, tags, texts, slots, sizes = some
    sections = sections_of(preds, keys, ids, tags, texts, ranges_of(sizes), np.arange(len(ids) + 1))
    try:
        return FORM.pack_all(sections | {"slot": (slots, some.slot_first)}, len(ids))
    except OverflowError:
        raise StoreError("a subscription has more than 4 GB of one thing, which no page takes") from None


def unpack(words: U32, first: I64) -> KeyedSubscriptions:
    """Reads records from words. Owners are numbered from 0.

    first (S + 1) : the beginning of each record

    Raises ValueError: a record is longer or shorter than its parts.
    """
    records = RecordReader(FORM, words, first)
    ids, each = ids_of(records)
    check((each == 1).all())
    predicates, keys = predicates_of(records, each)
    sizes = records.counts("size")
    check((records.counts("slot") == np.maximum(sizes, 1)).all())
    tags, texts = tags_of(records, each), kept_texts_of(records, each)
    return KeyedSubscriptions(predicates, keys, ids, tags, texts, records["slot"], sizes)
