"""Conditions, as text or built in Python, to forms and their literals.

In comes what a caller wrote; out come ``lowering.forms`` with attributes resolved, one form for all
conditions of a shape. What is computed of columns is read by ``computed_parse`` and gets its types
in ``computed_types``. Read ``ast`` first: the tree that texts and the builder share. A text goes
through ``split``, ``tokens`` with ``literals``, and ``parse``. ``normalise`` makes a form of a tree
by means of ``modes``, ``tree`` and ``assemble``. ``compile`` is the door, with a cache.
"""
