"""OpIndex.

``arrays`` describes it in memory, ``match`` reads it, ``build`` and ``update`` write it.
"""
