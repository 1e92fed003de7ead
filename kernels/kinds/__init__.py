"""Kernels of the kinds of index: a folder for each, and what two share (``trees``, ``pstree``)."""
