"""Sets of predicates: selections, unions, keys, and the records that are written of them.

The modules take and return columns as in ``layout.Predicates``. Read ``columns`` first: it lists
the columns and the meaning of their rows, and all else follows. A new column that is kept with
predicates needs a line there.
"""
