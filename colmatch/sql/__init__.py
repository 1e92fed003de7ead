"""Trees of ``expr`` from texts in SQL, by sqlglot behind a whitelist.

The input is a text, and the output its form and its literals. ``split`` cuts a text into shape and
literals. ``tokens`` refuses words outside the language. ``parse`` makes a tree of sqlglot's tree,
with ``literals``, ``computed`` for computed values, and ``special`` for special functions.
``refused`` finds the place of an error. ``compile`` is the entry point, with a cache of forms by
shape.
"""
