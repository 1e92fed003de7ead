"""Expressions and columns of predicates to the arrays that every kind of index is built from.

In come ``forms`` with their literals, or the rows of a predicate table; out come predicates with
codes, the boundaries behind the codes, and the literals. Read ``forms``, ``keys``, ``floors`` (with
``times`` and ``arrow_literals``), ``labels``, ``groups``, ``conjunctions`` and ``lower`` in this
order. ``written`` goes the other way, from codes to text.
"""
