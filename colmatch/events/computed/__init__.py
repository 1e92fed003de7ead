"""Computed values over the events, such as ``price * qty``.

Comes in: a batch and typed trees (``nodes``). Goes out: derived columns. Read ``derived`` first.
"""
