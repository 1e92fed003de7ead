"""One file that holds a header and named arrays, read by mapping it into memory.

::

    64 bytes   "colmatch", format version, checksum and length of the header, length of the
               file, checksum of these 64 bytes
    header     JSON {"header": …, "arrays": [{"name", "dtype", "shape", "crc32"}, …]}, filled
               with spaces to a multiple of 64 bytes
    arrays     in that order, C order, little-endian, each filled with zeros to a multiple of
               64 bytes

Checksums cover every byte, the filling included. No place or length is written down twice, since an
array begins where the one before it ends. CRC-32 finds every change of up to four neighbouring
bytes. In zlib it runs at 4.2 GB/s here, SHA-256 at 1.8, so 200 MB are checked in 50 ms. It guards
against damage, and ``sound.py`` guards against crafted files.

One form serves ``save``, pickles and Spark, so there is one set of checks.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from itertools import chain
from mmap import ACCESS_READ
from mmap import mmap as Map
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.errors import StoreError
from colmatch.store.replacing import replacing

VERSION = 6

Array = NDArray[Any]
Path = str | os.PathLike[str]

_MAGIC = b"colmatch"
_LINE = 64
# magic, version, checksum of the header, length of the header, length of the file
_PREFIX = struct.Struct("<8sIIQQ28x")
_CHECKSUM = struct.Struct("<I")
_DTYPES = frozenset(["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"])
_AGAIN = "copy it again, or build and save it again"


def write_arrays(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Writes a header and arrays to a file, at once.

    Readers see the old file or the new one, and a mapped file stays as it was. The new file keeps
    the permissions of the old one and, as far as this process may, its owner and group.

    Parameters
    ----------
    header : any values that JSON can hold
    arrays : of bool, int8 to int64, uint8 to uint64, float32 or float64, in any layout

    Returns
    -------
    the ``content_hash`` of the file

    Raises
    ------
    StoreError : an array has another type, or ``path`` is a folder, a pipe or a device
    OSError : as from ``open``. After any error, ``path`` is as it was, and nothing is left beside
        it.
    """
    with replacing(path) as file:
        parts = _parts(header, arrays)
        prefix, text = next(parts), next(parts)
        for part in chain((prefix, text), parts):
            file.write(part)
    return _hash(prefix, text)


def read_arrays(path: Path, mmap: bool = True, verify: bool = True) -> tuple[dict[str, Any], dict[str, Array]]:
    """Reads the header and the arrays, which are read-only.

    mmap : map the file, so that processes share its pages and read only pages that they use.
        Otherwise each array is read into separate memory
    verify : check the arrays' checksums, which reads the whole file. The header is always checked

    Raises
    ------
    StoreError : the file is of another kind or format version, or is damaged
    OSError : as from ``open``
    """
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        if mmap and size:
            return _parse(os.fspath(path), *_views(Map(file.fileno(), 0, access=ACCESS_READ)), verify)

        def read(size: int) -> Array:  # separate memory for each array, freed with it
            part = np.empty(size, np.uint8)
            return part[: file.readinto(part.data)]

        return _parse(os.fspath(path), size, read, verify)


def is_saved(path: Path) -> bool:
    """Checks by its first bytes whether a file is of this kind."""
    try:
        with _open(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except (OSError, StoreError):
        return False  # opening it reports the reason


def content_hash(path: Path) -> str:
    """Returns 32 hexadecimal digits that identify the contents of a file.

    Only the header is read and checked, since it has the checksums of the arrays.

    Raises StoreError, OSError: as ``read_arrays``.
    """
    with _open(path) as file:
        prefix = file.read(_LINE)
        header = file.read(_header_length(os.fspath(path), prefix, os.fstat(file.fileno()).st_size))
    _check_header(os.fspath(path), prefix, header)
    return _hash(prefix, header)


def _hash(prefix: bytes | memoryview, header: bytes | memoryview) -> str:
    return hashlib.sha256(b"".join([prefix, header])).hexdigest()[:32]


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Returns the bytes that ``write_arrays`` would write, for pickling."""
    return b"".join(_parts(header, arrays))


def unpack(data: bytes, where: str = "the pickled matcher") -> tuple[dict[str, Any], dict[str, Array]]:
    """Returns the header and the arrays from ``pack``. The arrays are views of ``data``.

    where : a name of the data for errors

    Raises StoreError: as ``read_arrays``.
    """
    return _parse(where, *_views(data), True)


def _parts(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    """Yields the file in pieces. Arrays in the file's own layout are not copied."""
    plain = {name: _little_endian(name, array) for name, array in arrays.items()}
    entries = []
    total = _LINE
    for name, array in plain.items():
        checksum = zlib.crc32(_filling(array.nbytes), zlib.crc32(_bytes(array)))
        entries.append({"name": name, "dtype": array.dtype.str, "shape": array.shape, "crc32": checksum})
        total += _pad_length(array.nbytes)
    text = json.dumps({"header": header, "arrays": entries}, separators=(",", ":")).encode()
    text = text.ljust(_pad_length(len(text)))
    prefix = _PREFIX.pack(_MAGIC, VERSION, zlib.crc32(text), len(text), total + len(text))
    yield prefix + _CHECKSUM.pack(zlib.crc32(prefix))
    yield text
    for array in plain.values():
        yield _bytes(array)
        yield _filling(array.nbytes)


def _little_endian(name: str, array: Array) -> Array:
    """Returns an array in C order and little-endian."""
    plain = np.asarray(array, order="C")
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str not in _DTYPES:
        raise StoreError(
            f"array {name!r} is of type {array.dtype}, which cannot be saved: only Booleans and numbers can"
        )
    return plain


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _pad_length(length: int) -> int:
    return -(-length // _LINE) * _LINE


def _filling(length: int) -> bytes:
    return bytes(_pad_length(length) - length)


def _open(path: Path) -> BufferedReader:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise StoreError(f"{os.fspath(path)} is a folder, not a saved matcher: give the name of a file")
    if not stat.S_ISREG(mode):
        raise StoreError(
            f"{os.fspath(path)} is not a regular file: a saved matcher cannot be read from a pipe or a device"
        )
    return open(path, "rb")


def _header_length(where: str, prefix: bytes, size: int) -> int:
    """Checks the first 64 bytes of a file of ``size`` bytes. Returns the length of its header."""
    if size == 0:
        raise StoreError(f"{where} is empty: {_AGAIN}")
    if prefix[: len(_MAGIC)] != _MAGIC[: len(prefix)]:
        raise StoreError(f"{where} is not a saved matcher: give the name of a file that colmatch has written")
    if len(prefix) < _LINE:
        raise StoreError(f"{where} is cut short within its first {_LINE} bytes: {_AGAIN}")
    if zlib.crc32(prefix[: _PREFIX.size]) != _CHECKSUM.unpack_from(prefix, _PREFIX.size)[0]:
        raise StoreError(f"{where} is damaged in its first {_LINE} bytes: {_AGAIN}")
    version: int
    length: int
    _, version, _, length, total = _PREFIX.unpack_from(prefix)
    if version != VERSION:
        do = "install a newer colmatch" if version > VERSION else "build and save it again"
        raise StoreError(f"{where} has format version {version}, this colmatch reads version {VERSION}: {do}")
    if size != total:
        raise StoreError(f"{where} has {size} bytes and should have {total}: {_AGAIN}")
    if length > total - _LINE:
        raise StoreError(f"{where} is damaged, its header would end behind its end: {_AGAIN}")
    return length


def _check_header(where: str, prefix: bytes, header: bytes) -> None:
    if zlib.crc32(header) != _PREFIX.unpack_from(prefix)[2]:
        raise StoreError(f"{where} is damaged in its header: {_AGAIN}")


def _views(data: bytes | Map) -> tuple[int, Callable[[int], Array]]:
    """Returns the size of a file, and a function that returns its next bytes without a copy."""
    whole = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
    if whole.size and whole.ctypes.data % 8:
        whole = whole.copy()  # a slice of something else; kernels need aligned values
    begin = 0

    def view(size: int) -> Array:
        nonlocal begin
        begin += size
        return whole[begin - size : begin]

    return whole.size, view


def _parse(
    where: str, size: int, take: Callable[[int], Array], verify: bool
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Reads a file from its beginning.

    size : of the file, in bytes
    take : returns the next bytes of the file: the number requested, or all that are left
    """
    prefix = take(_LINE).tobytes()
    length = _header_length(where, prefix, size)
    text = take(length).tobytes()
    _check_header(where, prefix, text)
    arrays: dict[str, Array] = {}
    start = _LINE + length
    try:
        parsed = json.loads(text)
        header = parsed["header"]
        if not isinstance(header, dict):
            raise TypeError("its header is not a JSON object")
        # Take the arrays one after the other
        for entry in parsed["arrays"]:
            name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
            if not isinstance(name, str) or name in arrays:
                raise ValueError(f"{name!r} is no name for an array, or the name of another")
            if dtype not in _DTYPES:
                raise ValueError(f"array {name!r} is of type {dtype!r}")
            if not all(type(length) is int and length >= 0 for length in shape):
                raise ValueError(f"array {name!r} is of shape {shape!r}")
            nbytes = math.prod(shape) * np.dtype(dtype).itemsize
            end = start + _pad_length(nbytes)
            if end > size:
                raise ValueError(f"array {name!r} would end behind its end")
            part = take(end - start)
            if len(part) < end - start or (verify and zlib.crc32(part.data) != entry["crc32"]):
                raise ValueError(f"the checksum of array {name!r} is not that of its {nbytes} bytes at {start}")
            part.flags.writeable = False
            arrays[name] = part[:nbytes].view(dtype).reshape(shape)
            start = end
        if start != size:
            raise ValueError(f"its arrays end at {start} of {size} bytes")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise StoreError(f"{where} is damaged ({error if str(error) else type(error).__name__}): {_AGAIN}") from error
    return header, arrays
