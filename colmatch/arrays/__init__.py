"""Helpers for arrays: read-only views, pieces, growth, ranges, reused memory, hints for searches.

Read ``frozen`` first: it says why kernels get only read-only arrays.
"""
