"""Rules of the npm package json-rules-engine, read for colmatch.

``from_json`` makes a condition of the builder from each rule, for ``Matcher.build``.
"""

from __future__ import annotations

from colmatch.rules.convert import from_json

__all__ = ["from_json"]
