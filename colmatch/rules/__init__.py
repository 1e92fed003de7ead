"""Rules of other products, read for colmatch.

Each function makes conditions of the builder from the rules of a format, for ``Matcher.build``.
"""

from __future__ import annotations

from colmatch.rules.flagd import from_flagd
from colmatch.rules.growthbook import from_growthbook
from colmatch.rules.json_rules import from_json_rules
from colmatch.rules.jsonlogic import from_jsonlogic
from colmatch.show.names import listed_names

__all__ = ["from_flagd", "from_growthbook", "from_json_rules", "from_jsonlogic"]


def __dir__() -> list[str]:
    return listed_names(__all__, globals())
