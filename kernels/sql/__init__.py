"""Many SQL texts at once: cut into phrases and literals, and put together as conjunctions.

A *phrase* is a condition between AND, OR, NOT and parentheses. Phrases that differ only in their
literals have one *shape*, which Python reads once. Read ``arrays``, ``cut``, ``assemble`` and
``literals`` in this order.
"""
