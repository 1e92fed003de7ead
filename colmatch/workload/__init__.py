"""Synthetic subscriptions and events, in the manner of BEGen.

The papers measure with them.

>>> from colmatch.workload import named
>>> workload = named("dense", subscriptions=2)
>>> workload.texts()["expression"].to_pylist()  # doctest: +SKIP
['a16 BETWEEN 2 AND 60 AND a43 = 71 AND a93 BETWEEN 5 AND 94', ...]

Read ``parameters`` first, then ``streams``, ``shapes``, ``subscriptions`` and ``events``, and
``draw`` for how numbers are drawn. ``strings`` has workloads of text patterns; ``flights`` has real
events. Names are imported when first used, since the subscriptions of a workload bring numba and
its flights do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colmatch.workload.streams import NAMES as NAMES
    from colmatch.workload.streams import Workload as Workload
    from colmatch.workload.streams import named as named
    from colmatch.workload.strings import TextWorkload as TextWorkload

__all__ = ["NAMES", "TextWorkload", "Workload", "named"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'colmatch.workload' has no attribute {name!r}")
    module = "strings" if name == "TextWorkload" else "streams"
    return getattr(import_module(f"colmatch.workload.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
