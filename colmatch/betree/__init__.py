"""The language of the be-tree library: attributes, events and expressions.

``Domains`` declares attributes, and ``events`` makes an Arrow table of JSON lines. Expressions go
to ``Matcher.build(expressions, domains, language="betree")``. Internally, ``compile`` turns
expressions into forms; ``tokens``, ``parse``, ``special`` and ``bounds`` read them to trees of
``expr``.
"""

from __future__ import annotations

from colmatch.betree.domains import Domains
from colmatch.betree.events import events
from colmatch.show.names import listed_names

__all__ = ["Domains", "events"]


def __dir__() -> list[str]:
    return listed_names(__all__, globals())
