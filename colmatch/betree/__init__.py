"""The be-tree library's language: what its users have, as colmatch takes it.

``Domains`` say which attributes there are, ``events`` makes an Arrow table of their JSON lines.
Expressions go to ``Matcher.build(expressions, domains, language="betree")``.
"""

from __future__ import annotations

from colmatch.betree.domains import Domains
from colmatch.betree.events import events

__all__ = ["Domains", "events"]
