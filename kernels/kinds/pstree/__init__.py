"""PS-Trees: one for each attribute, with predicate spaces as leaves. Spaces have lists of
conjunctions.

``arrays.py`` describes the tables, and ``search.py`` finds the space of a key. ``change.py`` makes
and merges spaces as predicates come and go. PSTBloom and PSTHash also share ``lists.py``,
``choose.py``, ``build.py`` and ``verify.py``.
"""
