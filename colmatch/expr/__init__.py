"""Expressions: from text, the builder or a table of predicates to arrays of predicates."""
