"""Long arrays, collected in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class Pieces:
    """A long array in pieces: lists of numbers, which are cheap to extend by a few, and arrays."""

    __slots__ = ("pieces", "tail")

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.tail: list[Any] | None = None  # the last piece if it is a list made here

    def extend(self, values: Iterable[Any]) -> None:
        """Adds some numbers."""
        if self.tail is None:
            self.tail = []
            self.pieces.append(self.tail)
        self.tail.extend(values)

    def append(self, piece: Any) -> None:
        """Adds an array, which is not copied."""
        self.pieces.append(piece)
        self.tail = None

    def array(self, dtype: Any = np.int64) -> NDArray[Any]:
        """Returns all pieces as one array."""
        return concat([np.asarray(piece, dtype) for piece in self.pieces], dtype)

    def values(self) -> Any:
        """Returns all pieces as one list or one array."""
        return join_pieces(self.pieces)


def join_pieces(pieces: Sequence[Any]) -> Any:
    """Returns one array if all pieces are arrays of numpy, or all of Arrow; otherwise a list."""
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        return concat(pieces)
    if pieces and all(isinstance(piece, pa.Array) for piece in pieces):
        return pa.concat_arrays(pieces)
    return list(chain.from_iterable(piece if isinstance(piece, list) else piece.tolist() for piece in pieces))


def concat(pieces: Sequence[NDArray[Any]], dtype: Any = np.int64) -> NDArray[Any]:
    """Returns one array of all pieces; a single piece is not copied."""
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)
