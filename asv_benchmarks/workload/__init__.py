"""Synthetic subscriptions and events, in the manner of BEGen. The papers measure with them.

>>> from workload import named
>>> named("dense", subscriptions=2).texts()["expression"].to_pylist()  # doctest: +SKIP
['a16 BETWEEN 2 AND 60 AND a43 = 71 AND a93 BETWEEN 5 AND 94', ...]

Read ``parameters`` first, then ``streams``, ``shapes``, ``subscriptions`` and ``events``, and
``draw`` for how numbers are drawn. ``strings`` has workloads of text patterns.
"""

from workload.streams import NAMES, Workload, named
from workload.strings import TextWorkload

__all__ = ["NAMES", "TextWorkload", "Workload", "named"]
