"""Plots of matching time against the number of subscriptions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from colmatch.errors import ColmatchError, DependencyError

if TYPE_CHECKING:
    from colmatch.bench.figures import Line

FORMATS = ("png", "svg")


def check(path: str) -> None:
    """Checks, before anything is measured, that ``draw`` can write a file.

    Raises
    ------
    ColmatchError : the extension of ``path`` is none of ``FORMATS``, or its folder does not exist
    DependencyError : matplotlib is not installed
    """
    if os.path.splitext(path)[1].lower().removeprefix(".") not in FORMATS:
        raise ColmatchError(f"{path}: a plot is a .{' or .'.join(FORMATS)} file")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ColmatchError(f"{path}: there is no folder {folder} to write to")
    try:
        import matplotlib.figure
    except ImportError as error:
        raise DependencyError('a plot needs matplotlib: pip install "colmatch[plot]"') from error
    assert matplotlib.figure is not None


def draw(lines: Sequence[Line], path: str) -> None:
    """Draws a curve for each kind and batch size into a file; both axes are logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    kinds = list(dict.fromkeys(line.kind for line in lines))
    batches = sorted({line.batch for line in lines})
    for kind in kinds:
        for batch in batches:
            own = [line for line in lines if (line.kind, line.batch) == (kind, batch)]
            label = kind if len(batches) == 1 else f"{kind}, {batch:,} at a time"
            axes.plot(
                [line.subscriptions for line in own],
                [line.event * 1e6 for line in own],
                color=f"C{kinds.index(kind) % 10}",
                marker="osv^Dx"[batches.index(batch) % 6],
                linestyle=("-", "--", ":", "-.")[batches.index(batch) % 4],
                label=label,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("time an event, us")
    axes.set_title("Matching time" + (f", {batches[0]:,} events at a time" if len(batches) == 1 else ""))
    axes.grid(True, which="both", alpha=0.25)
    axes.legend()
    figure.savefig(path, dpi=150)
