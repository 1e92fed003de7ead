"""Locators: which of some intervals contain a key, and which space between boundaries it lies in.

In come int64 intervals and points; out come numbers of intervals, point by point, or of spaces.
Read ``base`` first, which says what a kind of locator is, then ``registry``, which lists them;
``locator`` checks what comes in, ``spaces`` is what kinds by boundaries share. ``figures`` and
``coding`` measure, and every other file is one kind.
"""
