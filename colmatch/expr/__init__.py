"""Conditions, as text or built in Python, to forms and their literals.

In comes what a caller wrote; out come ``lowering.forms`` with attributes resolved, one form for all
conditions of a shape. Read ``ast`` first: the tree that texts and the builder share. A text goes
through ``split``, ``tokens`` with ``literals``, and ``parse``; ``normalise`` makes a form of a tree
by means of ``tree`` and ``assemble``. ``compile`` is the door, with its caches.
"""
