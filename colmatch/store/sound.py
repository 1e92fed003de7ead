"""Checks of the contents of a file that is not trusted, before kernels use them.

Checksums detect damage. The author of a crafted file can compute them as well. So lengths, ranges
and numbers are checked, too, each array once and in order. Nothing that is computed from them can
then lead outside an array. Nothing in a file is code.

A kind may check the consistency of its index arrays (``sound`` of ``kinds/base.py``). The indexes
of other kinds and of growing segments are rebuilt from their predicates, which are checked for all
kinds. So a new kind is safe without its own check.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.events.reader import Reader
from colmatch.given.incoming import nulls_of
from colmatch.given.schema import Attributes, Schema
from colmatch.kernels.layout import KEY_MAX, U8, Literals
from colmatch.kernels.sound import fault_of_order
from colmatch.kinds.base import Built
from colmatch.kinds.sound import (
    UnsoundError,
    check_below,
    check_codes,
    check_equal,
    check_lengths,
    check_predicates,
    check_ranges,
)
from colmatch.predicates.columns import take
from colmatch.subscriptions.tags import Tags
from colmatch.updates.growing import GrowingSegment
from colmatch.updates.labels import without_labels
from colmatch.updates.segments import Segment, count_sample
from colmatch.updates.versions import Version


def check_literals(literals: Literals, attributes: int) -> Literals:
    """Returns literals, after checking them."""
    count = len(literals.offset) - 1
    check_lengths(literals, {"first": attributes + 1} | ({"label": count} if len(literals.label) else {}))
    check_ranges("first", literals.first, count)
    check_ranges("offset", literals.offset, len(literals.data))
    if len(literals.label) and fault_of_order(contiguous(literals.first), contiguous(literals.label), 1, KEY_MAX):
        raise UnsoundError("labels of literals do not ascend")
    return literals


def check_texts(offset: np.ndarray[tuple[int], np.dtype[np.int32]], data: U8) -> None:
    """Checks texts that Arrow will read in place."""
    check_ranges("offset", np.asarray(offset, np.int64), len(data))
    pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), pa.py_buffer(data)).validate(full=True)


def check_segment(segment: Segment, attributes: Attributes) -> None:
    """Checks the predicates of a segment. Its index is checked later, or rebuilt."""
    size = segment.size
    if type(size) is not int or not 0 <= size < 2**31 or len(segment.codes.multi) > len(attributes):
        raise UnsoundError("a segment has no such size, or more attributes than there are")
    check_codes(segment.codes)
    check_equal("multi", segment.codes.multi, np.frombuffer(attributes.multi, np.uint8)[: len(segment.codes.multi)])
    check_predicates(segment.predicates, segment.codes, size)


def rebuild_index(segment: Segment, version: Version) -> Segment:
    """Returns a segment with an index rebuilt from its predicates."""
    preds, codes, built = segment.predicates, segment.codes, segment.index
    if np.any(preds.owner[1:] < preds.owner[:-1]):
        preds = freeze(take(preds, np.argsort(preds.owner, kind="stable")))
    if isinstance(segment, GrowingSegment):
        return GrowingSegment.begin(*without_labels(preds, codes), built.settings, segment.size, lambda: None)
    seen = None
    if len(version.sample) and not len(codes.label):
        seen = count_sample(version.sample, version.attributes, codes, version.literals)
    arrays, preds = built.kind.build(preds, codes, seen, built.settings)
    index = Built(built.kind, built.settings, freeze(arrays))
    return type(segment)(codes, freeze(preds), index, segment.size)


def check_version(version: Version, schema: Schema) -> None:
    """Checks the figures of a version against its segments, ids and tags."""
    # Check the sizes of segments, and the tags
    sizes = [segment.size for segment in version.segments]
    bases = np.cumsum([0, *sizes]).tolist()
    count = len(version.ids)
    if not sizes or list(version.bases) != bases[:-1] or bases[-1] != count:
        raise UnsoundError("segments do not follow one another to the last id")
    check_tags(version.tags, count)
    # Check the counts of deleted subscriptions
    deleted, words = version.deleted.among(0, count), version.deleted.bits
    if len(words) > (count + 63) // 64 or int(np.unpackbits(words.view(np.uint8)).sum()) != int(deleted.sum()):
        raise UnsoundError("numbers are deleted that nothing has")
    gone = [int(deleted[base : base + size].sum()) for base, size in zip(bases, sizes, strict=False)]
    alive = [size - gone_count for size, gone_count in zip(sizes, gone, strict=True)]
    if version.gone != sum(gone) or list(version.alive) != alive:
        raise UnsoundError("the counts of deleted subscriptions are not those of their bits")
    stale = list(version.stale)
    if len(stale) != len(gone) or any(
        type(f) is not int or not 0 <= f <= gone_count for f, gone_count in zip(stale, gone, strict=True)
    ):
        raise UnsoundError("more deleted subscriptions are found than there are")
    # Check the types of other values
    if not all(type(n) is int and n >= 0 for n in (version.updates, version.merges)):
        raise UnsoundError("updates or merges are no numbers")
    if type(version.growing) is not bool or type(version.reason) is not str:
        raise UnsoundError("the header has values of other types than it should")
    # An empty batch builds all computed attributes, patterns and calls, as any batch does. It needs
    # no other columns, and Arrow cannot make empty ones of all types.
    used = [field for field in schema.arrow if field.name in version.attributes.columns]
    empty = pa.RecordBatch.from_arrays([nulls_of(0, field.type) for field in used], [field.name for field in used])
    Reader(version.attributes, version.literals, True).read(empty)


def check_tags(tags: Tags, count: int) -> None:
    """Checks the tags of ``count`` subscriptions."""
    if len(tags.number) != len(tags.tag):
        raise UnsoundError("tags have more or fewer numbers than names")
    check_below("tags.number", tags.number, count)
    check_below("tags.tag", tags.tag, len(tags.names))
    if np.any(np.diff(tags.number) < 0):
        raise UnsoundError("numbers of tags do not ascend")
