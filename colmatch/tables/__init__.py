"""Matchers in the tables of other libraries: Arrow columns, polars, DuckDB.

Comes in: columns of an engine. Goes out: columns of matches. Read ``columns`` first.
"""
