"""PSTHash: conjunctions in spaces of several attributes, which a hash table finds.

``arrays.py`` says what the tables are, ``buckets.py`` finds and makes spaces of several attributes,
``change.py`` enters and removes conjunctions, ``build.py`` all at once, ``match.py`` finds what a
row matches.
"""
