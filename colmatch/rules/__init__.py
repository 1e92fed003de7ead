"""Rules of the npm package json-rules-engine: what its users have, as colmatch takes it.

``from_json`` makes a condition of the builder of each rule, for ``Matcher.build``.
"""

from __future__ import annotations

from colmatch.rules.convert import from_json

__all__ = ["from_json"]
