"""Text patterns: literals are found in strings, and LIKE is verified on candidates.

Read ``automaton``, ``search`` and ``verify`` in this order; ``rows`` leads back to rows.
"""
