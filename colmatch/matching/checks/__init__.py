"""Checks of rules: which can never match, always match, repeat or contain one another.

``states.py`` has what predicates allow, as sets of states of an attribute. ``normal.py`` compares
normal forms. ``boxes.py`` proves by intervals, and ``examples.py`` makes events that ``match``
confirms. ``scope.py`` has what the checks look at, and the rows that they add: ``alone.py``,
``contained.py``, ``overlaps.py``, and ``sampled.py`` for a sample of events. ``findings.py`` runs
them.

A proof by intervals takes attributes to be independent. In truth, some are not: a text and its
patterns, a list and its size. So a proof that nothing is left is sound. A proof that something is
left needs an event. All else is undecided.
"""
