"""Rules of JSONLogic with a Boolean result, converted by ``cm.rules.from_jsonlogic``.

A column has the type of the value that a case has there; an absent one has the type null.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from saying import SUITES, CannotSay, Case, Said, type_of

import colmatch as cm

_FOLDER = SUITES / "data/datalogic/crates/datalogic-rs/tests/suites"


def said(rule: Any, data: Any) -> Said:
    """Converts a rule, with a schema of its data and of what it names beside them."""
    columns = _plain(data) if isinstance(data, dict) else {}
    for path in _paths(rule):
        at = columns
        for part in path[:-1]:
            at = at.setdefault(part, {}) if isinstance(at, dict) and at.get(part, {}) is not None else {}
        if isinstance(at, dict) and path:
            at.setdefault(path[-1], None)
    columns = {name: value for name, value in columns.items() if name}
    schema = pa.schema([("-", pa.string()), *[(name, _type(value)) for name, value in columns.items()]])
    try:
        converted = cm.rules.from_jsonlogic([rule], schema)
    except cm.ExpressionError as error:
        raise CannotSay(re.sub(r"^rule 0: [^:]*: ", "", str(error))) from None
    used = [pa.field(field.name, _known(field.type)) for field in schema]
    return Said(converted[0], {field.name: columns.get(field.name) for field in used}, pa.schema(used))


def _plain(value: Any) -> Any:
    """Returns data with moments in the place of objects that are moments."""
    if isinstance(value, dict):
        if list(value) == ["datetime"]:
            return dt.datetime.fromisoformat(value["datetime"])
        if list(value) == ["timestamp"]:
            return value["timestamp"]
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _type(value: Any) -> pa.DataType:
    if isinstance(value, dict) and "" in value:
        return pa.map_(pa.string(), type_of(value[""]))
    if isinstance(value, dict) and value:
        return pa.struct({name: _type(one) for name, one in value.items()})
    return pa.null() if value is None else pa.list_(pa.null()) if value == [] else type_of(value)


def _known(type: pa.DataType) -> pa.DataType:
    """Returns a type with text in the place of null, which columns cannot be."""
    if pa.types.is_struct(type):
        return pa.struct({field.name: _known(field.type) for field in type})
    if pa.types.is_list(type):
        return pa.list_(_known(type.value_type))
    return pa.string() if pa.types.is_null(type) else type


def _paths(rule: Any) -> Iterator[list[str]]:
    """Yields the names of the variables of a rule, and of its parts."""
    for part in rule.values() if isinstance(rule, dict) else rule if isinstance(rule, list) else ():
        yield from _paths(part)
    if isinstance(rule, dict) and len(rule) == 1:
        ((name, parts),) = rule.items()
        parts = parts if isinstance(parts, list) else [parts]
        if name == "var" and parts and isinstance(parts[0], str):
            yield parts[0].split(".")
        elif name in ("val", "exists", "missing") and all(isinstance(part, str) for part in parts):
            yield from [[part] for part in parts] if name == "missing" else [parts]


def cases(wanted: type = bool) -> Iterator[Case]:
    """Yields the cases with a Boolean result; with ``object``, whether others have theirs."""
    for path in sorted(_FOLDER.glob("**/*.json")):
        for at, case in enumerate(json.loads(path.read_text())):
            if isinstance(case, dict) and "rule" in case and "error" not in case:
                rule, data, expected = case["rule"], case.get("data"), case.get("result")
            elif isinstance(case, list) and len(case) == 3:
                rule, data, expected = case
            else:
                continue
            if isinstance(expected, bool) and wanted is bool:
                yield f"{path.relative_to(_FOLDER)} {at}", _conversion(rule, data), expected
            elif isinstance(expected, int | float | str | None) and not isinstance(expected, bool) and wanted is object:
                yield f"{path.relative_to(_FOLDER)} {at}", _conversion({"===": [rule, expected]}, data), True


def _conversion(rule: Any, data: Any) -> Callable[[], Said]:
    return lambda: said(rule, data)
