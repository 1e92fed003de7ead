"""Draws figures of BENCHMARKS.md, README and ``asv_benchmarks/results``.

python docs/pictures/benchmarks.py

The description of each picture has its figures, for screen readers and for a test.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "asv_benchmarks" / "results"
COLORS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#57606a", "#9a6700", "#1b7c83", "#bf3989", "#1b1f24")
DASHES = ("-", "--", ":")  # of four kinds each, beside their colours


def number(text: str) -> float:
    return float(text.replace(",", ""))


def rows_below(page: str, head: str) -> list[list[str]]:
    """Returns the rows of a table whose head begins so, the head first, as plain text."""
    below = (ROOT / page).read_text().partition(f"\n| {head}")[2].partition("\n\n")[0]
    lines = [f"| {head}{below}".splitlines()[0], *below.splitlines()[2:]]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines]


def table(name: str) -> list[dict[str, str]]:
    with (RESULTS / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def saved(figure: Figure, path: Path, title: str, about: str) -> None:
    """Writes a figure as SVG with real text, and with what a screen reader says."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem, "font.family": "sans-serif"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    opened = '<svg role="img" aria-labelledby="title about" '
    words = f'<title id="title">{title}</title>\n<desc id="about">{about}</desc>\n'
    svg = text.getvalue().replace("<svg ", opened, 1)
    svg = re.sub(r"<metadata>.*?</metadata>\n", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r"(\d\.\d)\d+", r"\1", re.sub(r"\n(?![ ]*<)", " ", svg))  # tenths of a point are enough
    place = svg.index("\n", svg.index("<svg ")) + 1
    plain = svg[:place] + words + svg[place:]
    path.write_text("\n".join(line.strip() for line in plain.splitlines()) + "\n", encoding="utf-8")


def curves(axes: Any, lines: dict[str, list[tuple[float, float]]], across: str, up: str) -> None:
    for place, (name, points) in enumerate(lines.items()):
        x, y = zip(*points, strict=True)
        axes.plot(x, y, DASHES[place // 4], color=COLORS[place], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.minorticks_off()
    axes.grid(True, alpha=0.25)


def said(lines: dict[str, list[tuple[float, float]]]) -> str:
    return "; ".join(f"{name} {', '.join(f'{y:g}' for _, y in points)}" for name, points in lines.items())


def size(folder: Path) -> None:
    head, *rows = rows_below("BENCHMARKS.md", "us an event, `dense`, batches of 4,096")
    lines = {
        kind: [(number(row[0].split()[0]), number(row[column])) for row in rows]
        for column, kind in enumerate(head[1:], 1)
    }
    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    axes = figure.subplots()
    curves(axes, lines, "subscriptions", "time of an event, us")
    axes.legend()
    about = f"Microseconds an event with 1,000, 100,000 and 1,000,000 dense subscriptions: {said(lines)}."
    saved(figure, folder / "bench_size.svg", "Matching time against the number of subscriptions", about)


def peers(folder: Path) -> None:
    head, *rows = rows_below("BENCHMARKS.md", "us an event | 1,000, batches")
    column = head.index("10,000, batches")
    times = {row[0]: number(row[column]) for row in rows if re.fullmatch(r"[\d.,]+", row[column])}
    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(list(times), list(times.values()), color=[COLORS[0]] + ["#afb8c1"] * (len(times) - 1))
    axes.bar_label(bars, [f"{time:,g}" for time in times.values()], padding=3)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xlim(1, 10 * max(times.values()))
    axes.set_xlabel("time of an event, us")
    about = "; ".join(f"{name} {time:g}" for name, time in times.items())
    saved(figure, folder / "bench_peers.svg", "colmatch beside other engines", f"Microseconds an event: {about}.")


def papers(folder: Path) -> None:
    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    about = []
    both = figure.subplots(1, 2, sharey=True)
    for axes, (name, title) in zip(both, (("003-figure-6a", "dense"), ("003-figure-6b", "sparse")), strict=True):
        found = table(name)
        lines = {
            kind: [(number(row["subscriptions"]), number(row["us"])) for row in found if row["kind"] == kind]
            for kind in dict.fromkeys(row["kind"] for row in found)
        }
        curves(axes, lines, "subscriptions", "time of an event, us" if title == "dense" else "")
        axes.set_title(title)
        about.append(f"{title}: {said(lines)}")
    both[1].legend(fontsize=8, loc="upper left")
    title = "All kinds on the dense and sparse workloads of the PS-Tree paper"
    saved(figure, folder / "bench_papers.svg", title, f"Microseconds an event by size. {'. '.join(about)}.")


def memory(folder: Path) -> None:
    found = table("memory")
    kinds = list(dict.fromkeys(row["kind"] for row in found))
    workloads = list(dict.fromkeys(row["workload"] for row in found))
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    axes = figure.subplots()
    about = []
    for place, workload in enumerate(workloads):
        sizes = [number(row["bytes_each"]) for row in found if row["workload"] == workload]
        axes.bar([x + (place - 1) * 0.27 for x in range(len(kinds))], sizes, 0.27, color=COLORS[place], label=workload)
        about.append(f"{workload}: {', '.join(f'{kind} {size:g}' for kind, size in zip(kinds, sizes, strict=True))}")
    axes.set_xticks(range(len(kinds)), kinds, rotation=20)
    axes.set_ylabel("bytes a subscription")
    axes.legend()
    saved(figure, folder / "bench_memory.svg", "Memory of each kind", f"Bytes a subscription. {'. '.join(about)}.")


def pages(folder: Path) -> None:
    found = table("pages-cache")
    shares = [row["share"] for row in found]
    figure = Figure(figsize=(7.6, 2.9), layout="constrained")
    about = []
    for axes, column, what in zip(
        figure.subplots(1, 2), ("ms", "pages"), ("time of an event, ms", "pages read an event"), strict=True
    ):
        values = [number(row[column]) for row in found]
        axes.bar(shares, values, color=COLORS[0])
        axes.set_xlabel("cache, as a share of the file")
        axes.set_ylabel(what)
        about.append(f"{what}: {', '.join(f'{share} {value:g}' for share, value in zip(shares, values, strict=True))}")
    saved(figure, folder / "bench_pages.svg", "A file of pages behind a cache", f"{'. '.join(about)}.")


PICTURES = {
    "bench_size": size, "bench_peers": peers, "bench_papers": papers, "bench_memory": memory, "bench_pages": pages,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent, metavar="FOLDER")
    folder = parser.parse_args().to
    for draw in PICTURES.values():
        draw(folder)


if __name__ == "__main__":
    main()
