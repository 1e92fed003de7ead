"""Lowering: expressions and columns of predicates become the arrays of every kind of index.

Its input is ``forms`` with their literals, or the rows of a predicate table. Its output is
predicates with codes, the boundaries behind the codes, and the literals. Read ``forms``, ``keys``,
``floors`` (with ``times`` and ``arrow_literals``), ``labels``, ``groups``, ``conjunctions`` and
``lower`` in this order. ``written`` goes the other way, from codes to text.
"""
