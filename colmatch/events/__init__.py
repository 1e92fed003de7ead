"""Events as a caller has them, to entries of attributes.

In comes anything with the Arrow C stream or array protocol; out comes ``kernels.layout.Batch``.
Read ``gather`` (batches are cut and gathered), ``needs`` and ``binding`` (attributes meet the
columns of a schema), ``reader`` and ``work`` (kernels read the buffers), ``patterns`` (text
patterns of the distinct strings) and ``calls`` (special functions) in this order. ``nodes``,
``derived``, ``functions``, ``casts`` and ``dates`` compute values of columns, and ``required`` is
what no event may lack.
"""
