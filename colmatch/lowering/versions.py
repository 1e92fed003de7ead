"""A warning about texts that look like versions and are compared by their order.

``v >= '10.4.0'`` is a valid comparison of texts, but ``'9.1.0'`` satisfies it: as a text, that is
above ``'10.4.0'``. Three numbers look like a version, with a suffix or without. Two may be a
number, and four an address.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from colmatch.given.schema import Attributes
from colmatch.lowering.forms import Op

_log = logging.getLogger("colmatch")
ORDERS = frozenset({Op.LT, Op.LE, Op.GT, Op.GE, Op.BETWEEN})
COLUMNS_MOST = 1000  # most columns with a warning in one process
_NUMBER = "(0|[1-9][0-9]*)"
_VERSION = (
    rf"^[vV]?(0|[1-9][0-9]{{0,2}})[.]{_NUMBER}[.]{_NUMBER}([-+._]?[A-Za-z][0-9A-Za-z.+_-]*|[-+][0-9A-Za-z.+_-]+)?$"
)
_warned: dict[str, None] = {}
is_version = re.compile(_VERSION).match


def look_for_versions(texts: pa.Array | Iterable[bytes], attrs: ArrayLike, attributes: Attributes) -> None:
    """Warns of texts that look like versions, once for each column.

    attrs : attribute of each text, which is compared with it by the order of texts
    """
    data = (texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_binary())).cast(pa.large_binary())
    places = np.flatnonzero(pc.match_substring_regex(data, _VERSION).to_numpy(zero_copy_only=False))
    _, first = np.unique(np.asarray(attrs)[places], return_index=True)
    for place in places[first].tolist():
        name = attributes[int(np.asarray(attrs)[place])].name
        if name not in _warned and len(_warned) < COLUMNS_MOST:
            _warned[name] = None
            _log.warning(
                "%s is compared with %r by the order of texts, in which '9.0.0' is above '10.0.0': give events a number "
                "that has the order of versions, such as major * 1000000 + minor * 1000 + patch",
                name,
                data[place].as_py().decode(),
            )
