"""Text patterns: literals are found in strings, and LIKE is verified on candidates.

Read ``automaton``, ``find`` and ``like`` in this order; ``rows`` goes from strings back to rows.
"""
