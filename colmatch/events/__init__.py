"""Events as a caller has them, to entries of attributes.

In comes anything with the Arrow C stream or array protocol; out comes ``kernels.layout.Batch``.
Read ``gather`` (batches are cut and gathered), ``binding`` (attributes meet the columns of a
schema) and ``reader`` (kernels read the buffers) in this order.
"""
