"""Sets of predicates: parts of them, several together, their keys, and what is written of them.

In come columns as ``layout.Predicates`` has them; out come others. Read ``columns`` first: it says
of each column what it has a value for, and all else follows from that. A column that is to be kept
with predicates needs a line there.
"""
