"""Pictures of a matcher, drawn by matplotlib: where its memory is, what each kind would cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from colmatch.errors import DependencyError, OptionError, shown
from colmatch.given.arguments import checked_choice
from colmatch.kinds.costs import estimates
from colmatch.kinds.statistics import Statistics
from colmatch.show.notebook import bytes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Chart = Literal["sizes", "costs"]


def need_matplotlib() -> None:
    """Checks that there is matplotlib. Raises DependencyError: it is not installed."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise DependencyError('a plot needs matplotlib: pip install "colmatch[plot]"') from error
    assert matplotlib.figure is not None


def draw(stats: Mapping[str, Any], what: Chart, ax: Axes | None) -> Axes:
    """Draws figures of ``Matcher.stats`` as ``Matcher.plot`` does."""
    checked_choice("what={}", what, ("sizes", "costs"))
    need_matplotlib()
    if what == "costs" and not set(Statistics._fields) <= stats.keys():
        raise OptionError("what='costs': a file of pages has one kind of index, and no others to compare it with")
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(layout="constrained").add_subplot()
    elif not isinstance(ax, Axes):
        raise OptionError(f"ax={shown(ax)}: Axes of matplotlib are needed, one of those that plt.subplots() returns")
    if what == "sizes":
        _sizes(stats, ax)
    else:
        _costs(stats, ax)
    ax.margins(x=0.2)
    return ax


def _sizes(stats: Mapping[str, Any], ax: Axes) -> None:
    parts: dict[str, int] = {}
    for name, size in stats["arrays"].items():
        part = name.partition(".")[0]
        parts[part] = parts.get(part, 0) + size
    some = sorted((size, part) for part, size in parts.items() if size)
    bars = ax.barh([part for _, part in some], [size / 1e6 for size, _ in some])
    ax.bar_label(bars, [bytes_of(size) for size, _ in some], padding=3)
    ax.set_xlabel("MB")
    ax.set_title(f"{stats['subscriptions']:,} subscriptions, {stats['bytes_per_subscription']:,.0f} bytes each")


def _costs(stats: Mapping[str, Any], ax: Axes) -> None:
    costs = estimates(Statistics(*(stats[field] for field in Statistics._fields)))
    some = sorted(costs.items(), key=lambda cost: -cost[1])
    colors = ["C1" if kind == stats["index"] else "C0" for kind, _ in some]
    bars = ax.barh([kind for kind, _ in some], [cost / 1e3 for _, cost in some], color=colors)
    ax.bar_label(bars, fmt="{:,.3g}", padding=3)
    ax.set_xscale("log")
    ax.set_xlabel("estimated time an event, us")
    ax.set_title(f"{stats['subscriptions']:,} subscriptions, kind {stats['index']}")
