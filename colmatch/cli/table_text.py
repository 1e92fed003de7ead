"""Rows as a table for people: the first ones, aligned."""

from __future__ import annotations

import json
import shutil
from typing import Any

import click
import pyarrow as pa

from colmatch.cli.json_lines import json_text

MOST_ROWS = 40
WIDEST = 60  # characters of a cell
NARROWEST = 12  # characters of a column that is cut, so that all columns fit


class TableText:
    """A table for people: it takes record batches, keeps the first rows, and prints them."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.held: list[pa.RecordBatch] = []
        self.rows = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        if self.rows < MOST_ROWS:
            self.held.append(batch.slice(0, MOST_ROWS - self.rows))
        self.rows += batch.num_rows

    def close(self) -> None:
        """Shows nothing: only a whole result is shown."""

    def show(self) -> None:
        """Prints the rows that were kept, and the number of further rows."""
        table = pa.Table.from_batches(self.held, self.schema).combine_chunks()
        columns = [[name, *_cells(table[name])] for name in table.column_names]
        widths = [max(map(len, column)) for column in columns]
        right = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in self.schema]
        terminal = shutil.get_terminal_size().columns
        while sum(widths) + 2 * len(widths) - 2 > terminal and max(widths, default=0) > NARROWEST:
            widths[widths.index(max(widths))] -= 1
        for row in zip(*columns, strict=True):
            shown = map(_cut, row, widths)
            cells = [f"{cell:>{w}}" if is_right else f"{cell:<{w}}" for cell, w, is_right in zip(shown, widths, right)]
            click.echo(_cut("  ".join(cells).rstrip(), terminal))
        if not self.rows:
            click.echo("no rows")
        elif self.rows > MOST_ROWS:
            click.echo(f"… and {self.rows - MOST_ROWS:,} more rows: -o FILE writes them all")


def _cells(values: pa.ChunkedArray) -> list[str]:
    """Returns values as texts; strings that a terminal might obey are escaped."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        strings: list[Any] = values.to_pylist()
        texts = ["null" if text is None else text if text.isprintable() else json.dumps(text) for text in strings]
    else:
        texts = [text for chunk in values.chunks for text in json_text(chunk).to_pylist()]
    return [_cut(text, WIDEST) for text in texts]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
