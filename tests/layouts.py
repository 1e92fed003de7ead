"""Rows as Arrow data, in every physical layout that means them; written against
``random.Random``, as strategies.py is.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from oracle import Row
from strategies import a_value, a_value_or_null


def plain_table(schema: pa.Schema, rows: list[Row]) -> pa.Table:
    return pa.table([pa.array([row[f.name] for row in rows], f.type) for f in schema], schema=schema)


def an_array(rng: Random, values: list[Any], type: pa.DataType) -> pa.Array:
    """The values in some layout that means ``type``, behind and before rows that a slice hides."""
    hidden = [a_value_or_null(rng, type, 0.3) for _ in range(rng.choice([0, 0, 1, 3, 9]))]
    after = [a_value_or_null(rng, type, 0.3) for _ in range(rng.choice([0, 0, 2]))]
    whole = laid_out(rng, hidden + values + after, type)
    return whole.slice(len(hidden), len(values))


def laid_out(rng: Random, values: list[Any], type: pa.DataType) -> pa.Array:
    t = pa.types
    absent = [value is None for value in values]
    if t.is_string(type) or (t.is_binary(type) and not t.is_fixed_size_binary(type)):
        text = t.is_string(type)
        large, view = (pa.large_string(), pa.string_view()) if text else (pa.large_binary(), pa.binary_view())
        physical = rng.choice([type, type, large, view])
        if rng.random() < 0.4:
            return dictionary(rng, values, physical)
        plain = pa.array(values, physical)
        return plain if physical == view or rng.random() < 0.7 else moved(plain)
    if t.is_struct(type):
        # A NULL struct may hide anything in its children.
        rows = [a_value(rng, type) if value is None else value for value in values]
        children = [laid_out(rng, [row[f.name] for row in rows], f.type) for f in type]
        mask = pa.array(absent, pa.bool_()) if any(absent) else None
        fields = [pa.field(f.name, child.type) for f, child in zip(type, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if t.is_list(type):
        # So may a NULL list: its range need not be empty.
        lists = [a_value(rng, type) if value is None and rng.random() < 0.5 else value or [] for value in values]
        flat = [x for some in lists for x in some]
        first = [0]
        for some in lists:
            first.append(first[-1] + len(some))
        child = laid_out(rng, flat, type.value_type)
        mask = pa.array(absent, pa.bool_()) if any(absent) else None
        if rng.random() < 0.3:
            lists = pa.LargeListArray.from_arrays(pa.array(first, pa.int64()), child, mask=mask)
        else:
            lists = pa.ListArray.from_arrays(pa.array(first, pa.int32()), child, mask=mask)
        return lists if rng.random() < 0.7 else moved(lists)
    return pa.array(values, type)


def moved(array: pa.Array) -> pa.Array:
    """Returns texts, binary values or lists that begin further on in their buffer, without an
    offset of the array. So arrow-rs makes a slice.
    """
    assert array.offset == 0
    width = np.int64 if "large" in str(array.type).split("<")[0] else np.int32
    if not len(array):
        return array
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], width, len(array) + 1)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        before = array.values.slice(0, 2)
        lists = [buffers[0], pa.py_buffer(offsets + width(len(before)))]
        return pa.Array.from_buffers(array.type, len(array), lists, children=[pa.concat_arrays([before, array.values])])
    data = b"Zq\xc3\xa4!" + (buffers[2].to_pybytes() if buffers[2] else b"")
    texts = [buffers[0], pa.py_buffer(offsets + width(5)), pa.py_buffer(data)]
    return pa.Array.from_buffers(array.type, len(array), texts)


def dictionary(rng: Random, values: list[Any], physical: pa.DataType) -> pa.Array:
    """Dictionary-encoded, in no order, with entries that are unused, repeated, or NULL."""
    entries = sorted({value for value in values if value is not None})
    entries += [rng.choice(entries)] if entries and rng.random() < 0.3 else []
    entries += [None] if rng.random() < 0.3 else []
    entries += ["unused" if pa.types.is_string_view(physical) or "string" in str(physical) else b"unused"]
    rng.shuffle(entries)
    at = {entry: i for i, entry in enumerate(entries)}
    null = at.get(None) if rng.random() < 0.7 else None
    width = rng.choice([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()])
    codes = pa.array([null if value is None else at[value] for value in values], width)
    return pa.DictionaryArray.from_arrays(codes, pa.array(entries, physical))


def some_events(
    rng: Random, schema: pa.Schema, rows: list[Row]
) -> tuple[pa.Table | pa.RecordBatch | pa.RecordBatchReader, list[Row]]:
    """The rows as Arrow data in a random layout, and as the oracle sees them: a column may be
    left out, which makes it all NULL.
    """
    rows = [dict(row) for row in rows]
    columns: dict[str, pa.ChunkedArray] = {}
    chunks = [len(rows)]
    while chunks[-1] > 1 and rng.random() < 0.4:
        cut = rng.randint(0, chunks[-1])
        chunks[-1:] = [cut, chunks[-1] - cut]
    names = list(schema.names)
    rng.shuffle(names)
    for name in names:
        some = rng.random()
        if some < 0.12:  # missing, or all NULL
            for row in rows:
                row[name] = None
            if some < 0.04:
                columns[name] = pa.chunked_array([pa.nulls(n, pa.null()) for n in chunks], pa.null())
            elif some < 0.08:
                columns[name] = pa.chunked_array(
                    [pa.nulls(n, schema.field(name).type) for n in chunks], schema.field(name).type
                )
            continue
        values, start, arrays = [row[name] for row in rows], 0, []
        seed = rng.randrange(2**16)  # chunks of one column share a layout
        for n in chunks:
            arrays.append(an_array(Random(seed), values[start : start + n], schema.field(name).type))
            start += n
        kinds = {str(array.type) for array in arrays}
        columns[name] = (
            pa.chunked_array(arrays)
            if len(kinds) == 1
            else pa.chunked_array([pa.array(values, schema.field(name).type)])
        )
    if rng.random() < 0.3:
        columns["unknown to the schema"] = pa.chunked_array(
            [pa.array([{"x": 1}] * len(rows), pa.struct({"x": pa.int8()}))]
        )
    if not columns:
        columns["unknown to the schema"] = pa.chunked_array([pa.nulls(len(rows), pa.int8())])
    table = pa.table(columns)
    some = rng.randrange(3)
    if some == 0 and len(rows) and len(chunks) == 1:
        return table.to_batches()[0], rows
    return (pa.RecordBatchReader.from_batches(table.schema, table.to_batches()) if some == 1 else table), rows
