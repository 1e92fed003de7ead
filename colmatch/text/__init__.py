"""Text patterns (LIKE, ILIKE, RLIKE, endswith, contains) on many strings at once.

The patterns of one column and its distinct strings come in; the strings where each pattern is true
go out. Read ``like`` and ``reduce`` first, which define patterns and their reduction. Then read
``filters``, ``literal_index`` and ``pattern_index``; regular expressions have ``regex_index``.
"""
