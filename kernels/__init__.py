"""Compiled kernels: numpy and numba in, arrays out; nothing here knows Arrow, SQL or the index
registry.

Installed as ``colmatch.kernels``. The folder stands at the top level of the repository so that it
can be read, tested and compiled by itself; importing it under the bare name would make a second
copy of every module, with caches of its own.
"""

if __name__ != "colmatch.kernels":
    raise ImportError(
        f"import this package as 'colmatch.kernels', not {__name__!r}: a second copy would compile everything again"
    )
