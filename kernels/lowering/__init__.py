"""Key intervals of predicates to codes, when subscriptions are built or inserted.

Read ``runs``, ``conjunctions`` and ``codes`` in this order.
"""
