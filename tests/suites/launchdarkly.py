"""Flags of LaunchDarkly as clauses over the attributes of contexts.

An evaluation is two cases: the variation that is served, and one that is not. Columns have the
types of the values in the context. A test of a list is one of its elements.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from saying import MISMATCH, SUITES, CannotSay, Case, Said, all_of, any_of, is_in, kind, literal, name_of, not_, type_of

_FOLDER = SUITES / "data/launchdarkly/data/data-files/server-side-eval"
_MOMENT = "yyyy-MM-dd\\'T\\'HH:mm:ss[.SSS]XXX"  # RFC 3339
_TEXTS = {"startsWith": "startswith", "endsWith": "endswith", "contains": "contains"}
_SIGNS = {
    "lessThan": "<", "lessThanOrEqual": "<=", "greaterThan": ">", "greaterThanOrEqual": ">=", "before": "<", "after": ">",
    "semVerEqual": "=", "semVerLessThan": "<", "semVerGreaterThan": ">",
}  # fmt: skip
_WHOLE = (1 << 60) - 1  # the greatest number of 15 hexadecimal digits
_MALFORMED = "a malformed rule, for which the SDK gives an error"


class Flag:
    """The condition that a flag serves a variation, with the columns that it needs."""

    def __init__(self, key: str, variation: int, data: dict[str, Any], context: dict[str, Any]) -> None:
        self._flags, self._segments = data.get("flags") or {}, data.get("segments") or {}
        self._contexts = _contexts_by_kind(context)
        self._columns: dict[str, Any] = {}
        self._types: dict[str, pa.DataType] = {"-": pa.string()}
        self.clause = self._serves(key, variation, ())

    def said(self) -> Said:
        return Said(self.clause, self._columns, pa.schema(list(self._types.items())))

    def _column(self, name: str, value: Any, like: Any = "") -> str:
        self._columns[name] = value
        self._types[name] = type_of(value, type_of(like))
        return name_of(name)

    def _serves(self, key: str, variation: int, above: tuple[str, ...]) -> str:
        flag = self._flags.get(key)
        if flag is None or key in above:
            raise CannotSay(_MALFORMED)
        if not flag.get("on"):
            return "TRUE" if flag.get("offVariation") == variation else "FALSE"
        ways = []  # conditions with what they serve; the first that is true counts
        for needed in flag.get("prerequisites") or []:
            is_on = self._flags.get(needed["key"], {}).get("on")
            test = self._serves(needed["key"], needed["variation"], (*above, key))
            ways.append((not_(test) if is_on else "TRUE", {"variation": flag.get("offVariation")}))
        for target in flag.get("contextTargets") or flag.get("targets") or []:
            same = [one for one in flag.get("targets") or [] if one["variation"] == target["variation"]]
            keys = target.get("values") or [one for target in same for one in target["values"]]
            ways.append((self._has_key(target.get("contextKind"), keys), target))
        for rule in flag.get("rules") or []:
            ways.append((self._clauses(rule), rule))
        ways.append(("TRUE", flag.get("fallthrough") or {}))
        parts, before = [], list[str]()
        for test, served in ways:
            parts.append(all_of([*map(not_, before), test, self._rolled_out(served, variation, key, flag)]))
            before.append(test)
        return any_of(parts)

    def _rolled_out(self, served: dict[str, Any], variation: int, key: str, flag: dict[str, Any]) -> str:
        rollout = served.get("rollout")
        if rollout is None:
            return "TRUE" if served.get("variation") == variation else "FALSE"
        if not rollout["variations"]:
            raise CannotSay(_MALFORMED)
        share = self._bucket(rollout, key, flag.get("salt", ""))
        ends = list(itertools.accumulate([one["weight"] for one in rollout["variations"]]))
        ends[-1] = max(ends[-1], 100_000)  # the last has the rest
        parts = []
        for one, start, end in zip(rollout["variations"], [0, *ends], ends, strict=False):
            if one["variation"] == variation:
                parts.append(
                    f"{share} >= {start}D / 100000 AND {share} {'<' if end < 100_000 else '<='} {end}D / 100000"
                )
        return any_of(parts)

    def _bucket(self, rollout: dict[str, Any], key: str, salt: str) -> str:
        """Says the share of a context: a number from 0 to 1; without the attribute it is 0."""
        of, attribute = rollout.get("contextKind") or "user", rollout.get("bucketBy") or "key"
        if rollout.get("kind") == "experiment":
            attribute = "key"
        value = self._value(of, attribute, bool(rollout.get("contextKind")))
        if kind(value) not in ("string", "number", "null") or isinstance(value, float):
            return "0D"
        column = self._column(f"{of}:{attribute}", value)
        text = column if not isinstance(value, int) else f"CAST({column} AS STRING)"
        seed = f"{rollout['seed']}." if rollout.get("seed") is not None else f"{key}.{salt}."
        digits = f"substring(sha1(concat({literal(seed)}, {text})), 1, 15)"
        return f"coalesce(CAST(conv({digits}, 16, 10) AS BIGINT) / {_WHOLE}, 0D)"

    def _has_key(self, of: str | None, keys: list[Any] | None) -> str:
        of = of or "user"
        return is_in(self._column(f"{of}:key", self._value(of, "key", False)), keys or [])

    def _value(self, of: str, attribute: str, is_path: bool) -> Any:
        value: Any = self._contexts.get(of)
        if value is None:
            return None
        steps = [attribute]
        if is_path and attribute.startswith("/"):
            steps = [part.replace("~1", "/").replace("~0", "~") for part in attribute[1:].split("/")]
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return False if attribute == "anonymous" and value is None else value

    def _clauses(self, rule: dict[str, Any], above: tuple[str, ...] = ()) -> str:
        return all_of([self._clause(clause, above) for clause in rule.get("clauses") or []])

    def _clause(self, rule: dict[str, Any], above: tuple[str, ...]) -> str:
        operator, values, of = rule["op"], rule.get("values") or [], rule.get("contextKind")
        if operator == "segmentMatch":
            test = any_of([self._segment(one, above) for one in values])
            return not_(test) if rule.get("negate") else test
        attribute = rule.get("attribute") or ""
        if not attribute or (of and re.fullmatch(r"/|.*//.*|/.*/|.*~(?![01]).*", attribute)):
            raise CannotSay(_MALFORMED)
        value = list(self._contexts) if attribute == "kind" else self._value(of or "user", attribute, bool(of))
        like = next((one for one in values if not isinstance(one, list | dict)), "")
        column = self._column(f"{of or 'user'}:{attribute}", value, like)
        if isinstance(value, list) and value:
            type_of(value)
            test = f"exists({column}, x -> {any_of([_test(operator, 'x', value[0], one) for one in values])})"
        else:
            test = any_of([_test(operator, column, value, one) for one in values])
        return f"{column} IS NOT NULL AND {not_(test)}" if rule.get("negate") else test

    def _segment(self, key: str, above: tuple[str, ...]) -> str:
        if key in above:
            raise CannotSay(_MALFORMED)
        segment = self._segments.get(key)
        if segment is None:
            return "FALSE"
        found = {}
        for name in ("included", "excluded"):
            contexts = [{"values": segment.get(name)}, *(segment.get(f"{name}Contexts") or [])]
            found[name] = any_of([self._has_key(one.get("contextKind"), one.get("values")) for one in contexts])
        rules = []
        for rule in segment.get("rules") or []:
            parts = [self._clauses(rule, (*above, key))]
            if rule.get("weight") is not None:
                by = {"contextKind": rule.get("rolloutContextKind"), "bucketBy": rule.get("bucketBy")}
                parts.append(f"{self._bucket(by, key, segment.get('salt', ''))} < {rule['weight']}D / 100000")
            rules.append(all_of(parts))
        return any_of([found["included"], all_of([not_(found["excluded"]), any_of(rules)])])


def _contexts_by_kind(context: dict[str, Any]) -> dict[str, dict[str, Any]]:
    of = context.get("kind")
    if of == "multi":
        return {name: one for name, one in context.items() if name != "kind"}
    return {of or "user": {**(context.get("custom") or {}), **context}}


def _test(operator: str, of: str, value: Any, member: Any) -> str:
    """Compares a value, or an element of one, with a member of a clause."""
    types = {kind(member)} if value is None else {kind(value), kind(member)}
    if operator in ("before", "after"):
        sides = _moment(of, kind(member) if value is None else kind(value)), _moment(literal(member), kind(member))
        return MISMATCH if None in sides else f" {_SIGNS[operator]} ".join(map(str, sides))
    if operator == "in":
        return f"{of} = {literal(member)}" if len(types) == 1 and types != {"object"} else MISMATCH
    if operator in ("startsWith", "endsWith", "contains", "matches"):
        if types != {"string"}:
            return MISMATCH
        name = _TEXTS.get(operator)
        return f"{name}({of}, {literal(member)})" if name else f"{of} RLIKE {literal(member)}"
    if operator.startswith("semVer"):  # no version begins with v
        if types != {"string"} or member.startswith("v"):
            return MISMATCH
        return f"semver({of}) {_SIGNS[operator]} semver({literal(member)}) AND {of} NOT LIKE 'v%'"
    if operator in _SIGNS:
        return f"{of} {_SIGNS[operator]} {literal(member)}" if types == {"number"} else MISMATCH
    return "FALSE"  # an operator that the SDK does not know


def _moment(of: str, type: str) -> str | None:
    if type == "string":
        return f"to_timestamp({of}, '{_MOMENT}')"
    return f"timestamp_millis({of})" if type == "number" else None


# The files


def _substitute(value: Any, names: dict[str, Any]) -> Any:
    """Puts values in the place of names such as <VALUE>."""
    if isinstance(value, str):
        whole = re.fullmatch(r"<([A-Z0-9_]+)>", value)
        if whole and whole[1] in names:
            return _substitute(names[whole[1]], names)
        return re.sub(r"<([A-Z0-9_]+)>", lambda match: str(names.get(match[1], match[0])), value)
    if isinstance(value, list):
        return [_substitute(one, names) for one in value]
    if isinstance(value, dict):
        return {_substitute(name, names): _substitute(one, names) for name, one in value.items()}
    return value


def _read(text: str) -> dict[str, Any]:
    """Reads YAML 1.2, in which ``on`` is a name."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:bool"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))
    return dict(yaml.load(re.sub(r":[ ]*(<[A-Z0-9_]+>)[ ]*$", r': "\1"', text, flags=re.M), Loader))


def cases() -> Iterator[Case]:
    for path in sorted(_FOLDER.glob("*.yml")):
        document = _read(path.read_text())
        parameters = document.get("parameters") or [{}]
        if isinstance(parameters[0], list):
            parameters = [
                {name: one for part in parts for name, one in part.items()} for parts in itertools.product(*parameters)
            ]
        for given in parameters:
            names = {**(document.get("constants") or {}), **given}
            data, evaluations = (_substitute(document.get(part) or {}, names) for part in ("sdkData", "evaluations"))
            for evaluation in evaluations:
                yield from _cases_of(f"{path.stem}: {evaluation.get('name')}", evaluation, data)


def _cases_of(name: str, evaluation: dict[str, Any], data: dict[str, Any]) -> Iterator[Case]:
    key, served = evaluation["flagKey"], (evaluation.get("expect") or {}).get("variationIndex")
    context = evaluation.get("context") or evaluation.get("user") or {}

    def of(variation: int | None) -> Said:
        if variation is None:
            raise CannotSay(_MALFORMED)
        return Flag(key, variation, data, context).said()

    yield name, lambda: of(served), True
    count = len((data.get("flags") or {}).get(key, {}).get("variations") or [])
    others = [one for one in range(count) if one != served]
    if served is not None and others:
        yield f"{name}, not {others[0]}", lambda: of(others[0]), False
