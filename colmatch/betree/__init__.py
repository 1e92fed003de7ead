"""The be-tree library's language: what its users have, as colmatch takes it.

``Domains`` say which attributes there are, ``events`` makes an Arrow table of their JSON lines.
Expressions go to ``Matcher.build(expressions, domains, language="betree")``. Inside, ``compile`` is
their door, with a cache; ``tokens``, ``parse``, ``calls`` and ``bounds`` read them to trees of
``expr``.
"""

from __future__ import annotations

from colmatch.betree.domains import Domains
from colmatch.betree.events import events

__all__ = ["Domains", "events"]
