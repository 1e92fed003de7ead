"""Special functions of events, such as ``geo_within_radius``.

Columns and lists of arguments give, for each row, the lists that make the function true. Read
``lists`` first.
"""
