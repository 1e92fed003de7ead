"""Flags of flagd with the variants that contexts get, converted by ``cm.rules.from_flagd``.

An evaluation is two cases: the variant that is right, and any of the others. Two suites have them:
the features of flagd-testbed, and the files of datalogic-rs for flagd's own operations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from saying import SUITES, CannotSay, Case, Said, any_of, type_of

import colmatch as cm

_TESTBED = SUITES / "data/flagd/evaluator"
_DATALOGIC = SUITES / "data/datalogic/crates/datalogic-rs/tests/suites/flagd"
_TYPES = {"Integer": int, "Float": float, "String": str, "Boolean": lambda text: text == "true", "Object": json.loads}
_DEFAULT = "-"  # the default variant of a rule without flag


def _cases_of(name: str, definition: Any, key: str, context: dict[str, Any], expected: str | None) -> Iterator[Case]:
    """Yields the case of the variant that is right, or none, and that of the others."""

    def said(is_right: bool) -> Said:
        schema = pa.schema([("-", pa.string()), *[(column, type_of(value)) for column, value in context.items()]])
        try:
            made = cm.rules.from_flagd(definition, schema)
        except cm.ExpressionError as error:
            raise CannotSay(re.sub(r"^(rule|evaluator) '[^']*': [^:]*: ", "", str(error))) from None
        variants = {id.removeprefix(f"{key}/"): str(condition) for id, condition in made.items()}
        chosen = [text for variant, text in variants.items() if (variant == expected) is is_right]
        return Said(any_of(chosen), context, schema)

    if expected is not None:
        yield name, lambda: said(True), True
    yield f"{name}, no other", lambda: said(False), False


# flagd-testbed


def testbed() -> Iterator[Case]:
    definition = json.loads((_TESTBED / "flags/testkit-flags.json").read_text())
    for path in sorted((_TESTBED / "gherkin").glob("*.feature")):
        for number, steps in enumerate(_examples(path)):
            text = "\n".join(steps)
            flag = re.search(r'(\w+)-flag with key "(.*)" and a fallback value "(.*)"', text)
            if flag is None or "metadata" in text or "TYPE_MISMATCH" in text:
                continue  # which are no matter of variants
            type, key, fallback = _TYPES[flag[1]], flag[2], flag[3]
            context: dict[str, Any] = {}
            for name, of, value in re.findall(r'containing a key "(.*)", with type "(.*)" and with value "(.*)"', text):
                context[name] = _TYPES[of](value)
            for outer, inner, value in re.findall(r'outer key "(.*)" and inner key "(.*)", with value "(.*)"', text):
                context[outer] = {inner: value}
            for value in re.findall(r'a targeting key with value "(.*)"', text):
                context["targetingKey"] = value
            value = re.search(r'details value should be "(.*)"', text)
            given = definition["flags"].get(key)
            if given is None:
                continue  # a flag that is not there
            own = {"flags": {key: given}, "$evaluators": definition["$evaluators"]}
            context |= {
                column: None for column in _variables([given, definition["$evaluators"]]) if column not in context
            }
            wanted = None if value is None else type(value[1].replace('\\"', '"'))
            variants = [name for name, one in given["variants"].items() if one == wanted and "error-code" not in text]
            named = variants[0] if variants and "DISABLED" not in text else None
            found = list(_cases_of(f"{path.stem} {number} {key}", own, key, context, named))
            yield from found[-1:] if value is not None and value[1] == fallback else found  # it may be no variant


def _examples(path: Path) -> Iterator[list[str]]:
    """Yields the steps of each scenario of a feature, with each row of its examples."""
    background: list[str] = []
    steps: list[str] = []
    rows: list[list[str]] = []
    scenarios: list[tuple[list[str], list[dict[str, str]]]] = []
    tags = ""
    for line in [*map(str.strip, path.read_text().splitlines())]:
        if line.startswith("@"):
            tags = line
        elif line.startswith(("Scenario", "Background")):
            steps, rows = (background if line.startswith("Background") else [*background]), []
            if not line.startswith("Background"):
                scenarios.append((steps, []))
        elif line.startswith("Examples"):
            rows = [] if "v1" not in tags else [[]]  # shares of an older version
            tags = ""
        elif line.startswith("|") and rows != [[]]:
            rows.append([cell.strip().replace("\\|", "|") for cell in line.strip("|").split("|")])
            if len(rows) > 1:
                scenarios[-1][1].append(dict(zip(rows[0], rows[-1], strict=True)))
        elif line.startswith(("Given", "And", "When", "Then")):
            steps.append(line)
    for steps, examples in scenarios:
        outline = any("<" in step for step in steps)
        for example in examples if outline else [{}]:
            yield [re.sub(r"<(\w+)>", lambda match, values=example: values[match[1]], step) for step in steps]


def _variables(rule: Any) -> Iterator[str]:
    """Yields the columns that a rule names."""
    for part in rule.values() if isinstance(rule, dict) else rule if isinstance(rule, list) else ():
        yield from _variables(part)
    if isinstance(rule, dict) and "var" in rule:
        name = rule["var"][0] if isinstance(rule["var"], list) else rule["var"]
        if isinstance(name, str) and not name.startswith("$"):
            yield name.split(".")[0]
    elif isinstance(rule, dict) and "fractional" in rule:
        yield "targetingKey"


# datalogic-rs


def datalogic() -> Iterator[Case]:
    for path in sorted(_DATALOGIC.glob("*.json")):
        for at, case in enumerate(json.loads(path.read_text())):
            if not isinstance(case, dict) or "result" not in case:
                continue
            context = {name: value for name, value in (case.get("data") or {}).items() if name != "$flagd"}
            context |= {column: None for column in _variables(case["rule"]) if column not in context}
            key = (case.get("data") or {}).get("$flagd", {}).get("flagKey", "flag")
            texts = set(re.findall(r'"([\w -]*)"', json.dumps([case["rule"], context])))
            variants = dict.fromkeys([_DEFAULT, "true", "false", *sorted(texts)])
            flag = {"state": "ENABLED", "variants": variants, "defaultVariant": _DEFAULT, "targeting": case["rule"]}
            result = case["result"]
            wanted = _DEFAULT if result is None else json.dumps(result).strip('"')
            yield from _cases_of(f"{path.name} {at}", {"flags": {key: flag}}, key, context, wanted)
