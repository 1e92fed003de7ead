"""PSTBloom: conjunctions at the spaces of their access predicates, signatures for the others.

``arrays.py`` says what the tables are, ``change.py`` enters and removes conjunctions, ``sign.py``
makes signatures, ``match.py`` finds what a row matches.
"""
