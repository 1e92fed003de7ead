"""Addresses as texts in the order of their numbers, each version together.

Such a text is the version and 8 or 32 hexadecimal digits. So a network is a range of texts.
"""

from __future__ import annotations

import ipaddress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LONGEST = 15  # bytes of a dotted quad
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def address_text(text: str) -> str | None:
    """Returns the text of an address; None if it is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return f"{address.version}{int(address):0{address.max_prefixlen // 4}x}"


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Returns the address of such a text."""
    number = int(text[1:], 16)
    return ipaddress.IPv4Address(number) if text[0] == "4" else ipaddress.IPv6Address(number)


def address_texts(values: pa.Array) -> pa.Array:
    """Returns the texts of addresses, NULL for what is none.

    Dotted quads are read in NumPy, all others one by one, each distinct one once.
    """
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    number, is_quad = _read_quads(distinct)
    texts = _write_quads(number)
    others = np.flatnonzero(~is_quad)
    if len(others):
        changed = pa.array([address_text(text) for text in distinct.take(pa.array(others)).to_pylist()], pa.string())
        texts = pc.replace_with_mask(texts, pa.array(~is_quad), changed)
    return texts.take(encoded.indices)


def _read_quads(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Returns the number of each dotted quad, and which texts are quads to ``ipaddress``.

    A part has one to three digits, no leading zero, and is at most 255.
    """
    size = len(texts)
    length = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    data = np.zeros((size, LONGEST + 1), np.uint8)
    short = np.flatnonzero(length <= LONGEST)
    bytes_of = texts.cast(pa.binary()).take(pa.array(short)).to_pylist()
    data[short] = np.array(bytes_of, f"S{LONGEST + 1}").view(np.uint8).reshape(len(short), LONGEST + 1)
    number, part, digits, dots = np.zeros((4, size), np.int64)
    is_quad = length <= LONGEST
    for place in range(LONGEST + 1):
        letter, inside = data[:, place], place < length
        digit = letter.astype(np.int64) - ord("0")
        is_digit, ends = inside & (digit >= 0) & (digit <= 9), (inside & (letter == ord("."))) | (place == length)
        is_quad &= is_digit | ends | (place > length)
        is_quad &= ~(is_digit & (digits > 0) & (part == 0))
        part, digits = np.where(is_digit, 10 * part + digit, part), digits + is_digit
        is_quad &= ~ends | ((digits >= 1) & (digits <= 3) & (part <= 255))
        number, dots = np.where(ends, number * 256 + part, number), dots + (ends & inside)
        part, digits = np.where(ends, 0, part), np.where(ends, 0, digits)
        number, part = np.where(is_quad, number, 0), np.where(is_quad, part, 0)
    return number, is_quad & (dots == 3)


def _write_quads(number: NDArray[np.int64]) -> pa.Array:
    """Returns the texts of addresses of version 4, with 9 bytes each."""
    out = np.empty((len(number), 9), np.uint8)
    out[:, 0] = ord("4")
    for place in range(8):
        out[:, 8 - place] = _DIGITS[(number >> (4 * place)) & 15]
    ends = np.arange(len(number) + 1, dtype=np.int32) * 9
    return pa.Array.from_buffers(pa.string(), len(number), [None, pa.py_buffer(ends), pa.py_buffer(out.tobytes())])
