"""What a matcher is made of: what is saved, pickled and opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.indexing.base import Built
from colmatch.kernels import layout
from colmatch.options import Options
from colmatch.schema import Attributes, Schema
from colmatch.subscriptions.rejected import Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All that a matcher is made of."""

    schema: Schema
    options: Options
    ids: pa.Array
    rejected: list[Rejected]
    attributes: Attributes
    predicates: layout.Predicates
    codes: layout.Codes
    literals: layout.Literals
    index: Built
    reason: str  # why that kind of index
    dead: np.ndarray[Any, Any]  # uint32 numbers of subscriptions that were deleted, which still have ids
    # a timestamp literal that was read in the zone of the options, None where nothing depends on
    # that
    local_literal: str | None
    stock: int  # subscriptions when the index was built
    sample: np.ndarray[Any, Any]  # uint8, the events of ``colmatch/events/sample.py``

    @property
    def arrays(self) -> dict[str, Any]:
        """The NamedTuples of arrays, by the name of the part."""
        return {
            "predicates": self.predicates,
            "codes": self.codes,
            "literals": self.literals,
            "index": self.index.arrays,
        }

    def sizes(self) -> dict[str, int]:
        """Returns the bytes of each array; those that the index shares with codes count once."""
        shared = {id(_memory(array)) for array in self.codes}
        sizes = {
            f"{part}.{name}": 0 if part == "index" and id(_memory(array)) in shared else int(array.nbytes)
            for part, arrays in self.arrays.items()
            for name, array in zip(arrays._fields, arrays, strict=True)
        }
        return sizes | {"ids": self.ids.nbytes, "sample": self.sample.nbytes}


def _memory(array: np.ndarray[Any, Any]) -> Any:
    return array if array.base is None else array.base
