"""Draws boxes, texts and arrows, and writes them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

INK, GREY = "#1b1f24", "#57606a"
# Fill and stroke of a box: plain, on the way of the event, a match, never looked at.
PLAIN = ("#f6f8fa", "#8c959f")
MET = ("#ddf4ff", "#0969da")
MATCH = ("#dafbe1", "#1a7f37")
SKIPPED = ("#ffffff", "#afb8c1")
Colors = tuple[str, str]
LINE = 17  # pixels between two lines of a text


class Drawing:
    """A picture on white, so that it can be read on a dark page as well.

    title, about : what a screen reader says
    clear : the picture has no ground
    """

    def __init__(self, width: int, height: int, title: str, about: str, clear: bool = False) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="title about" font-family="Helvetica, Arial, sans-serif" '
            'font-size="13">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="about">{escape(about)}</desc>',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker>'
            '<marker id="way" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{MET[1]}"/></marker></defs>',
        ]
        if not clear:
            self._parts.append(f'<rect width="{width}" height="{height}" fill="#ffffff"/>')

    def text(
        self, x: float, y: float, text: str, bold: bool = False, color: str = INK, anchor: str = "start", size: int = 13
    ) -> None:
        """Writes a line. y : its base line"""
        weight = ' font-weight="bold"' if bold else ""
        larger = f' font-size="{size}"' if size != 13 else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}" text-anchor="{anchor}"{weight}{larger}>{escape(text)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, text: str | Sequence[str] = "", colors: Colors = PLAIN
    ) -> None:
        """Draws a box with lines of text in its middle."""
        fill, stroke = colors
        dashes = ' stroke-dasharray="4 3"' if colors == SKIPPED else ""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}" '
            f'stroke="{stroke}"{dashes}/>'
        )
        lines = [text] if isinstance(text, str) else list(text)
        top = y + height / 2 - LINE * (len(lines) - 1) / 2 + 4.5
        for number, line in enumerate(lines):
            if line:
                color = GREY if colors == SKIPPED else INK
                self.text(x + width / 2, top + LINE * number, line, color=color, anchor="middle")

    def arrow(self, x: float, y: float, to_x: float, to_y: float, way: bool = False) -> None:
        """Draws an arrow. way : the event goes there"""
        color, tip, width = (MET[1], "way", 2) if way else (GREY, "tip", 1)
        self._parts.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{color}" stroke-width="{width}" '
            f'marker-end="url(#{tip})"/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, color: str = PLAIN[1]) -> None:
        self._parts.append(f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{color}"/>')

    def save(self, path: Path) -> None:
        path.write_text("\n".join([*self._parts, "</svg>"]) + "\n", encoding="utf-8")
