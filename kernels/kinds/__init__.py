"""Kernels of the kinds of index: a folder for each. Two kinds share ``trees``, two ``pstree``."""
