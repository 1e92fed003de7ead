"""Rules from callers, as JSON or parsed JSON, read into a list of rules with ids."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from colmatch.errors import SubscriptionError, line_and_column, show_value
from colmatch.given.arguments import is_listed, python_value
from colmatch.given.incoming import is_text
from colmatch.kernels._forks import cached_property

_SPACE: Any = re.compile(r"[\s,:]*")  # between values of JSON


class Shape(NamedTuple):
    """The form of rules in a format.

    Attributes
    ----------
    is_rule : whether an object is one rule; else it is an object from id to rule
    needed : the forms that rules may have, for errors
    name : the key of a rule's name, if rules have one
    within : the key that the rules are behind, if they are part of an object
    """

    is_rule: Callable[[Mapping[Any, Any]], bool]
    needed: str
    name: str | None = None
    within: str | None = None


class Rule(NamedTuple):
    """A rule from the caller, with its names."""

    id: int | str
    label: str  # its name in errors
    given: Any  # its parsed JSON, not checked
    key: int | str = 0  # its number among the rules of a text, or its name in an object


class RulePositions:
    """Lines and columns of the rules of a JSON text, looked up only for errors."""

    def __init__(self, text: str | None, lines: list[int] | None, shape: Shape | None = None) -> None:
        self._text = text
        self._lines = lines  # of rules that have one line each
        self._shape = shape

    def of(self, rule: Rule) -> tuple[int, int] | None:
        """Returns line and column of a rule, from 1; None where rules are no text."""
        if self._lines is not None:
            return self._lines[int(rule.key)], 1
        if self._text is None:
            return None
        return line_and_column(self._text, self._starts[rule.key])

    @cached_property
    def _starts(self) -> dict[int | str, int]:
        assert self._text is not None and self._shape is not None
        at = _SPACE.match(self._text, 0).end()
        if self._shape.within is not None:
            at = _find_parts(self._text, at)[self._shape.within]
        elif self._text[at] == "{" and self._shape.is_rule(json.JSONDecoder().raw_decode(self._text, at)[0]):
            return {0: at}
        return _find_parts(self._text, at)


def _find_parts(text: str, at: int) -> dict[int | str, int]:
    """Returns the places of a list's members or of an object's values, by number or name."""
    decoder = json.JSONDecoder()
    is_object, at = text[at] == "{", _SPACE.match(text, at + 1).end()
    starts: dict[int | str, int] = {}
    while text[at] not in "]}":
        key: int | str = len(starts)
        if is_object:
            key, at = decoder.raw_decode(text, at)
            at = _SPACE.match(text, at).end()
        starts[key] = at
        at = _SPACE.match(text, decoder.raw_decode(text, at)[1]).end()
    return starts


def read_rules(source: object, shape: Shape) -> tuple[list[Rule], RulePositions, Any]:
    """Reads rules in any form that a format takes. Returns also the parsed JSON around them.

    Raises SubscriptionError: the source is not JSON, or not rules; or two have the same name.
    """
    content, places = _read_one(source, "the rules", shape)
    if shape.within is None:
        return _rules(content, shape), places, content
    if not isinstance(content, Mapping) or shape.within not in content:
        raise SubscriptionError(f"these are no rules: {shape.needed}, not {show_value(content)}")
    return _rules(content[shape.within], shape._replace(is_rule=lambda given: False)), places, content


def _rules(given: Any, shape: Shape) -> list[Rule]:
    if isinstance(given, Mapping) and not shape.is_rule(given):
        return [
            Rule(id, f"rule {show_value(id)}", _read_rule(rule, f"rule {show_value(id)}", shape), id)
            for id, rule in given.items()
        ]
    if isinstance(given, Mapping):
        given = [given]
    elif not is_listed(given):
        raise SubscriptionError(f"these are no rules: {shape.needed}, not {show_value(given)}")
    given = [(number, rule) for number, rule in enumerate(given) if not isinstance(rule, (str, bytes)) or rule.strip()]
    keys = [number for number, _ in given]
    rules = [_read_rule(rule, f"rule {number}", shape) for number, rule in given]
    names = [None if shape.name is None else _name(rule, number, shape.name) for number, rule in enumerate(rules)]
    first: dict[int | str, int] = {}
    for number, name in enumerate(names):
        if name is None:
            return [Rule(number, f"rule {number}", rule, keys[number]) for number, rule in enumerate(rules)]
        if first.setdefault(name, number) != number:
            raise SubscriptionError(
                f"rules {first[name]} and {number} are both named {show_value(name)}: give them other names, or none"
            )
    return [
        Rule(name, f"rule {show_value(name)}", rule, key) for name, rule, key in zip(first, rules, keys, strict=True)
    ]


def read_named(source: object, what: str) -> Mapping[Any, Any]:
    """Reads an object from name to something that rules refer to, or its JSON; None is none.

    what : the word for these things in errors

    Raises SubscriptionError: the source is not JSON, or no object.
    """
    named = {} if source is None else _read_one(source, f"the {what}", None)[0]
    if isinstance(named, Mapping):
        return named
    raise SubscriptionError(f"{what} are an object from name to {what.rsplit()[-1]}, not {show_value(named)}")


def _name(rule: Any, number: int, key: str) -> int | str | None:
    """Returns the name of a rule. As in json-rules-engine, an empty name is none."""
    name = python_value(rule.get(key)) if isinstance(rule, Mapping) else None
    if name is None or name is False or (isinstance(name, str) and not name):
        return None
    if isinstance(name, bool) or not isinstance(name, (int, str)) or (isinstance(name, str) and not is_text(name)):
        raise SubscriptionError(f"rule {number}: {key} is {show_value(name)}: a text or a whole number is needed")
    return name


def _read_one(source: Any, what: str, shape: Shape | None) -> tuple[Any, RulePositions]:
    """Returns parsed JSON, or lines of JSON, with places. Anything but a text stays unchanged."""
    if hasattr(source, "read"):
        source = source.read()
    if not isinstance(source, (str, bytes, bytearray, memoryview)):
        return source, RulePositions(None, None)
    text = _text(source, what)
    try:
        return _json(text, what), RulePositions(text, None, shape)
    except SubscriptionError:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2 or not _is_object(lines[0][1]):
            raise
    read = [_json(line, f"{what}, line {number}") for number, line in lines]
    return read, RulePositions(None, [number for number, _ in lines])


def _read_rule(rule: Any, what: str, shape: Shape) -> Any:
    """Returns a rule. It may be a separate text, as from json-rules-engine's ``toJSON``."""
    if not isinstance(rule, (str, bytes)):
        return rule
    try:
        return _json(_text(rule, what), what)
    except SubscriptionError as error:
        raise SubscriptionError(f"{error}; {shape.needed}") from None


def _text(source: Any, what: str) -> str:
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    try:
        return bytes(source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SubscriptionError(f"{what}: this is not UTF-8: {error}") from None


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise SubscriptionError(f"{what}: conditions within conditions, too deep") from None
    except ValueError as error:  # also of numbers with thousands of digits
        raise SubscriptionError(f"{what}: this is not JSON: {error}") from None


def _is_object(line: str) -> bool:
    try:
        return isinstance(_json(line, ""), dict)
    except SubscriptionError:
        return False


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
