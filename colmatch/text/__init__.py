"""Text patterns (LIKE, ILIKE, RLIKE, endswith, contains) on many strings at once.

In come the patterns of one column and its distinct strings; out come the strings where each pattern
is true. Read ``like`` and ``reduce`` first: they say what a pattern is, and what it is reduced to.
Then ``filters``, ``literal_index`` and ``pattern_index``; regular expressions have ``regex_index``.
"""
