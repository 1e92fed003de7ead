"""The texts of subscriptions as they were written, compressed.

Texts are compressed in blocks of up to 1,024. A text of 60 bytes takes about 13. Compressing a
million of such texts takes 0.2 s of processor time, and reading one text 0.5 ms
(``asv_benchmarks/benchmarks/bench_read_back.py``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import NO_I32, freeze_view
from colmatch.arrays.ranges import ranges_of
from colmatch.betree.compile import WithConstants
from colmatch.errors import StoreError
from colmatch.events.reader import long_texts_of
from colmatch.kernels.layout import I32, I64, U8
from colmatch.subscriptions.given import ArrowTexts, GivenSubscriptions
from colmatch.subscriptions.weights import GivenWeights

BLOCK = 1024  # texts of a block
BLOCK_BYTES = 1 << 18  # bytes of texts after which a block ends
FEW = 64  # arrays of recent texts that wait for one another
LEAST_LIVE = 0.75  # share of texts in use, below which all are compressed again
LARGEST = 1 << 31  # bytes that a block may have, for one that is read from a file

TYPE = pa.large_string()


@cache
def _codec() -> Any:
    return pa.Codec("zstd", 1)


class _Block(NamedTuple):
    """Some texts, compressed: their sizes as int32, then their bytes."""

    texts: int  # how many
    size: int  # bytes before compression
    data: Any  # a buffer

    def read(self) -> pa.LargeStringArray:
        """Returns the texts. Raises StoreError: the block is damaged."""
        try:
            raw = np.frombuffer(_codec().decompress(self.data, decompressed_size=self.size), np.uint8)
            size = raw[: 4 * self.texts].view(np.int32)
            if len(raw) != self.size or (size < 0).any() or 4 * self.texts + int(size.sum(dtype=np.int64)) != self.size:
                raise ValueError("its texts are not as long as it says")
            offset, data = ranges_of(size), pa.py_buffer(raw[4 * self.texts :])
            texts = pa.LargeStringArray.from_buffers(self.texts, pa.py_buffer(offset), data)
            texts.validate(full=True)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StoreError(f"the texts of subscriptions are damaged: {error}: build the matcher again") from error
        return texts


class KeptTexts:
    """The texts of numbers. A number may have none. An object never changes.

    Parameters
    ----------
    blocks : texts by *slot*, their place among all texts
    recent : arrays of the last texts, not compressed yet
    slot : slot of each of the first numbers; each later number has the next slot behind all others
    later : how many later numbers there are
    """

    __slots__ = ("_blocks", "_first", "_later", "_recent", "_slot")

    def __init__(
        self,
        blocks: tuple[_Block, ...] = (),
        recent: tuple[pa.LargeStringArray, ...] = (),
        slot: I32 = NO_I32,
        later: int = 0,
    ) -> None:
        self._blocks, self._recent, self._slot, self._later = blocks, recent, slot, later
        self._first: I64 | None = None

    def __len__(self) -> int:
        return len(self._slot) + self._later

    @property
    def nbytes(self) -> int:
        """The bytes of all texts and slots."""
        recent = sum(int(part.nbytes) for part in self._recent)
        return sum(len(block.data) for block in self._blocks) + recent + int(self._slot.nbytes)

    def extended(self, more: pa.LargeStringArray | None, count: int) -> KeptTexts:
        """Returns these texts, and those of ``count`` more numbers: None if none has a text."""
        if more is None and not self._recent and count >= BLOCK:  # no array of millions of NULLs
            return KeptTexts((*self._blocks, *_without_texts(count)), (), self._slot, self._later + count)
        blocks, recent = self._blocks, (*self._recent, pa.nulls(count, TYPE) if more is None else more)
        if sum(map(len, recent)) >= BLOCK:
            blocks, recent = (*blocks, *_compress(pa.concat_arrays(recent))), ()
        elif len(recent) > FEW:
            recent = (pa.concat_arrays(recent),)
        return KeptTexts(blocks, recent, self._slot, self._later + count)

    def filter(self, left: NDArray[np.bool_]) -> KeptTexts:
        """Returns the texts of the numbers that are left, renumbered without gaps.

        left : whether each of the first numbers is left; all others are not
        """
        slots = self._slots(np.flatnonzero(left))
        if len(slots) < LEAST_LIVE * self._starts[-1]:
            return KeptTexts().extended(self._take(slots), len(slots))
        return KeptTexts(self._blocks, self._recent, freeze_view(slots.astype(np.int32)))

    def take(self, numbers: NDArray[np.int64]) -> pa.LargeStringArray:
        """Returns the texts of numbers, NULL for a number without one."""
        return self._take(self._slots(numbers))

    def _slots(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the slots of numbers."""
        slots: NDArray[np.int64] = numbers + (self._starts[-1] - len(self))
        known = numbers < len(self._slot)
        slots[known] = self._slot[numbers[known]]
        return slots

    @property
    def _starts(self) -> I64:
        """The first slot of each block and recent array, and the number of all slots."""
        if self._first is None:
            self._first = ranges_of([*(block.texts for block in self._blocks), *map(len, self._recent)])
        first: I64 = self._first
        return first

    def _take(self, slots: NDArray[np.int64]) -> pa.LargeStringArray:
        which = np.searchsorted(self._starts, slots, "right") - 1
        used, place = np.unique(which, return_inverse=True)
        parts = [self._part(i) for i in used.tolist()]
        start = ranges_of(list(map(len, parts)))
        texts = pa.concat_arrays([pa.array([], TYPE), *parts]).take(
            pa.array(slots - self._starts[which] + start[place])
        )
        return without_empty(texts)

    def _part(self, i: int) -> pa.LargeStringArray:
        return self._blocks[i].read() if i < len(self._blocks) else self._recent[i - len(self._blocks)]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays of the texts in a saved matcher, by name."""
        blocks = (*self._blocks, *(_compress(pa.concat_arrays(self._recent)) if self._recent else ()))
        sizes = np.array([(block.texts, block.size, len(block.data)) for block in blocks], np.int64).reshape(-1, 3)
        data = [np.frombuffer(block.data, np.uint8) for block in blocks]
        return {
            "texts.count": sizes[:, 0].copy(),
            "texts.raw": sizes[:, 1].copy(),
            "texts.first": ranges_of(sizes[:, 2]),
            "texts.data": np.concatenate(data) if data else np.empty(0, np.uint8),
            "texts.slot": self._slots(np.arange(len(self))).astype(np.int32),
        }

    @staticmethod
    def of_arrays(is_checked: bool, count: I64, raw: I64, first: I64, data: U8, slot: I32) -> KeptTexts:
        """Makes texts of the arrays of ``to_arrays``, without a copy.

        Raises ValueError: the arrays do not fit one another. The blocks are checked when they are
        read.
        """
        if not is_checked:
            if not len(count) == len(raw) == len(first) - 1:
                raise ValueError("the blocks of texts are as many as their sizes")
            sizes = np.diff(first)
            if len(count) and (min(count.min(), raw.min(), sizes.min()) < 0 or max(count.max(), raw.max()) > LARGEST):
                raise ValueError("a block of texts has no such size")
            if first[0] != 0 or first[-1] != len(data):
                raise ValueError("the blocks of texts are as long as their data")
            if len(slot) and not 0 <= slot.min() <= slot.max() < count.sum():
                raise ValueError("a subscription has a text that is not there")
        buffer = pa.py_buffer(data)
        ends = zip(count.tolist(), raw.tolist(), first[:-1].tolist(), first[1:].tolist(), strict=True)
        blocks = tuple(_Block(texts, size, buffer.slice(begin, end - begin)) for texts, size, begin, end in ends)
        return KeptTexts(blocks, (), slot)


def texts_of(given: GivenSubscriptions, left: NDArray[np.bool_] | None) -> pa.LargeStringArray:
    """Returns what is kept of subscriptions: a text, and behind a NUL its weights and constants.

    A condition of the builder becomes the text that means the same. Weights and constants are an
    object of JSON, with the names of the columns that a table of subscriptions has them in.

    left : whether each subscription is kept; None for all
    """
    if left is not None:
        given = given.filter(left)
    expressions: Any = given.expressions
    constants: list[Any] = []
    if isinstance(expressions, ArrowTexts):
        texts = expressions.large()
        any_nul = pc.any(pc.match_substring(texts, "\0")).as_py()
    else:
        if set(map(type, expressions)) != {str}:
            constants = [one.constants if isinstance(one, WithConstants) else None for one in expressions]
            expressions = [one if type(one) is str else _text(one) for one in expressions]
        texts, data = _column(expressions)
        any_nul = b"\0" in data
    parts = _weights(given.weights)
    if any(constants):
        parts.append(
            pa.array([f'"constants":{json.dumps(dict(one), sort_keys=True)}' if one else "" for one in constants], TYPE)
        )
    if not parts and not any_nul:
        return texts
    inner = pc.utf8_rtrim(_join(*parts), ",") if parts else _scalar("")
    plain = pc.and_(pc.equal(inner, ""), pc.invert(pc.match_substring(texts, "\0")))
    return pc.if_else(plain, texts, _join(texts, "\0{", inner, "}"))  # the last NUL is the one before the object


def _weights(weights: GivenWeights) -> list[pa.LargeStringArray]:
    """Returns members of the objects of JSON, each with a comma; "" for a subscription without."""
    parts, none = [], _scalar("")
    own = weights.attributes
    if own is not None:
        place = np.argsort(np.argsort(np.array(own.names, object)))[own.name]  # in the order of names
        order = np.lexsort((place, np.repeat(np.arange(len(own.size)), own.size)))
        names = pa.array([json.dumps(name) for name in own.names], TYPE).take(pa.array(own.name[order]))
        pairs = _join(names, ":", pa.array(own.value[order]).cast(TYPE))
        joined = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ranges_of(own.size)), pairs), _scalar(","))
        parts.append(pc.if_else(pa.array(own.size == 0), none, _join('"weights":{', joined, "},")))
    if weights.priority is not None:
        priority = pa.array(weights.priority)
        parts.append(pc.if_else(pc.equal(priority, 0), none, _join('"priority":', priority.cast(TYPE), ",")))
    return parts


def _join(*parts: Any) -> pa.LargeStringArray:
    """Returns columns of texts, and texts for all rows, joined row by row."""
    return pc.binary_join_element_wise(
        *[_scalar(part) if isinstance(part, str) else part for part in parts], _scalar("")
    )


def _column(texts: Sequence[str]) -> tuple[pa.LargeStringArray, bytes]:
    """Returns a column of texts and its bytes. ``pyarrow.array`` would import pandas for it."""
    data = "".join(texts).encode("utf-8", "surrogatepass")  # a surrogate is an error of whoever reads the text
    size = np.fromiter(map(len, texts), np.int64, len(texts))
    if len(data) != size.sum():  # some characters have several bytes
        size = np.fromiter([len(text.encode("utf-8", "surrogatepass")) for text in texts], np.int64, len(texts))
    buffers = [None, pa.py_buffer(ranges_of(size)), pa.py_buffer(data)]
    return pa.Array.from_buffers(TYPE, len(texts), buffers), data


def _scalar(text: str | None) -> pa.Scalar:
    return pa.nulls(1, TYPE)[0] if text is None else _column([text])[0][0]


def without_empty(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Returns texts, with NULL for empty ones, which are of no expression."""
    return pc.if_else(pc.equal(pc.binary_length(texts), 0), _scalar(None), texts)


def _text(expression: Any) -> str:
    text = expression.text if isinstance(expression, WithConstants) else expression
    return str.__str__(text) if isinstance(text, str) else str(text)


class Kept(NamedTuple):
    """A subscription as it was given, without its tags."""

    expression: str
    weights: dict[str, float]  # by attribute
    priority: float
    constants: dict[str, int]  # of an expression in the language of be-tree

    @staticmethod
    def of(text: str) -> Kept:
        """Reads a text that ``texts_of`` made."""
        expression, nul, json_text = text.rpartition("\0")
        try:
            extra = json.loads(json_text) if nul else {}
            weights = {name: float(weight) for name, weight in extra.get("weights", {}).items()}
            priority, constants = float(extra.get("priority", 0)), dict(extra.get("constants", {}))
        except (ValueError, TypeError, AttributeError) as error:
            raise StoreError(f"the texts of subscriptions are damaged: {error}: build the matcher again") from error
        return Kept(expression if nul else text, weights, priority, constants)


def _without_texts(count: int) -> list[_Block]:
    """Returns the blocks of numbers without a text."""
    first, last = _compress(pa.nulls(BLOCK, TYPE)), _compress(pa.nulls(count % BLOCK, TYPE))
    return first * (count // BLOCK) + last


def _compress(texts: pa.LargeStringArray) -> list[_Block]:
    """Returns the blocks of texts."""
    offset, data = columns_of_texts(texts)
    blocks, begin = [], 0
    while begin < len(texts):
        end = int(np.searchsorted(offset, offset[begin] + BLOCK_BYTES, "right")) - 1
        end = min(max(end, begin + 1), begin + BLOCK, len(texts))
        raw = np.diff(offset[begin : end + 1]).astype(np.int32).tobytes() + data[offset[begin] : offset[end]].tobytes()
        blocks.append(_Block(end - begin, len(raw), _codec().compress(raw)))
        begin = end
    return blocks


def columns_of_texts(texts: pa.LargeStringArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Returns the start of each text and the end of the last one, and the bytes of all."""
    return long_texts_of(texts.fill_null("") if texts.null_count else texts)


NO_TEXTS = KeptTexts()
