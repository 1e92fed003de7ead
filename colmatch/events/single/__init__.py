"""Single events: mappings, tuples and objects, read without a batch where that gives the same.

Read ``mapping`` first; ``row`` makes a batch of one row where that is needed.
"""
