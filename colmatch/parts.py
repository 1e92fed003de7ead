"""What a matcher is made of: what is saved, pickled and opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.index import Built
from colmatch.index.plan import Plan
from colmatch.kernels import layout
from colmatch.options import Options
from colmatch.schema import Attributes, Schema
from colmatch.subscriptions.intake import Rejected


@dataclass(frozen=True, slots=True)
class Parts:
    schema: Schema
    options: Options
    ids: pa.Array
    rejected: list[Rejected]
    plan: Plan
    attributes: Attributes
    predicates: layout.Predicates
    codes: layout.Codes
    literals: layout.Literals
    index: Built
    dead: np.ndarray[Any, Any]  # uint32 numbers of subscriptions that were deleted, which still have ids
    # a timestamp literal that was read in the zone of the options, None where nothing depends on
    # that
    local_literal: str | None
    stock: int  # subscriptions when the index was built
    sample: np.ndarray[Any, Any]  # uint8, the events of ``colmatch/events/sample.py``
