"""Benchmarks of colmatch, run by asv. ``asv.conf.json`` beside this package says how.

What is measured is compiled for this very processor, and never interpreted.
"""

import os
import sys
from pathlib import Path

# asv imports this package from a folder that is not on the path, and ``workload`` is beside it.
if (folder := str(Path(__file__).parent.parent)) not in sys.path:
    sys.path.append(folder)
os.environ.setdefault("COLMATCH_KERNELS", "native")  # before colmatch is imported
