"""The kinds of index, and the choice among them.

In come predicates, codes and what a sample of events said; out come a kind's own arrays. Read
``base`` first, which says what a kind is, then ``registry``, which lists them, ``plan`` and
``settings``; every other file is one kind, and ``scan`` is the simplest.
"""
