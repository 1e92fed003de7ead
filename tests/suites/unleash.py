"""Feature toggles of Unleash as clauses over the texts of a context.

A strategy that rolls out by a share needs ``bucket`` with the group and the id.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from saying import SUITES, CannotSay, Case, Said, all_of, any_of, is_in, literal, name_of, not_

_FOLDER = SUITES / "data/unleash/specifications"
_TEXTS = {"STR_STARTS_WITH": "startswith", "STR_ENDS_WITH": "endswith", "STR_CONTAINS": "contains"}
_SIGNS = {"EQ": "=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "AFTER": ">", "BEFORE": "<"}
_STICKY = {"gradualRolloutUserId": "userId", "gradualRolloutSessionId": "sessionId"}


def _constraint(rule: dict[str, Any]) -> str:
    test = _operator(rule["operator"], name_of(rule["contextName"]), rule, rule.get("caseInsensitive", False))
    return not_(test) if rule.get("inverted") else test


def _operator(operator: str, column: str, rule: dict[str, Any], fold: bool) -> str:
    values, value = rule.get("values") or [], rule.get("value")
    family, _, sign = operator.partition("_")
    if operator in ("IN", "NOT_IN"):
        return is_in(column, values) if operator == "IN" else not_(is_in(column, values))
    if operator in _TEXTS:
        of = f"lower({column})" if fold else column
        return any_of([f"{_TEXTS[operator]}({of}, {literal(one.lower() if fold else one)})" for one in values])
    if operator == "REGEX":
        pattern = "(?i)" * fold + value
        return f"{column} RLIKE {literal(pattern)}" if _runs(pattern) else "FALSE"
    if operator == "IN_CIDR":
        return any_of([f"cidr_contains({literal(one)}, {column})" for one in values if _is_network(one)])
    if family == "NUM":
        return f"CAST({column} AS DOUBLE) {_SIGNS[sign]} CAST({literal(value)} AS DOUBLE)"
    if family == "DATE":
        moment = f"CAST({column} AS TIMESTAMP)"
        if rule["contextName"] == "currentTime":
            moment = f"coalesce({moment}, now())"
        return f"{moment} {_SIGNS[sign]} CAST({literal(value)} AS TIMESTAMP)"
    if family == "SEMVER":  # no version begins with v
        if value.startswith("v"):
            return "FALSE"
        return f"semver({column}) {_SIGNS[sign]} semver({literal(value)}) AND {column} NOT LIKE 'v%'"
    return "FALSE"  # an operator that Unleash does not know


def _runs(pattern: str) -> bool:
    """Returns whether RE2 takes a regular expression; Unleash takes no others."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        return False
    return True


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _strategy(rule: dict[str, Any], segments: dict[int, Any]) -> str:
    parts = list(map(_constraint, rule.get("constraints") or []))
    for segment in rule.get("segments") or []:
        parts += map(_constraint, segments[segment]["constraints"]) if segment in segments else ["FALSE"]
    name, given = rule["name"], rule.get("parameters") or {}
    if name == "userWithId":
        parts.append(is_in(name_of("userId"), [one.strip() for one in given.get("userIds", "").split(",")]))
    elif name == "remoteAddress":
        addresses = [one.strip() for one in given.get("IPs", "").split(",")]
        parts.append(_operator("IN_CIDR", name_of("remoteAddress"), {"values": addresses}, False))
    elif name == "flexibleRollout" or name.startswith("gradualRollout"):
        sticky = _STICKY.get(name, given.get("stickiness", "random"))
        parts.append(_share(int(given.get("rollout", given.get("percentage", 0))), sticky, given.get("groupId", "")))
    elif name != "default":
        parts.append("FALSE")  # a strategy that this client lacks
    return all_of(parts)


def _share(percentage: int, sticky: str, group: str) -> str:
    if percentage == 0:
        return "FALSE"
    of = {"default": "coalesce(`userId`, `sessionId`)"}.get(sticky, name_of(sticky))
    if sticky in ("default", "random") and percentage == 100:
        return "TRUE"  # of those without an id, too
    if sticky == "random":
        raise CannotSay("a share of what has no id")
    return f"bucket(0, concat({literal(f'{group}:')}, {of}), 100) < {percentage}"


def _toggle(toggle: dict[str, Any], toggles: dict[str, Any], segments: dict[int, Any]) -> str:
    if not toggle.get("enabled"):
        return "FALSE"
    strategies = [_strategy(one, segments) for one in toggle.get("strategies") or []]
    parts = [any_of(strategies) if strategies else "TRUE"]
    for link in toggle.get("dependencies") or []:
        parent = toggles.get(link["feature"], {})
        if parent.get("dependencies"):
            return "FALSE"  # a parent has no parents
        test = _toggle(parent, toggles, segments)
        parts.append(not_(test) if link.get("enabled") is False else test)
        if link.get("variants"):
            parts.append("TRUE" if _variant(parent) in link["variants"] else "FALSE")
    return all_of(parts)


def _variant(toggle: dict[str, Any]) -> str:
    """Returns the only variant of a toggle that is on."""
    names = {one["name"] for rule in toggle.get("strategies") or [] for one in rule.get("variants") or []}
    if len(names) > 1:
        raise CannotSay("one of several variants")
    return names.pop() if names else "disabled"


def _said(name: str, context: dict[str, Any], toggles: dict[str, Any], segments: dict[int, Any]) -> Said:
    event = {**context, **(context.get("properties") or {})}
    event = {key: None if value is None else str(value) for key, value in event.items() if key != "properties"}
    clause = _toggle(toggles.get(name, {}), toggles, segments)
    columns = {*event, *re.findall("`([^`]+)`", clause)}
    return Said(clause, event, pa.schema([(column, pa.string()) for column in sorted(columns or {"-"})]))


def cases() -> Iterator[Case]:
    for path in sorted(_FOLDER.glob("*.json")):
        specification = json.loads(path.read_text())
        if "delta-api" in path.name or "state" not in specification:
            continue
        state = specification["state"]
        toggles = {one["name"]: one for one in state["features"]}
        segments = {one["id"]: one for one in state.get("segments") or []}
        for test in specification.get("tests", []):
            args = test["toggleName"], test["context"], toggles, segments
            yield (
                f"{specification['name']}: {test['description']}",
                lambda args=args: _said(*args),
                test["expectedResult"],
            )
