"""Texts in SQL to the trees of ``expr``, by sqlglot behind a whitelist.

In comes a text; out come its form and its literals. ``split`` cuts a text into shape and literals,
``tokens`` refuses what is outside the language, ``parse`` makes a tree of what sqlglot has parsed,
with ``literals``, ``computed`` for values computed of columns, and ``calls`` for special functions.
``refused`` finds the place of an error. ``compile`` is the door, with a cache of forms by shape.
"""
