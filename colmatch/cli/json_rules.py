"""Files of rules of json-rules-engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colmatch.cli.files import naming, opened
from colmatch.errors import SubscriptionError
from colmatch.rules import from_json


def read_json_rules(paths: Sequence[str]) -> dict[int | str, Any]:
    """Reads a file of rules, or with ``-`` standard input.

    Raises
    ------
    OSError : the file cannot be opened
    ColmatchError : there are several, or a rule cannot be had; the message begins with the path
    """
    if len(paths) > 1:
        raise SubscriptionError(f"rules come in one file, and {len(paths)} are named")
    with naming("standard input" if paths[0] == "-" else paths[0]), opened(paths[0]) as file:
        return from_json(file)
