"""PS-Trees: one for each attribute, with predicate spaces for leaves, and what hangs at these.

``arrays.py`` says what the rows of the tables are, ``search.py`` finds the space of a key,
``change.py`` makes and merges spaces as predicates come and go. ``lists.py``, ``choose.py`` and
``placing.py`` are what PSTBloom and PSTHash have in common above that.
"""
