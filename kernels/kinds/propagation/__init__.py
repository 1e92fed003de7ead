"""Propagation.

``arrays`` says how it lies in memory, ``match`` reads it, ``build`` and ``slabs`` make it.
"""
