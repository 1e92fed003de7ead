"""Single events: mappings, tuples and objects, read without a batch if the result is the same.

Read ``mapping`` first; ``row`` makes a batch of one row where that is needed.
"""
