"""Tables that read chosen columns when asked: datasets, tables of a lake, lazy queries.

A table is recognised by the methods of its class, so no library is imported that the caller does
not use. Methods are looked up in the class, since a data frame may have a column of such a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import pyarrow as pa


class ArrowDataset(Protocol):
    """Datasets of pyarrow and Lance."""

    @property
    def scanner(self) -> Callable[..., Any]: ...


class ArrowScanner(Protocol):
    """Scanners of pyarrow."""

    def to_reader(self) -> Any: ...


class LazyFrame(Protocol):
    """Queries of polars, computed piece by piece."""

    @property
    def collect_batches(self) -> Callable[..., Any]: ...


class DeltaTable(Protocol):
    """Tables of Delta Lake."""

    @property
    def to_pyarrow_dataset(self) -> Callable[..., Any]: ...


class IcebergTable(Protocol):
    """Tables of Iceberg."""

    @property
    def current_snapshot(self) -> Callable[..., Any]: ...


class IcebergScan(Protocol):
    """Scans of a table of Iceberg."""

    def to_arrow_batch_reader(self) -> Any: ...


class HudiTable(Protocol):
    """Tables of Hudi."""

    @property
    def read_stream(self) -> Callable[..., Any]: ...


Scannable = ArrowDataset | ArrowScanner | LazyFrame | DeltaTable | IcebergTable | IcebergScan | HudiTable


class Scan(NamedTuple):
    """A table before it is read.

    schema : anything that ``Schema`` takes
    names : names of the columns
    read : names of columns, None for all -> batches, which may have further columns
    """

    schema: Any
    names: list[str]
    read: Callable[[list[str] | None], Iterable[pa.RecordBatch]]

    def table(self, columns: list[str]) -> pa.Table:
        """Returns the rows of some columns as a table."""
        batches = [batch.select(columns) for batch in self.read(columns)]
        return pa.Table.from_batches(batches, None if batches else pa.schema(map(self.schema.field, columns)))


def is_scannable(table: object) -> bool:
    """Returns whether ``scan_of`` knows the table. Nothing is opened."""
    return _opener(type(table)) is not None


def scan_of(table: object) -> Scan | None:
    """Returns the scan of a table; None for anything else. Errors of its library come through."""
    opener = _opener(type(table))
    return None if opener is None else opener(table)


def _opener(kind: type) -> Callable[[Any], Scan] | None:
    return next((opener for method, opener in _OPENERS.items() if hasattr(kind, method)), None)


def _of_dataset(dataset: Any) -> Scan:
    schema: pa.Schema = dataset.schema
    return Scan(schema, schema.names, lambda columns: dataset.scanner(columns=columns).to_reader())


def _of_scanner(scanner: Any) -> Scan:
    schema: pa.Schema = scanner.projected_schema
    return Scan(schema, schema.names, lambda columns: scanner.to_reader())


def _of_delta(table: Any) -> Scan:
    is_mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    if not is_mapped and "deletionVectors" not in (table.protocol().reader_features or ()):
        return _of_dataset(table.to_pyarrow_dataset())
    # A dataset would have NULL in all rows of a mapped column. The other way has no order of rows.
    schema = pa.schema(table.schema())
    return Scan(schema, schema.names, lambda columns: pa.RecordBatchReader.from_stream(table.scan(columns)))


def _of_iceberg(scan: Any) -> Scan:
    schema: pa.Schema = scan.projection().as_arrow()

    def read(columns: list[str] | None) -> Iterable[pa.RecordBatch]:
        chosen = scan if columns is None else scan.select(*columns)
        batches: Iterable[pa.RecordBatch] = chosen.to_arrow_batch_reader()
        return batches

    return Scan(schema, schema.names, read)


def _of_iceberg_table(table: Any) -> Scan:
    return _of_iceberg(table.scan())


def _of_hudi(table: Any) -> Scan:
    from hudi import HudiReadOptions

    schema: pa.Schema = table.get_schema()
    return Scan(schema, schema.names, lambda columns: table.read_stream(HudiReadOptions(projection=columns)))


def _of_lazy_frame(frame: Any) -> Scan:
    def read(columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        query, part = frame if columns is None else frame.select(columns), None
        for part in query.collect_batches():
            yield from pa.RecordBatchReader.from_stream(part)
        if part is None:  # no rows, and yet columns
            schema = pa.RecordBatchReader.from_stream(query.limit(0).collect()).schema
            yield pa.RecordBatch.from_pylist([], schema=schema)

    schema = frame.collect_schema()
    return Scan(schema, list(schema), read)


# By a method that only these tables have; the first that fits is used.
_OPENERS: dict[str, Callable[[Any], Scan]] = {
    "to_pyarrow_dataset": _of_delta,
    "to_arrow_batch_reader": _of_iceberg,
    "current_snapshot": _of_iceberg_table,
    "read_stream": _of_hudi,
    "collect_batches": _of_lazy_frame,
    "projected_schema": _of_scanner,
    "scanner": _of_dataset,
}
