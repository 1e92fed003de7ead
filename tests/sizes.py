"""How much the tests try, as the environment variable ``COLMATCH_TESTS`` says.

===========  ====================================================================================
``least``    six random examples and small inputs: what runs without the JIT tries
``some``     25 random examples and small inputs: the default
``all``      100 random examples and large inputs: ``.ci/nightly``
``thorough`` 1,000 random examples, other ones each time, and each random case with each kind
===========  ====================================================================================
"""

from __future__ import annotations

import os

EXAMPLES = {"least": 6, "some": 25, "all": 100, "thorough": 1000}
SIZE = os.environ.get("COLMATCH_TESTS") or ("least" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "some")
if SIZE not in EXAMPLES:
    raise ValueError(f"COLMATCH_TESTS is {SIZE!r}: it must be one of {', '.join(EXAMPLES)}")
SMALL = SIZE in ("least", "some")
THOROUGH = SIZE == "thorough"


def share(count: int) -> int:
    """Returns how many of so many examples are tried."""
    return max(1, count // 5) if SMALL else count
