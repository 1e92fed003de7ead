"""Propagation.

``arrays`` describes the index in memory, ``match`` reads it, ``build`` and ``predicates`` build it.
"""
