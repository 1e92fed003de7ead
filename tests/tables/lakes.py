"""Tables of Delta, Iceberg, Lance and Hudi with the same rows, written by their own libraries.

Hudi's library for Python only reads, so the files of a table are made here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from installed import needs


def delta(rows: pa.Table, folder: Path, **configuration: str) -> Any:
    import deltalake

    deltalake.write_deltalake(
        folder, rows, configuration={key.replace("_", "."): text for key, text in configuration.items()}
    )
    return deltalake.DeltaTable(folder)


def delta_with_mapped_columns(rows: pa.Table, folder: Path) -> Any:
    return delta(rows, folder, delta_columnMapping_mode="name")


def delta_with_deletion_vectors(rows: pa.Table, folder: Path) -> Any:
    return delta(rows, folder, delta_enableDeletionVectors="true")


def iceberg(rows: pa.Table, folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}.db", warehouse=folder.as_uri())
    catalog.create_namespace_if_not_exists("lake")
    table = catalog.create_table("lake.rows", schema=rows.schema)
    table.append(rows)
    catalog.close()
    return table


def iceberg_scan(rows: pa.Table, folder: Path) -> Any:
    return iceberg(rows, folder).scan()


def lance(rows: pa.Table, folder: Path) -> Any:
    import lance

    return lance.write_dataset(rows, folder)


AVRO = {pa.int64(): "long", pa.float64(): "double", pa.string(): "string"}


def hudi(rows: pa.Table, folder: Path) -> Any:
    from hudi import HudiTable

    fields = [{"name": field.name, "type": ["null", AVRO[field.type]]} for field in rows.schema]
    schema = json.dumps({"type": "record", "name": "offers", "fields": fields})
    time, group = "20260101000000000", "a1b2c3d4-0000-0000-0000-000000000000-0"
    file, timeline = f"{group}_0-1-1_{time}.parquet", folder / ".hoodie"
    timeline.mkdir(parents=True)
    pq.write_table(rows, folder / file)
    timeline.joinpath("hoodie.properties").write_text(
        "hoodie.table.name=offers\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\nhoodie.timeline.layout.version=1\n"
        "hoodie.table.base.file.format=PARQUET\nhoodie.populate.meta.fields=false\n"
    )
    size = (folder / file).stat().st_size
    written = {"fileId": group, "path": file, "prevCommit": "null", "numWrites": len(rows), "fileSizeInBytes": size}
    commit = {"partitionToWriteStats": {"": [written]}, "compacted": False, "extraMetadata": {"schema": schema}}
    timeline.joinpath(f"{time}.commit").write_text(json.dumps(commit))
    for state in ("commit.requested", "inflight"):
        timeline.joinpath(f"{time}.{state}").touch()
    return HudiTable(str(folder))


LAKES: dict[Callable[..., Any], str] = {
    delta: "deltalake",
    delta_with_mapped_columns: "deltalake",
    delta_with_deletion_vectors: "deltalake",
    iceberg: "pyiceberg",
    iceberg_scan: "pyiceberg",
    lance: "lance",
    hudi: "hudi",
}
EACH_LAKE = pytest.mark.parametrize(
    "lake", [pytest.param(lake, id=lake.__name__, marks=needs(module).marks) for lake, module in LAKES.items()]
)
