"""HTML for notebooks, which show it in place of a ``repr``: tables, and lists that fold.

All text that comes in is escaped here. Colours and fonts are the notebook's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

ROWS_MOST = 50  # of a table; the rest is counted


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


class Figures(dict[str, Any]):
    """A dictionary of figures, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return table(self.items())


def cell(value: object) -> Markup:
    """Returns the markup of a table's cell; mappings and sequences become tables that unfold."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, bool) or value is None:
        return Markup(str(value))
    if isinstance(value, int | float):
        return Markup(f"{value:,}" if isinstance(value, int) else f"{value:,.1f}")
    if isinstance(value, Mapping):
        return fold_body(f"{len(value)} values", table(value.items())) if value else Markup("none")
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        rows = ((number, part) for number, part in enumerate(value))
        return fold_body(f"{len(value)} entries", table(rows)) if value else Markup("none")
    return Markup(escape(str(value)))


def table(rows: Iterable[tuple[object, object]], title: str = "") -> Markup:
    """Returns a table of names and values; a last line counts the rows beyond ``ROWS_MOST``."""
    pairs = list(rows)
    lines = [f'<tr><th style="text-align:left">{cell(str(name))}</th><td style="text-align:left">{cell(value)}</td></tr>'
             for name, value in pairs[:ROWS_MOST]]  # fmt: skip
    if len(pairs) > ROWS_MOST:
        lines.append(f'<tr><td colspan="2">and {len(pairs) - ROWS_MOST:,} more</td></tr>')
    caption = f'<caption style="text-align:left">{escape(title)}</caption>' if title else ""
    return Markup(f"<table>{caption}<tbody>{''.join(lines)}</tbody></table>")


def fold_body(summary: str, body: str, is_open: bool = False) -> Markup:
    """Returns a line that unfolds to ``body``, which is HTML."""
    return Markup(f"<details{' open' if is_open else ''}><summary>{cell(summary)}</summary>{body}</details>")


def bytes_of(size: float) -> str:
    """Writes a number of bytes with a unit: ``92.1 MB``."""
    power = min((len(str(int(size))) - 1) // 3, 4)
    unit = ("bytes", "kB", "MB", "GB", "TB")[power]
    return f"{size / 1000**power:,.{1 if power else 0}f} {unit}"
