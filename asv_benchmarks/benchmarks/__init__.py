"""Benchmarks of colmatch, run by asv. ``asv.conf.json`` beside this package says how.

What is measured is compiled for this very processor, and never interpreted.
"""

import os

os.environ.setdefault("COLMATCH_KERNELS", "native")  # before colmatch is imported
