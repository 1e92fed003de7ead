"""Conversion of predicates with key intervals to codes, when subscriptions are built or inserted.

Read ``runs``, ``conjunctions`` and ``codes`` in this order.
"""
