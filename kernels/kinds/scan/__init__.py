"""SCAN: every conjunction is looked at for every event.

``arrays`` says how the index lies in memory, ``match`` makes and reads it.
"""
