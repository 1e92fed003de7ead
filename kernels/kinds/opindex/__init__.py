"""OpIndex.

``arrays`` says how it lies in memory, ``match`` reads it, ``build`` and ``update`` make it.
"""
