"""Trees of conditions, from a text or built in Python, to forms and their literals.

In comes a tree of ``ast``, which texts and the builder (``build``) share; out come
``lowering.forms`` with attributes resolved, one form for all conditions of a shape. What is
computed of columns gets its types in ``computed_types``. ``normalise`` makes a form of a tree by
means of ``modes``, ``tree`` and ``assemble``.
"""
