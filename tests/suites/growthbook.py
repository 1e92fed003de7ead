"""GrowthBook's cases of targeting conditions, converted by ``cm.rules.from_growthbook``.

A column has the type of the value that a case has there, else that of what it is compared with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from saying import SUITES, CannotSay, Case, Said, type_of

import colmatch as cm

_FILE = SUITES / "data/growthbook/tests/cases.json"


def said(rule: Any, attributes: Any, groups: Any) -> Said:
    """Converts a condition, with a schema of its attributes and of what it names beside them."""
    found: dict[str, Any] = {"-": pa.string()}
    event: dict[str, Any] = {}
    for path, like in _attributes(rule):
        at, types, value = event, found, attributes
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        for part in path[:-1]:
            at, types = at.setdefault(part, {}), types.setdefault(part, {})
        if not isinstance(types.get(path[-1]), dict):
            at[path[-1]] = value
            types[path[-1]] = type_of(value, type_of(like))
    schema = pa.schema([(name, _type(one)) for name, one in found.items()])
    try:
        return Said(cm.rules.from_growthbook([rule], groups, schema)[0], event, schema)
    except cm.ExpressionError as error:
        raise CannotSay(re.sub(r"^rule 0: [^:]*: ", "", str(error))) from None


def _attributes(rule: Any) -> Iterator[tuple[list[str], Any]]:
    """Yields the attributes of a condition, each with something like its values."""
    for name, value in rule.items():
        if name in ("$and", "$or", "$nor", "$not"):
            for part in value if isinstance(value, list) else [value]:
                yield from _attributes(part)
        else:
            yield name.split("."), _example(value)


def _example(value: Any) -> Any:
    if isinstance(value, dict) and value and next(iter(value)).startswith("$"):
        return next((one for one in map(_example, value.values()) if one is not None), None)
    if isinstance(value, list):
        return next((one for one in value if not isinstance(one, list | dict)), None)
    return value


def _type(found: Any) -> pa.DataType:
    """Returns the type of a column; a mapping has those of a struct's fields."""
    return pa.struct({name: _type(one) for name, one in found.items()}) if isinstance(found, dict) else found


def cases() -> Iterator[Case]:
    for name, rule, attributes, expected, *groups in json.loads(_FILE.read_text())["evalCondition"]:
        yield name, lambda args=(rule, attributes, groups[0] if groups else {}): said(*args), expected
