"""From a caller's events to the entries of attributes.

Anything with the Arrow C stream or array protocol becomes ``kernels.layout.Batch``.

Read the modules in this order:

- ``gather`` cuts and gathers batches
- ``needs`` and ``binding`` match attributes with the columns of a schema
- ``reader`` and ``work`` have kernels read the buffers
- ``patterns`` finds text patterns in the distinct strings
- ``special`` adds the columns of special functions
- ``computed`` adds computed values of columns
- ``required`` finds events that lack a required column
"""
