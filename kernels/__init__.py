"""Compiled kernels over numpy arrays. No module here imports pyarrow, sqlglot or the index
registry.

This package is installed as ``colmatch.kernels``. The folder is at the top level of the repository,
so it can be read, tested and compiled separately. Importing it under the bare name would make a
second copy of every module, with separate caches.
"""

if __name__ != "colmatch.kernels":
    raise ImportError(
        f"import this package as 'colmatch.kernels', not {__name__!r}: a second copy would compile everything again"
    )
