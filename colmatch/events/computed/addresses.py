"""Addresses of a column as texts in the order of their numbers (``text/addresses.py``)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.kernels._jit import entry
from colmatch.kernels.text.quads import read_quads
from colmatch.text.addresses import address_text
from colmatch.text.literal_index import texts_of

SIZE = 8  # bytes of the text of a dotted quad


def address_texts(values: pa.Array) -> pa.Array:
    """Returns the texts of addresses, NULL for what is none.

    A kernel reads dotted quads. All others are read one by one, each distinct one once.
    """
    known = values.fill_null("") if values.null_count else values
    texts = texts_of(known.cast(pa.large_string()))
    out, is_quad = np.empty((len(values), SIZE), np.uint8), np.empty(len(values), np.bool_)
    entry(read_quads)(texts.offset, texts.data, out, is_quad)
    ends = np.arange(len(values) + 1, dtype=np.int32) * SIZE
    quads = pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(out)])
    if is_quad.all():
        return quads
    others = pa.array(~is_quad)
    encoded = values.filter(others).dictionary_encode()
    changed = pa.array([address_text(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(quads, others, changed.take(encoded.indices))
