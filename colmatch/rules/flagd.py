"""Flags of flagd, converted to a condition for each variant.

The meaning follows flagd's sources of July 2026 in Go: ``json.go`` (targeting, variants),
``fractional.go`` (shares) and ``semver.go``. Targeting is JSONLogic with four more operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from colmatch.errors import SubscriptionError, show_value, suggest_names
from colmatch.expr.ast import Expr
from colmatch.expr.build import ColumnHandle
from colmatch.given.arguments import python_value, text, whole_number
from colmatch.rules.columns import Scope, schema_of
from colmatch.rules.convert import ConvertedRules, check_errors, convert_rules
from colmatch.rules.functions import check_count
from colmatch.rules.javascript import number_of_text, text_of
from colmatch.rules.joined import FALSE, Condition, constant
from colmatch.rules.jsonlogic import OPERATIONS, LogicReader, Operation, read_variable
from colmatch.rules.refusal import Named, Steps, Unusable, run
from colmatch.rules.source import Rule, Shape, read_rules
from colmatch.rules.values import (
    ANY,
    ARRAY,
    NOTHING,
    NULL,
    NUMBER,
    STRING,
    Leaf,
    Literal,
    Value,
    Variable,
    change,
    computed,
    decide,
    literal,
    select,
)

_SHAPE = Shape(
    lambda given: False, 'an object with flags is needed, as in {"flags": {"new-look": {...}}}', "key", "flags"
)
_OURS = (  # operations that flagd does not have
    "val", "exists", "switch", "??", "length", "lower", "upper", "trim", "abs", "ceil", "floor", "datetime", "timestamp", "now",
)  # fmt: skip
_EVALUATORS = "$evaluators"
_TARGETING_KEY = "targetingKey"
_HASHES = 1 << 32
_MOST_WEIGHT = (1 << 31) - 1


def from_flagd(definition: object, schema: object = None, errors: str = "raise") -> ConvertedRules:
    """Reads flags of flagd for ``Matcher.build``.

    Each variant of a flag is a separate rule, with the id ``flag/variant``. It matches an event
    if flagd evaluates the flag to this variant in such a context: by its targeting, or as the
    default variant where targeting gives null. So at most one variant of a flag matches, and none
    where flagd leaves the value to the program. Attributes of the context are columns, and so is
    ``targetingKey``; ``$flagd.timestamp`` is the time of the call (``now=``).

    Flags that are disabled have no rules; ``disabled`` lists them.

    Some flags differ from flagd:

    - a result that is no variant is refused if the rule names it, and matches nothing if it comes
      from a column; flagd reports an error in both cases
    - an operation with the wrong number of values is refused; flagd takes its result for null
    - ``sem_ver`` takes versions with a prerelease that have one or two numbers

    Parameters
    ----------
    definition : JSON as text, bytes or an open file, or parsed JSON: an object with ``flags``, by
        key or as a list, and perhaps ``$evaluators``
    schema : the columns of the events, as ``Matcher.build`` takes them. Without it, a column has
        the type of what it is compared with, and is Boolean by itself
    errors : ``"raise"``, or ``"collect"``: leave bad flags out and list them in ``rejected``

    Returns
    -------
    Rules : a dict from ``flag/variant`` to condition

    Raises
    ------
    ExpressionError : some flags cannot be converted. The message has the fault of each of the first
        ten, with its path
    SubscriptionError : the input is not JSON, or has no flags
    SchemaError : there can be no such schema

    Examples
    --------
    >>> flag = {"state": "ENABLED", "variants": {"on": True, "off": False}, "defaultVariant": "off"}
    >>> flag["targeting"] = {"if": [{"ends_with": [{"var": "email"}, "@example.org"]}, "on"]}
    >>> for id, condition in from_flagd({"flags": {"new": flag}}).items():
    ...     print(f"{id}: {condition}")
    new/on: endswith(email, '@example.org')
    new/off: NOT ((endswith(email, '@example.org')) IS TRUE)
    """
    stops = check_errors(errors)
    event = Scope(schema_of(schema))
    entries, places, content = read_rules(definition, _SHAPE)
    evaluators = content.get(_EVALUATORS)
    evaluators = {} if evaluators is None else evaluators
    if not isinstance(evaluators, Mapping):
        raise SubscriptionError(f"{_EVALUATORS} is an object from name to rule, not {show_value(evaluators)}")
    return convert_rules((entries, places), lambda rule: _convert(rule, event, evaluators), stops)


def _convert(rule: Rule, event: Scope, evaluators: Mapping[Any, Any]) -> dict[int | str, Expr] | None:
    """Makes the condition of each variant; None for a flag that is disabled."""
    flag = rule.given
    if not isinstance(flag, Mapping):
        raise Unusable("", f"a flag is an object with variants, not {show_value(flag)}")
    state = text(flag.get("state"))
    if state == "DISABLED":
        return None
    if state != "ENABLED":
        raise Unusable("state", f"ENABLED or DISABLED is needed, not {show_value(flag.get('state'))}")
    variants, default = flag.get("variants"), flag.get("defaultVariant")
    if not isinstance(variants, Mapping) or not list(variants) or any(text(name) is None for name in variants):
        raise Unusable("variants", f"an object from name to value is needed, not {show_value(variants)}")
    if default is not None and text(default) not in ("", *variants):
        raise Unusable("defaultVariant", _no_variant(default, variants))
    targeting, value = flag.get("targeting"), NOTHING
    if targeting is not None and not (isinstance(targeting, Mapping) and not targeting):
        value = run(_FlagReader(event, str(rule.id), evaluators).value(targeting, "targeting", event))
    leaves = [value.last, *(leaf for _, leaf in value.cases)]
    for leaf in leaves:
        if isinstance(leaf, Literal) and leaf.kind != NULL and text_of(leaf.value) not in variants:
            found = [] if leaf.kind == ARRAY else leaf.value
            raise Unusable("targeting", f"its result may be {_no_variant(found, variants)}")
    return {f"{rule.id}/{name}": decide(value, _is_variant(name, text(default)), "targeting").expr for name in variants}


def _no_variant(name: Any, variants: Mapping[str, Any]) -> str:
    return f"{show_value(name)}, which is no variant: {suggest_names(show_value(name), variants, 'the flag')}"


def _is_variant(name: str, default: str | None) -> Callable[[Leaf], Condition]:
    """Returns the test that a result means a variant."""

    def is_variant(leaf: Leaf) -> Condition:
        if isinstance(leaf, Literal):
            return constant(default == name if leaf.kind == NULL else text_of(leaf.value) == name)
        if leaf.kind == NUMBER:
            number = number_of_text(name)
            return Condition(leaf.handle == number) if number == number and text_of(number) == name else FALSE
        if leaf.kind in (STRING, ANY):
            return Condition(leaf.handle == name)
        raise Unusable("targeting", f"the name of a variant is a text, not a {leaf.kind}")

    return is_variant


class _FlagReader(LogicReader):
    """A converter of the targeting of a flag."""

    def __init__(self, event: Scope, key: str, evaluators: Mapping[Any, Any]) -> None:
        super().__init__(event, _OPERATIONS)
        self.key = key
        self.evaluators = Named[Value](evaluators, "evaluator", _EVALUATORS)


def _refer(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    check_count(name, parts, 1, 1, place)
    assert isinstance(reader, _FlagReader)
    return (
        yield from reader.evaluators.find(python_value(parts[0]), place, lambda rule: reader.value(rule, "", scope))
    )


def _variable(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    assert isinstance(reader, _FlagReader)
    if parts and parts[0] == "$flagd.flagKey":
        return literal(reader.key)
    if parts and parts[0] == "$flagd.timestamp":
        return Value((), Variable(NUMBER, computed("unix_seconds", computed("now"))))
    return (yield from read_variable(reader, name, parts, place, scope))


# Shares
# --------------------------------------------------------------------------


def _fractional(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    """Makes the variant of the bucket that the hash of a text falls into."""
    assert isinstance(reader, _FlagReader)
    check_count(name, parts, 1, None, place)
    values = yield from reader.values(parts, place, scope)
    first, has_key = values[0], values[0].last.kind != ARRAY
    buckets = [_bucket(value, f"{place}[{number}]") for number, value in enumerate(values) if number or not has_key]

    def share(leaf: Leaf) -> Value:
        return _distribute(leaf, buckets, [], place)

    if not has_key:
        return change(_default_key(reader, place), share, place)

    def of_key(leaf: Leaf) -> Value:
        if leaf.kind in (STRING, ANY):
            return share(leaf)
        if leaf.kind == NULL:
            schema = reader.event.schema
            has_default = schema is None or _TARGETING_KEY in schema.arrow.names
            return change(_default_key(reader, place), share, place) if has_default else NOTHING
        raise Unusable(
            f"{place}[0]", f'a text is needed to share by, not a {leaf.kind}: write {{"cat": [...]}} around it'
        )

    return change(first, of_key, place)


def _default_key(reader: _FlagReader, place: str) -> Value:
    """Returns the keys of the flag and of the target as one text, null without the latter."""

    def join(leaf: Leaf) -> Value:
        if leaf.kind == NULL:
            return NOTHING
        if not isinstance(leaf, Variable) or leaf.kind not in (STRING, ANY):
            raise Unusable(place, f"column {_TARGETING_KEY} is needed as a text")
        joined = Variable(STRING, computed("concat", reader.key, leaf.handle))
        return Value(((Condition(leaf.handle == ""), NOTHING.last),), joined)

    return change(reader.event.find([_TARGETING_KEY], place), join, place)


def _bucket(value: Value, place: str) -> tuple[Value, Value]:
    """Returns the variant and the weight of a bucket."""
    leaf = value.only
    if not isinstance(leaf, Literal) or leaf.kind != ARRAY or not leaf.value:
        raise Unusable(place, "a bucket is a list of a variant and its weight")
    weight = leaf.value[1] if len(leaf.value) > 1 else literal(1)
    return leaf.value[0], change(weight, lambda one: literal(_weight(one, place)), place)


def _weight(leaf: Leaf, place: str) -> int:
    if leaf.kind == NULL:
        return 1
    weight = whole_number(leaf.value) if isinstance(leaf, Literal) else None
    if isinstance(leaf, Literal) and isinstance(leaf.value, float) and leaf.value.is_integer():
        weight = int(leaf.value)
    if weight is None or weight > _MOST_WEIGHT:
        raise Unusable(f"{place}[1]", f"a weight is a whole number up to {_MOST_WEIGHT:,} that no column changes")
    return max(0, weight)


def _distribute(key: Leaf, buckets: list[tuple[Value, Value]], weights: list[int], place: str) -> Value:
    """Makes the value of the bucket that a text falls into, for each combination of weights."""
    if key.kind == NULL:
        return NOTHING
    if len(weights) < len(buckets):
        return change(
            buckets[len(weights)][1], lambda leaf: _distribute(key, buckets, [*weights, _known(leaf)], place), place
        )
    total = sum(weights)
    if total > _MOST_WEIGHT:
        raise Unusable(place, f"the weights are more than {_MOST_WEIGHT:,} together")
    hash: ColumnHandle = computed("murmur3_32", 0, key.value if isinstance(key, Literal) else key.handle)
    branches: list[tuple[Condition, Value]] = []
    last, end = NOTHING, 0
    for (variant, _), weight in zip(buckets, weights, strict=True):
        if weight:
            end, last = end + weight, variant  # a bucket ends before the hash with hash * total >> 32 = end
            branches.append((Condition(hash < -(-end * _HASHES // total)), variant))
    return select(branches[:-1], last, place)


def _known(leaf: Leaf) -> int:
    assert isinstance(leaf, Literal)
    return int(leaf.value)


_OPERATIONS: dict[str, Operation] = {
    **{name: operation for name, operation in OPERATIONS.items() if name not in _OURS},
    "var": _variable, "$ref": _refer, "fractional": _fractional,
}  # fmt: skip
