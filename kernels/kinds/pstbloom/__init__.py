"""PSTBloom: conjunctions at the spaces of their access predicates, signatures for the others.

``arrays.py`` describes the tables, ``change.py`` enters and removes conjunctions, and ``build.py``
enters all at once. ``sign.py`` makes signatures, and ``match.py`` finds the matches of a row.
"""
