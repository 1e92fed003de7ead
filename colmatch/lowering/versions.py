"""A warning about texts that look like versions and are compared by their order.

``v >= '10.4.0'`` is a valid comparison of texts, and false of ``'9.1.0'`` by luck only: as texts,
``'9.1.0'`` is above it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.lowering.forms import Op

_log = logging.getLogger("colmatch")
ORDERS = frozenset({Op.LT, Op.LE, Op.GT, Op.GE, Op.BETWEEN})
_VERSION = r"^v?[0-9]+([.][0-9]+){2,}([-+][0-9A-Za-z.-]+)?$"


def look_for_versions(texts: pa.Array | Iterable[bytes], name: Callable[[int], str]) -> None:
    """Warns of the first text that looks like a version, once for each column.

    name : of the attribute with whose order text i is compared
    """
    some = (texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_binary())).cast(pa.large_binary())
    place = pc.index(pc.match_substring_regex(some, _VERSION), True).as_py()
    if place >= 0:
        _warn(name(place), some[place].as_py().decode())


@lru_cache(256)
def _warn(name: str, text: str) -> None:
    _log.warning(
        "%s is compared with %r by the order of texts, in which '9.0.0' is above '10.0.0': "
        "give events a number that has the order of versions, such as major * 1000000 + minor * 1000 + patch",
        name,
        text,
    )
