"""Many SQL texts at once: cut into phrases and literals, and put together as conjunctions.

A *phrase* is a condition that stands between AND, OR, NOT and parentheses. Phrases that differ in
their literals alone have one *shape*, which is read in Python once. Read ``arrays``, ``cut``,
``assemble`` and ``literals`` in this order.
"""
