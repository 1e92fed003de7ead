"""Pictures of tables: a row of them for each table, with a line for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.facts import Row

SHOWN = {
    "us": "time an event, us",
    "predicates": "predicates evaluated an event",
    "build_s": "building, s",
    "bytes": "bytes a subscription",
}


def draw(file: str, tables: Mapping[str, Sequence[Row]]) -> None:
    """Draws the first parameter of each table along the lower edge."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 3.2 * len(tables)), layout="constrained")
    axes = figure.subplots(len(tables), len(SHOWN), squeeze=False)
    for row, (name, table) in zip(axes, tables.items(), strict=True):
        varies = next(iter(table[0]))
        values = [line[varies] for line in table]
        for axis, (column, title) in zip(row, SHOWN.items(), strict=True):
            for kind in dict.fromkeys(line["kind"] for line in table):
                own = [line for line in table if line["kind"] == kind and column in line]
                axis.plot(
                    [line[varies] for line in own], [line[column] for line in own], "o-", markersize=3, label=kind
                )
            if min(values) > 0 and max(values) > 20 * min(values):
                axis.set_xscale("log")
            axis.set_yscale("symlog" if column == "predicates" else "log")
            axis.set_xlabel(f"{varies}, {name}")
            axis.set_ylabel(title)
            axis.grid(True, alpha=0.25)
    axes[0][0].legend()
    figure.savefig(file)
    print(f"\n{file} written")
