"""What a batch is matched with.

An update makes a new *version*. Versions share memory: what comes to a matcher is appended behind
what the older ones see. Only the arrays of the index change in place (``gate.py``).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.hints import hints_of
from colmatch.indexing.base import Built
from colmatch.kernels import hints, layout
from colmatch.schema import Attributes


class Coding:
    """Attributes, codes and literals: what is needed to read events and to code them.

    It stays one object as long as nothing of it has changed, and so do its parts. The arrays of
    codes and literals are frozen.
    """

    def __init__(self, attributes: Attributes, codes: layout.Codes, literals: layout.Literals) -> None:
        self.attributes = attributes
        self.codes = codes
        self.literals = literals

    @cached_property
    def hints(self) -> hints.Hints:
        """What narrows the search for the code of a value."""
        return freeze(hints_of(self.codes.first, self.codes.bound))

    @cached_property
    def columns(self) -> list[str]:
        """The top-level columns that the attributes need."""
        return list(dict.fromkeys(attribute.path[0] for attribute in self.attributes if attribute.path))


class Version:
    """All that a batch is matched with.

    Attributes
    ----------
    ids : id of each subscription by number, those that were deleted included
    numbers : the same as an array, where ids are int64
    pins : batches that are not finished and shall see this version to their end
    """

    def __init__(self, coding: Coding, predicates: layout.Predicates, index: Built, ids: pa.Array) -> None:
        self.coding = coding
        self.predicates = freeze(predicates)
        self.index = index._replace(arrays=freeze(index.arrays))
        self.ids = ids
        self.numbers: NDArray[np.int64] | None = contiguous(ids.to_numpy()) if pa.types.is_int64(ids.type) else None
        self.pins = 0

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The schema of matches."""
        return pa.schema([("event", pa.int64()), ("subscription", self.ids.type)])
