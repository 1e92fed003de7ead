"""SCAN: every conjunction is tested for every event.

``arrays`` describes the index in memory, ``match`` builds and reads it.
"""
