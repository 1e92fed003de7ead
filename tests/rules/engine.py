"""What json-rules-engine does with a rule and facts, step by step, in plain Python.

It reads the JSON itself and shares no code with ``colmatch.rules``; ``cases.json`` holds what the
engine itself did. Facts that are absent are None, as null is.
"""


def fires(rule, facts, conditions):
    """Whether a rule is true of facts."""
    return holds(rule["conditions"], facts, conditions)


def holds(condition, facts, named):
    if "any" in condition:
        return not condition["any"] or any(holds(part, facts, named) for part in condition["any"])
    if "all" in condition:
        return all(holds(part, facts, named) for part in condition["all"])
    if "not" in condition:
        return not holds(condition["not"], facts, named)
    if "condition" in condition:
        return holds(named[condition["condition"]], facts, named)
    left, right = value_of(condition, facts), condition["value"]
    if isinstance(right, dict):
        right = value_of(right, facts)
    return compare(condition["operator"], left, right)


def value_of(fact, facts):
    value = facts.get(fact["fact"])
    for name in fact.get("path", "$").replace("['", ".").replace("']", "").split(".")[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def same(a, b):
    """JavaScript's ``===`` of what JSON can say: one type of number, and lists are never equal."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return not isinstance(a, list) and a == b


def compare(operator, a, b):
    if operator == "equal":
        return same(a, b)
    if operator == "notEqual":
        return not same(a, b)
    if operator in ("in", "notIn"):
        return any(same(a, one) for one in b) == (operator == "in")
    if operator in ("contains", "doesNotContain"):
        return isinstance(a, list) and any(same(one, b) for one in a) == (operator == "contains")
    if a is None or b is None:
        return False
    return {
        "lessThan": a < b,
        "lessThanInclusive": a <= b,
        "greaterThan": a > b,
        "greaterThanInclusive": a >= b,
    }[operator]
