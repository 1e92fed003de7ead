"""Locators: which intervals contain a point, and which space between boundaries a key lies in.

In come int64 intervals and points, out go numbers of spaces or of intervals. ``spaces`` has what
all locators by boundaries share, then one module for each: ``binary``, ``hinted``, ``eytzinger``,
``ps_tree``, ``segment_tree``, ``interval_tree``, ``scan``.
"""
