"""Conversion of Arrow record batches to entries of attributes, through Arrow's C data interface.

Read ``read`` first: it has the kernels. The other files are its steps on raw memory (``memory``,
``structs``): rows and slots (``select``), values to keys (``values``), strings (``words``) and maps
(``maps``).
"""
