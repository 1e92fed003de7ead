"""The kinds of index, and the choice among them.

Predicates, codes and the counts of a sample of events come in; the arrays of a kind go out. Read
``base`` first, which defines a kind, then ``registry``, which lists the kinds, ``plan`` and
``settings``. Most other files are one kind each; ``scan`` is the simplest.
"""
