"""Arrow record batches to entries of attributes, through the structs of Arrow's C data interface.

Read ``read`` first: it has the kernels. The other files are its steps: rows and slots (``select``),
values to keys (``values``), strings (``words``) and maps (``maps``), on raw memory (``memory``,
``structs``).
"""
