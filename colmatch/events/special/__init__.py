"""Special functions over the events, such as ``geo_within_radius``.

Comes in: columns, and lists of arguments. Goes out: for each row the lists of which the function is
true. Read ``lists`` first.
"""
