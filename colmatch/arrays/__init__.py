"""How the house holds arrays, on numpy alone.

In come arrays as they are made; out come read-only ones, pieces that are collected and joined,
arrays with room to grow, memory that is used again, and hints for a search. Read ``frozen`` first:
it says why everything that kernels get is read-only.
"""
