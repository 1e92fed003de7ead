"""JSONLogic and JavaScript's rules for its values, step by step, in plain Python.

It reads the JSON itself and shares no code with ``colmatch.rules``. Null and undefined are None.
"""

import itertools
import math
import operator

NAN = math.nan
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def apply(rule, data):
    """Returns the value of a rule."""
    if isinstance(rule, list):
        return [apply(part, data) for part in rule]
    if not isinstance(rule, dict):
        return rule
    ((name, parts),) = rule.items()
    parts = parts if isinstance(parts, list) else [parts]
    if name in ("if", "?:"):
        for at in range(0, len(parts) - 1, 2):
            if truthy(apply(parts[at], data)):
                return apply(parts[at + 1], data)
        return apply(parts[-1], data) if len(parts) % 2 else None
    if name in ("and", "or"):
        value = None
        for part in parts:
            value = apply(part, data)
            if truthy(value) == (name == "or"):
                return value
        return value
    if name in ("all", "some", "none"):
        members = apply(parts[0], data) or []
        passed = [truthy(apply(parts[1], member)) for member in members]
        return all(passed) and bool(passed) if name == "all" else any(passed) == (name == "some")
    values = [apply(part, data) for part in parts]
    return OPERATIONS[name](values, data)


def truthy(value):
    return bool(value) and value == value


def number(value):
    if isinstance(value, str):
        try:
            return float(value) if value.strip() else 0
        except ValueError:
            return NAN
    return 0 if value is None else value


def text(value):
    if isinstance(value, bool) or value is None:
        return str(value).lower() if value is not None else ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def kind(value):
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def equal(a, b):
    if a is None or b is None:
        return a is b
    return a == b if kind(a) == kind(b) else number(a) == number(b)


def same(a, b):
    return kind(a) == kind(b) and a == b


def chain(test, values):
    return all(test(a, b) for a, b in itertools.pairwise(values))


def ordered(sign):
    def test(a, b):
        return ORDERS[sign](a, b) if kind(a) == kind(b) == "str" else ORDERS[sign](number(a), number(b))

    return lambda values, data: chain(test, values)


def look(values, data):
    name, *default = values
    value = data
    for part in str(name).split(".") if name != "" else []:
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return default[0] if default and value is None else value


def missing(values, data):
    names = values[0] if values and isinstance(values[0], list) else values
    return [name for name in names if look([name], data) in (None, "")]


def missing_some(values, data):
    least, names = values
    found = missing(names, data)
    return [] if len(names) - len(found) >= least else found


def within(values, data):
    what, where = values
    if where is None or (what is None and isinstance(where, str)):
        return False
    return text(what) in where if isinstance(where, str) else any(same(what, one) for one in where)


def arithmetic(compute):
    def made(values, data):
        try:
            value, *rest = map(number, values)
            for one in rest:
                value = compute(value, one)
            return value
        except (ZeroDivisionError, ValueError):
            return NAN

    return made


def substring(values, data):
    of, start, *length = values
    rest = text(of)[start:] if start >= 0 or -start <= len(text(of)) else text(of)
    return rest[: length[0]] if length else rest


def affix(method):
    return lambda values, data: method(*values) if all(isinstance(one, str) for one in values) else None


OPERATIONS = {
    **{sign: ordered(sign) for sign in ORDERS},
    "==": lambda values, data: chain(equal, values),
    "!=": lambda values, data: chain(lambda a, b: not equal(a, b), values),
    "===": lambda values, data: chain(same, values),
    "!==": lambda values, data: chain(lambda a, b: not same(a, b), values),
    "!": lambda values, data: not truthy(values[0]),
    "!!": lambda values, data: truthy(values[0]),
    "var": look, "missing": missing, "missing_some": missing_some, "in": within,
    "+": arithmetic(operator.add), "-": arithmetic(operator.sub), "*": arithmetic(operator.mul),
    "/": arithmetic(operator.truediv), "%": arithmetic(math.fmod),
    "max": lambda values, data: max(map(number, values)), "min": lambda values, data: min(map(number, values)),
    "cat": lambda values, data: "".join(map(text, values)), "substr": substring,
    "starts_with": affix(str.startswith), "ends_with": affix(str.endswith),
    "merge": lambda values, data: [one for value in values for one in (value if isinstance(value, list) else [value])],
}  # fmt: skip
