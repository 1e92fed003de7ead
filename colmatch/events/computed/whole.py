"""Whole lists and structs as texts, so that equality of them is equality of texts.

The text is an expression: ``array('a', NULL)``, ``struct(1, array('x'))``. So equal texts mean
equal values, NULL elements are equal as in Spark, and NULL itself has no text. A layout is the type
of the values: the name of a type, a list with the layout of its elements, or a mapping of fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.events.computed.elements import as_lists, field

Layout = Any  # a string, a list with one layout, or a dict of layouts


def whole_texts(values: Any, layout: Layout, name: str, plain: Callable[[Any, str], Any]) -> Any:
    """Returns the texts of values.

    name : of the column
    plain : converts an array to a type by the type's name

    Raises EventError: values have another layout.
    """
    if isinstance(layout, str):
        return _scalar_texts(plain(values, layout))
    if pa.types.is_null(values.type):
        return values.cast(pa.string())
    if isinstance(layout, list):
        lists = as_lists(values, name)
        sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int64())
        parts = pc.fill_null(whole_texts(lists.flatten(), layout[0], name, plain), "NULL")
        joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, parts), ", ")
    else:
        fields = [whole_texts(field(values, name, one), part, name, plain) for one, part in layout.items()]
        joined = pc.binary_join_element_wise(*[pc.fill_null(part, "NULL") for part in fields], ", ")
    opening = "array(" if isinstance(layout, list) else "struct("
    return pc.if_else(values.is_valid(), pc.binary_join_element_wise(opening, joined, ")", ""), None)


def _scalar_texts(values: Any) -> Any:
    types = pa.types
    if types.is_string(values.type):
        escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), "'", "\\'")
        return pc.binary_join_element_wise("'", escaped, "'", "")
    if types.is_floating(values.type):
        values = pc.add(values.cast(pa.float64()), 0.0)  # there is one zero
    texts = values.cast(pa.string())
    if types.is_date(values.type) or types.is_timestamp(values.type):
        return pc.binary_join_element_wise("'", texts, "'", "")
    return pc.utf8_upper(texts) if types.is_boolean(values.type) else texts
