"""Matchers in the tables of other libraries: Arrow columns, polars, DuckDB.

They turn columns of an engine into columns of matches. Read ``columns`` first.
"""
