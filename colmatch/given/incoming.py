"""Arrow data from callers -> tables and columns that the rest of the library can trust.

Only here, errors of Arrow and Python about malformed data become errors of the library. The results
are in one piece, without runs, views and NULLs in dictionaries, and their text is UTF-8.

Lists of Python objects are checked level by level before Arrow finds a type for them. A list that
contains itself would end the process otherwise. Exceptions of a caller's own generator or reader
come through unchanged, and so does the ``OSError`` of a missing file. Checking a million predicates
takes 8 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import ColmatchError, show_value
from colmatch.given.arguments import members
from colmatch.given.scans import Scannable, is_scannable, scan_of

# Errors of Arrow, NumPy and Python about malformed data.
_UNREADABLE = (
    pa.ArrowException,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    NotImplementedError,
    RecursionError,
    SystemError,
)
NESTED_MOST = 50  # levels of types, or of lists, within each other; Arrow's files take 64
_CONTAINERS = (list, tuple, set, frozenset, dict, np.ndarray)
_PLAIN = frozenset({int, float, str, bytes, bool, type(None)})


class ArrowStream(Protocol):
    """Tables, readers and data frames: objects with the Arrow C stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """Record batches and arrays: objects with the Arrow C array protocol."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


class DataclassEvent(Protocol):
    """A dataclass; its fields are columns."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelEvent(Protocol):
    """A pydantic model; its fields are columns."""

    @property
    def model_dump(self) -> Callable[..., dict[str, Any]]: ...


class ArrowSchema(Protocol):
    """Schemas: objects with the Arrow C schema protocol."""

    def __arrow_c_schema__(self) -> object: ...


class IcebergSchema(Protocol):
    """Schemas of Iceberg."""

    def as_arrow(self) -> Any: ...


class SparkSchema(Protocol):
    """Schemas of Spark."""

    @property
    def fields(self) -> Any: ...


class WithSchema(Protocol):
    """Data frames and queries of Spark, DataFusion and ibis, and tables of pyarrow."""

    @property
    def schema(self) -> Any: ...


Event = Mapping[str, Any] | tuple[Any, ...] | DataclassEvent | ModelEvent
Events = ArrowStream | ArrowArray | Scannable | Sequence[Event]
# A schema: a text, types by name, pairs, lines of be-tree's domains, a class with typed fields, or
# an object that has one
Columns = (
    Iterable[str] | Iterable[tuple[str, Any]] | type[Any] | Event | ArrowSchema | IcebergSchema | SparkSchema | WithSchema
    | ArrowStream | ArrowArray | Scannable
)  # fmt: skip


@contextmanager
def refusing(raises: type[ColmatchError], what: str) -> Iterator[None]:
    """Turns errors of Arrow, NumPy and Python about malformed data into ``raises``.

    what : the start of its message; the reason follows
    """
    try:
        yield
    except ColmatchError:
        raise
    except _UNREADABLE as error:
        raise raises(f"{what}: {sentence(error)}") from error


def is_text(text: str) -> bool:
    """Returns whether a text has only characters: half a surrogate pair is none."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sentence(error: BaseException) -> str:
    """Returns the message of an error, in one line of bounded length."""
    several = len(error.args) > 1 and all(isinstance(part, str) for part in error.args)  # Arrow: error and subject
    message = " ".join((": ".join(error.args) if several else str(error)).split()) or type(error).__name__
    return message if len(message) <= 200 else message[:199] + "…"


def table_of(
    source: Any, raises: type[ColmatchError], what: str, choose: Callable[[list[str]], list[str]] | None = None
) -> pa.Table:
    """Returns a table of what ``scan_of`` or the Arrow C stream or array protocol reads.

    Or of a mapping from name to column.

    choose : takes the names of a scan's columns and returns those to read; None for all

    Raises
    ------
    raises : the source is none of these, or cannot be read. Errors of a reader's own source come
        through unchanged
    """
    with refusing(raises, f"{what} cannot be read"):
        if (scan := scan_of(source)) is not None:
            return scan.table(scan.names if choose is None else choose(scan.names))
    table = _whole_table(source, raises, what)
    if choose is not None:
        choose(table.column_names)
    return table


def _whole_table(source: Any, raises: type[ColmatchError], what: str) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    with refusing(raises, f"{what} cannot be read"):
        if isinstance(source, dict):
            return pa.table(
                {name: _flat(column, raises, f"{what}: column {show_value(name)}") for name, column in source.items()}
            )
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
        if hasattr(source, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(source)])
    raise raises(
        f"{what} is a {type(source).__name__}: an Arrow table, record batch or reader, or a data frame is needed"
    )


def _flat(values: Any, raises: type[ColmatchError], what: str) -> Any:
    """Returns Python values that Arrow can find a type for, nested no deeper than a column may be.

    A list that contains itself has no end, and would overflow Arrow's stack. So lists are checked
    level by level, each list once; deeper ones are an error.
    """
    values = values if is_arrow(values) or isinstance(values, _CONTAINERS) else members(values)
    level: list[Any] = [values]
    for _ in range(NESTED_MOST + 1):
        lists = {id(one): one for one in level if isinstance(one, _CONTAINERS)}
        level = list(chain.from_iterable(map(_inside, lists.values())))
        if not level:
            return values
    raise raises(f"{what}: its lists nest deeper than {NESTED_MOST}, or contain themselves")


def _inside(container: Any) -> Iterable[Any]:
    """Returns the members of a container that may be containers themselves."""
    if isinstance(container, np.ndarray):
        return container.ravel().tolist() if container.dtype.hasobject else ()
    inside = container.values() if isinstance(container, dict) else container
    return inside if _PLAIN.isdisjoint(set(map(type, inside))) else [one for one in inside if type(one) not in _PLAIN]


def columns_of(
    table: pa.Table, needed: Iterable[str], optional: Iterable[str], raises: type[ColmatchError], what: str
) -> dict[str, pa.Array]:
    """Returns columns by name, each as ``column_of`` does. Optional ones may be absent."""
    names = [*needed, *(name for name in optional if name in table.column_names)]
    return {name: column_of(table, name, raises, what) for name in names}


def column_of(table: pa.Table, name: str, raises: type[ColmatchError], what: str) -> pa.Array:
    """Returns the column of this name in one piece, as ``plain`` makes it.

    Raises
    ------
    raises : there is no such column, or more than one; or it is malformed
    """
    return one_piece(find_only(table, name, raises, what), raises, f"{what}: column {name!r}")


def find_only(table: pa.Table, name: str, raises: type[ColmatchError], what: str) -> pa.ChunkedArray:
    """Returns the only column of this name, unchecked.

    Raises ``raises`` if there is none, or more than one.
    """
    check_only(table.column_names, name, raises, what)
    return table.column(name)


def check_only(names: list[str], name: str, raises: type[ColmatchError], what: str, remedy: str = "") -> None:
    """Raises ``raises`` if no column has a name, or more than one.

    remedy : the end of its message
    """
    count = names.count(name)
    if count != 1:
        problem = "there is no column" if count == 0 else f"there are {count} columns"
        shown = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
        raise raises(f"{what}: {problem} {name!r}; its columns are {shown or 'none':.500}{remedy}")


def one_piece(column: pa.ChunkedArray | pa.Array, raises: type[ColmatchError], what: str) -> pa.Array:
    """Returns a column in one piece, as ``plain`` makes it.

    All values are checked; a malformed column raises ``raises``.
    """
    with refusing(raises, f"{what} is {column.type!s:.200} and cannot be read"):
        return joined(in_chunks(column, raises, what))


def in_chunks(column: pa.ChunkedArray | pa.Array, raises: type[ColmatchError], what: str) -> pa.ChunkedArray:
    """Returns a column as ``one_piece`` does, in the pieces that it has: at least one."""
    with refusing(raises, f"{what} is {column.type!s:.200} and cannot be read"):
        column.validate(full=True)
        chunks = [column] if isinstance(column, pa.Array) else column.chunks
        return pa.chunked_array([plain(chunk) for chunk in chunks or [pa.nulls(0, column.type)]])


def joined(column: pa.ChunkedArray) -> pa.Array:
    """Returns the chunks of a column, at least one, as one array; a single one is not copied."""
    if column.num_chunks == 1:
        return column.chunk(0)
    array = column.combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def is_table(source: object) -> bool:
    """Returns whether ``table_of`` reads a table from an object that is no mapping."""
    return is_scannable(source) or is_arrow(source)


def is_arrow(source: object) -> bool:
    """Returns whether an object has the Arrow C stream or array protocol."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def single_column(source: Any, raises: type[ColmatchError], what: str) -> pa.Array:
    """Returns an object with the Arrow C stream or array protocol as one column."""
    with refusing(raises, f"{what} cannot be read"):
        column = pa.chunked_array(source) if hasattr(source, "__arrow_c_stream__") else pa.array(source)
        return one_piece(column, raises, what)


def values_of(source: Any, raises: type[ColmatchError], what: str) -> list[Any]:
    """Returns the values of an object that ``single_column`` takes."""
    column = single_column(source, raises, what)
    with refusing(raises, f"{what} is {column.type!s:.200} and cannot be read"):
        values: list[Any] = column.to_pylist()
    return values


def plain(column: pa.Array) -> pa.Array:
    """Returns a column without runs and views.

    A dictionary is of strings without NULL among them, or decoded. Lists of values that are not
    nested are large lists.
    """
    types, kind = pa.types, column.type
    if types.is_run_end_encoded(kind):
        return plain(decode_runs(column))
    if types.is_dictionary(kind):
        words = plain(column.dictionary)
        if not words.null_count and (types.is_string(words.type) or types.is_large_string(words.type)):
            return pa.DictionaryArray.from_arrays(column.indices, words)
        return words.take(column.indices)
    if types.is_string_view(kind):
        return column.cast(pa.large_string())
    if types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return plain(_of_views(column))
    if is_list(kind) and not is_nested(kind.value_type):
        return _large_list(column)
    return column


def doubles_of(column: pa.Array, raises: type[ColmatchError], what: str) -> pa.DoubleArray:
    """Returns numbers of any type as doubles, with their NULLs; all of type null are NULL.

    Raises ``raises`` if they are no numbers.
    """
    types, kind = pa.types, column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)):
        raise raises(f"{what} is {kind}: numbers are needed, which are integers, floats or decimals of any width")
    with refusing(raises, f"{what} cannot be read"):
        # Arrow's cast of a decimal may miss the nearest double; a cast of its text does not.
        return (column.cast(pa.string()) if types.is_decimal(kind) else column).cast(pa.float64(), safe=False)


def exact_doubles_of(column: pa.Array, raises: type[ColmatchError], what: str) -> pa.DoubleArray:
    """Returns numbers as doubles, as ``doubles_of`` does, if each differs from its neighbours.

    Raises ``raises`` with the row of a number without a close enough double, such as a whole number
    beyond 2**53.
    """
    doubles, types = doubles_of(column, raises, what), pa.types
    if types.is_integer(column.type):
        numbers, values = column.fill_null(0).to_numpy(), doubles.fill_null(0).to_numpy()
        most = 2.0 ** (64 if types.is_uint64(column.type) else 63)
        low = values < most
        same = low & (np.where(low, values, 0).astype(numbers.dtype) == numbers)
    elif types.is_decimal(column.type):
        with refusing(raises, f"{what} is {column.type} and cannot be compared with doubles"):
            wide = pa.decimal256(76, column.type.scale)
            shortest = doubles.cast(pa.string()).cast(wide)  # the shortest decimal number with this double
            equal = pc.equal(shortest, column.cast(wide)).fill_null(True)
            same = equal.to_numpy(zero_copy_only=False)
    else:
        return doubles
    if not same.all():
        row = int(np.argmin(same))
        raise raises(
            f"{what} is {column[row].as_py()} in row {row}, and the double next to it is another number: numbers from "
            "-2**53 to 2**53, with 15 digits at most, are told apart"
        )
    return doubles


def is_any_list(type: pa.DataType) -> bool:
    """Returns whether a type is one of lists, views of lists included."""
    return is_list(type) or bool(pa.types.is_list_view(type) or pa.types.is_large_list_view(type))


def is_list(type: pa.DataType) -> bool:
    """Returns whether a type is one of lists, but no view."""
    return bool(pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type))


def is_nested(type: pa.DataType) -> bool:
    """Returns whether a type is nested, or the type of its dictionary or runs."""
    while pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type):
        type = type.value_type
    return bool(pa.types.is_nested(type))


def decode_runs(column: pa.Array) -> pa.Array:
    """Returns a run-end encoded column with a value for each row, of the type of its runs."""
    values = column.values
    places = pa.RunEndEncodedArray.from_arrays(column.run_ends, pa.array(range(len(values)), pa.int64()))
    at = pc.run_end_decode(places.slice(column.offset, len(column)))
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):  # Arrow cannot take from views
        large = pa.large_string() if pa.types.is_string_view(values.type) else pa.large_binary()
        return values.cast(large).take(at).cast(values.type)
    return values.take(at)


def nulls_of(count: int, type: pa.DataType) -> pa.Array:
    """Returns NULLs of a type. Arrow makes invalid ones of a struct that has runs."""
    if not pa.types.is_struct(type) or not type.num_fields:
        return pa.nulls(count, type)
    fields = [nulls_of(count, field.type) for field in type]
    return pa.StructArray.from_arrays(fields, fields=list(type), mask=pa.array([True] * count, pa.bool_()))


def _of_views(column: pa.Array) -> pa.LargeListArray:
    """Returns list views as lists. A cast would also take values in the place of a NULL."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    return pa.LargeListArray.from_arrays(offsets, column.flatten(), mask=column.is_null())


def _large_list(column: pa.Array) -> pa.Array:
    lists = column.cast(pa.large_list(column.type.value_type))
    values = plain(lists.values)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == lists.type.value_type:
        return lists
    offsets = pa.array(lists.offsets.to_numpy())  # Arrow takes no slice of offsets together with a mask
    return pa.LargeListArray.from_arrays(offsets, values, mask=lists.is_null())
