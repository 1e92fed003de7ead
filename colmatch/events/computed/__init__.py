"""Computed values of events, such as ``price * qty``.

A batch and typed trees (``nodes``) give derived columns. Read ``derived`` first.
"""
