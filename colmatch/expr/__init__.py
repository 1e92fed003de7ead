"""Trees of conditions, from a text or built in Python, to forms and their literals.

The input is a tree of ``ast``, which texts and the builder (``build``) share. The output is
``lowering.forms`` with attributes resolved, one form for all conditions of a shape.
``computed_types`` gives types to values computed from columns. ``normalise`` makes a form of a tree
by means of ``modes``, ``tree`` and ``assemble``.
"""
