"""PSTHash: conjunctions in spaces of several attributes, which a hash table finds.

``arrays.py`` describes the tables, and ``buckets.py`` finds and makes spaces of several attributes.
``change.py`` enters and removes conjunctions, and ``build.py`` enters all at once. ``match.py``
finds the matches of a row.
"""
