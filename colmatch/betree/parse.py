"""A parser: a text of the be-tree library's language -> the tree of ``ast.py``, with its literals.

The language has typed domains, so names and types are checked on the way. A refusal has the place
of the fault in the text. ``not`` binds tighter than ``and``, and ``and`` tighter than ``or``. No
function calls itself, so parentheses may nest as deep as the options allow.

The parser is written by hand. The language has a dozen rules, each with a separate error, and needs
no generator. In be-tree, two floats that differ by less than ``EPSILON`` are equal. So ``f = 1.5``
becomes a BETWEEN of the least and the largest equal float.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from colmatch.betree import tokens as words
from colmatch.betree.bounds import check_comparison, check_elements, check_member
from colmatch.betree.domains import (
    BOOLEAN,
    ENUM,
    FLOAT,
    FREQUENCY,
    INTEGER,
    INTEGERS,
    SEGMENTS,
    STRING,
    STRINGS,
    Domain,
)
from colmatch.betree.special import Constants, call
from colmatch.betree.tokens import Word, words_of
from colmatch.errors import show_value, suggest_names
from colmatch.expr.ast import And, Constant, Expr, Not, Or, Predicate, Refusal, Subject, Verb, conjoin
from colmatch.expr.computed import FLIPPED
from colmatch.given.special import SPECIAL
from colmatch.lowering.forms import Kind, Operand
from colmatch.lowering.keys import float_key, key_float

EPSILON = 2.220446049250313e-16  # floats that differ by less are equal

_COMPARISONS = {"<": Verb.LT, "<=": Verb.LE, ">": Verb.GT, ">=": Verb.GE, "=": Verb.EQ, "<>": Verb.NE}
_TEXTS = {"contains": Verb.CONTAINS, "starts_with": Verb.STARTSWITH, "ends_with": Verb.ENDSWITH}
_LISTS = {"one": (Verb.ARRAYS_OVERLAP, False), "none": (Verb.ARRAYS_OVERLAP, True), "all": (Verb.CONTAINS_ALL, False)}
_RESERVED = ("and", "or", "not", "in")
_AFTER = ("and", "or", "&&", "||", ")")
_LITERALS = (words.INTEGER, words.FLOAT, words.STRING)
_SAID = {words.INTEGER: "an integer", words.FLOAT: "a float", words.STRING: "a string"}
_KINDS = {words.INTEGER: Kind.INT, words.FLOAT: Kind.DOUBLE, words.STRING: Kind.STRING}


class _Parenthesis:
    """The contents of one pair of parentheses, as far as the parser has read them."""

    __slots__ = ("ands", "at", "negated", "odd", "ors")

    def __init__(self, at: int, negated: bool, odd: bool) -> None:
        self.ors: list[Expr] = []
        self.ands: list[Expr] = []
        self.negated = negated  # a NOT precedes the parentheses
        self.odd = odd  # an odd number of NOTs applies to the contents
        self.at = at

    def close(self) -> Expr:
        expression = conjoin(Or, [*self.ors, conjoin(And, self.ands)])
        return Not(expression) if self.negated else expression


def parse_betree(text: str, domains: Mapping[str, Domain], max_depth: int, constants: Constants) -> Expr:
    """Returns the tree of a text.

    domains : by name in lower case
    constants : constants of the expression, for ``within_frequency_cap``

    Raises Refusal: the text is no sentence of the language. The refusal has the place.
    """
    reader = _LeafParser(words_of(text), domains, constants)
    levels = [_Parenthesis(0, False, False)]
    i, negated, text_words = 0, False, reader.words
    while True:
        word = text_words[i]  # a condition is expected here
        if word.kind == words.NAME and word.value == "not":
            negated, i = not negated, i + 1
            continue
        if word.kind == words.SIGN and word.value == "(":
            if len(levels) > max_depth:
                raise Refusal(
                    f"the expression nests deeper than {max_depth} levels: flatten it, or raise Options(max_depth=...)",
                    word.at,
                )
            levels.append(_Parenthesis(word.at, negated, levels[-1].odd ^ negated))
            negated, i = False, i + 1
            continue
        condition, i = reader.leaf(i, levels[-1].odd ^ negated)
        levels[-1].ands.append(Not(condition) if negated else condition)
        negated = False
        while text_words[i].kind == words.SIGN and text_words[i].value == ")":
            if len(levels) == 1:
                raise Refusal("this ) closes nothing", text_words[i].at)
            condition = levels.pop().close()
            levels[-1].ands.append(condition)
            i += 1
        word = text_words[i]  # a condition has ended here
        if word.kind == words.END:
            break
        if word.value in ("or", "||") and word.kind in (words.NAME, words.SIGN):
            level = levels[-1]
            level.ors.append(conjoin(And, level.ands))
            level.ands = []
        elif word.value not in ("and", "&&") or word.kind not in (words.NAME, words.SIGN):
            raise _refuse_word("and, or or the end" if len(levels) == 1 else "and, or or )", word)
        i += 1
    if len(levels) > 1:
        raise Refusal("this ( is not closed", levels[-1].at)
    return levels[0].close()


def _refuse_word(what: str, word: Word) -> Refusal:
    finding = "the text ends" if word.kind == words.END else f"there is {show_value(word.value)}"
    return Refusal(f"{what} is expected here, where {finding}", word.at)


class _LeafParser:
    """A reader of conditions without ``and``, ``or`` and ``not``."""

    def __init__(self, some: list[Word], domains: Mapping[str, Domain], constants: Constants) -> None:
        self.words = some
        self._domains = domains
        self._constants = constants
        self._odd = False

    def leaf(self, i: int, odd: bool) -> tuple[Expr, int]:
        """Returns the condition that begins at word ``i``, and the word after it.

        odd : an odd number of NOTs precedes the condition
        """
        word = self.words[i]
        self._odd = odd
        if word.kind in _LITERALS:
            return self._literal_first(i)
        if word.kind != words.NAME or word.value in _RESERVED:
            raise _refuse_word("a condition", word)
        if word.value in ("true", "false"):
            return Constant(word.value == "true"), i + 1
        if self._is(i + 1, "("):
            return self._call(i)
        return self._attribute_first(i)

    def _is(self, i: int, sign: str) -> bool:
        return i < len(self.words) and self.words[i].kind in (words.SIGN, words.NAME) and self.words[i].value == sign

    def _domain(self, i: int, allowed: tuple[str, ...], what: str) -> Domain:
        """Returns the domain that word ``i`` names.

        allowed : types that the domain may have; empty for any type
        """
        word = self.words[i]
        if word.kind != words.NAME or word.value in _RESERVED:
            raise _refuse_word("the name of an attribute", word)
        domain = self._domains.get(word.value.lower())
        if domain is None:
            name = word.value if len(word.value) <= 80 else word.value[:80] + "…"
            advice = suggest_names(word.value.lower()[:200], self._domains, "the list of domains")
            if word.value.lower() in (*_RESERVED, "true", "false"):
                advice = "words of the language are in lower case"
            raise Refusal(f"unknown attribute {name!r}: {advice}", word.at)
        if allowed and domain.type not in allowed:
            needed = allowed[0] if len(allowed) == 1 else f"{', '.join(allowed[:-1])} or {allowed[-1]}"
            raise Refusal(
                f"{what} is for attributes of type {needed}; {domain.name!r} is of type {domain.type}", word.at
            )
        return domain

    def _attribute_first(self, i: int) -> tuple[Expr, int]:
        sign = self.words[i + 1]
        if sign.kind == words.SIGN and sign.value in _COMPARISONS:
            literal = self.words[i + 2]
            if literal.kind not in _LITERALS:
                raise _refuse_word("a literal", literal)
            return self._compare(i, sign.value, i + 2), i + 3
        negated = sign.kind == words.NAME and sign.value == "not"
        if sign.kind == words.NAME and (negated or sign.value == "in"):
            if negated and not self._is(i + 2, "in"):
                raise _refuse_word("in", self.words[i + 2])
            return self._member(i, i + 2 + negated, negated)
        if sign.kind == words.NAME and sign.value in _LISTS and self._is(i + 2, "of"):
            return self._list(i, *_LISTS[sign.value])
        if sign.kind == words.NAME and sign.value == "is":
            return self._state(i)
        domain = self._domain(i, (), "")
        if domain.type != BOOLEAN and sign.kind != words.END and sign.value not in _AFTER:
            raise _refuse_word("a comparison or another operator", sign)
        if domain.type != BOOLEAN:
            raise Refusal(
                f"{domain.name!r} is of type {domain.type}, not a condition by itself: compare it with something",
                self.words[i].at,
            )
        return Predicate(Verb.BARE, _subject(domain)), i + 1

    def _literal_first(self, i: int) -> tuple[Expr, int]:
        literal, sign = self.words[i], self.words[i + 1]
        if sign.kind == words.SIGN and sign.value in _COMPARISONS:
            return self._compare(i + 2, FLIPPED.get(sign.value, sign.value), i), i + 3
        negated = sign.kind == words.NAME and sign.value == "not"
        if not self._is(i + 1 + negated, "in"):
            raise _refuse_word("in" if negated else "a comparison or in", self.words[i + 1 + negated])
        at = i + 2 + negated
        if literal.kind == words.FLOAT:
            raise Refusal("lists have no floats: an integer or a string can be in one", literal.at)
        domain = self._domain(at, (INTEGERS, STRINGS), "in behind a literal")
        self._fit(domain, literal)
        if literal.kind == words.INTEGER:
            check_elements(domain, (literal.value,), "none" if negated else "one", literal.at, self._odd)
        operand = Operand(_KINDS[literal.kind], value=literal.value)
        return Predicate(Verb.ARRAY_CONTAINS, _subject(domain), (operand,), negated=negated), at + 1

    def _fit(self, domain: Domain, literal: Word) -> None:
        """Checks that a literal has the type of the attribute, or of its elements."""
        needed = [words.STRING] if domain.type in (STRING, STRINGS) else [words.INTEGER]
        if domain.type == FLOAT:
            needed = [words.FLOAT, words.INTEGER]
        if literal.kind not in needed:
            raise Refusal(
                f"{domain.name!r} is of type {domain.type}: {_SAID[needed[0]]} is needed here, not {_SAID[literal.kind]}",
                literal.at,
            )

    def _compare(self, i: int, sign: str, at: int) -> Expr:
        """Returns the comparison of the attribute at word ``i`` with the literal at word ``at``."""
        equal = sign in ("=", "<>")
        domain = self._domain(i, (INTEGER, FLOAT, STRING, ENUM) if equal else (INTEGER, FLOAT), sign)
        literal = self.words[at]
        self._fit(domain, literal)
        if literal.kind != words.STRING:
            check_comparison(domain, sign, literal.value, literal.at, self._odd)
        if domain.type == FLOAT:
            value = float(literal.value)
            if equal:
                low, high = find_equal_floats(value)
                operands = Operand(Kind.DOUBLE, value=low), Operand(Kind.DOUBLE, value=high)
                return Predicate(Verb.BETWEEN, _subject(domain), operands, negated=sign == "<>")
            return Predicate(_COMPARISONS[sign], _subject(domain), (Operand(Kind.DOUBLE, value=value),))
        return Predicate(_COMPARISONS[sign], _subject(domain), (Operand(_KINDS[literal.kind], value=literal.value),))

    def _member(self, i: int, at: int, negated: bool) -> tuple[Expr, int]:
        """Reads ``attribute in (...)``, with a list that begins at word ``at``."""
        if self.words[at].kind == words.NAME:
            raise Refusal(
                "two attributes are not compared: a list of literals in parentheses is expected here", self.words[at].at
            )
        domain = self._domain(i, (INTEGER, STRING), "in")
        kind, values, end = self._values(at, domain)
        if kind is Kind.INT:
            check_member(domain, values, negated, self.words[at].at, self._odd)
        return Predicate(Verb.IN, _subject(domain), (Operand(kind, many=True, value=values),), negated=negated), end

    def _list(self, i: int, verb: Verb, negated: bool) -> tuple[Expr, int]:
        domain = self._domain(i, (INTEGERS, STRINGS), f"{self.words[i + 1].value} of")
        kind, values, end = self._values(i + 3, domain)
        if kind is Kind.INT:
            check_elements(domain, values, self.words[i + 1].value, self.words[i + 3].at, self._odd)
        if verb is Verb.CONTAINS_ALL:
            operands = tuple([Operand(kind, value=value) for value in values])
        else:
            operands = (Operand(kind, many=True, value=values),)
        return Predicate(verb, _subject(domain), operands, negated=negated), end

    def _values(self, i: int, domain: Domain) -> tuple[Kind, tuple[Any, ...], int]:
        """Returns the kind of a list, its literals, each once, and the word after it."""
        if not self._is(i, "("):
            raise _refuse_word("a list of literals in parentheses", self.words[i])
        values: dict[Any, None] = {}
        first = self.words[i + 1]
        while True:
            literal = self.words[i + 1]
            if literal.kind not in (words.INTEGER, words.STRING):
                raise _refuse_word("an integer or a string", literal)
            if literal.kind != first.kind:
                raise Refusal("integers and strings are not mixed in a list", literal.at)
            self._fit(domain, literal)
            values[literal.value] = None
            i += 2
            if self._is(i, ")"):
                return _KINDS[first.kind], tuple(values), i + 1
            if not self._is(i, ","):
                raise _refuse_word("a comma or )", self.words[i])

    def _state(self, i: int) -> tuple[Expr, int]:
        """Reads ``is null``, ``is not null`` and ``is empty``."""
        if self._is(i + 2, "empty"):
            domain = self._domain(i, (INTEGERS, STRINGS), "is empty")
            zero = Operand(Kind.INT, value=0)
            return Predicate(Verb.EQ, _subject(domain)._replace(size=True), (zero,)), i + 3
        negated = self._is(i + 2, "not")
        at = i + 2 + negated
        if not self._is(at, "null"):
            raise _refuse_word("null" if negated else "null, not null or empty", self.words[at])
        domain = self._domain(i, (), "")
        if not domain.allow_undefined:
            raise Refusal(f"{domain.name!r} is never undefined: its domain does not allow that", self.words[i].at)
        # a list of structs has no attribute but its size
        predicate = Predicate(Verb.NULL, _subject(domain)._replace(size=domain.type in (SEGMENTS, FREQUENCY)))
        return (Not(predicate) if negated else predicate), at + 1

    def _call(self, i: int) -> tuple[Expr, int]:
        """Reads the function call that begins with its name at word ``i``."""
        name = self.words[i]
        if name.value not in _TEXTS and name.value not in SPECIAL:
            advice = suggest_names(name.value[:200], [*_TEXTS, *SPECIAL], "the language")
            raise Refusal(f"there is no function {show_value(name.value)}: {advice}", name.at)
        arguments, end = self._arguments(i + 2)
        if name.value in SPECIAL:
            return call(name, arguments, self._domains, self._constants), end
        if len(arguments) != 2 or arguments[0].kind != words.NAME or arguments[1].kind != words.STRING:
            raise Refusal(f'{name.value} takes an attribute and a string, as in {name.value}(city, "x")', name.at)
        domain = self._domain(i + 2, (STRING,), name.value)
        operand = Operand(Kind.STRING, value=arguments[1].value)
        return Predicate(_TEXTS[name.value], _subject(domain), (operand,)), end

    def _arguments(self, i: int) -> tuple[list[Word], int]:
        """Returns the arguments that begin at word ``i``, and the word after them."""
        arguments: list[Word] = []
        while True:
            word = self.words[i]
            if word.kind not in _LITERALS and word.kind != words.NAME:
                raise _refuse_word("an argument", word)
            arguments.append(word)
            if self._is(i + 1, ")"):
                return arguments, i + 2
            if not self._is(i + 1, ","):
                raise _refuse_word("a comma or )", self.words[i + 1])
            i += 2


def _subject(domain: Domain) -> Subject:
    return Subject((domain.name,))


def find_equal_floats(value: float) -> tuple[float, float]:
    """Returns the least and the largest float that be-tree takes as equal to ``value``."""
    ends = []
    # Halve the interval with the last equal float, below and above
    for away in (-math.inf, math.inf):
        inside, outside = float_key(value), float_key(math.nextafter(value + math.copysign(EPSILON, away), away))
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            if abs(key_float(middle) - value) < EPSILON:
                inside = middle
            else:
                outside = middle
        ends.append(key_float(inside))
    return ends[0], ends[1]
