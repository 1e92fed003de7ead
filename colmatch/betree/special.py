"""Calls of the special functions of the be-tree library's language, with checked arguments."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from colmatch.betree import tokens as words
from colmatch.betree.domains import FLOAT, FREQUENCY, INTEGER, SEGMENTS, Domain
from colmatch.betree.tokens import Word
from colmatch.errors import show_value
from colmatch.events.special.lists import HALF
from colmatch.expr.ast import Expr, Predicate, Refusal, Verb
from colmatch.expr.computed import ComputedValue
from colmatch.expr.special import subject_of
from colmatch.given.special import (
    CAP,
    CLOCK,
    DEGREES,
    NUMBER,
    PLACE,
    SEGMENT_FIELDS,
    SPECIAL,
    TEXT,
    UINT32,
    WHOLE,
    pack,
)
from colmatch.lowering.forms import Kind, Operand

Constants = Mapping[str, int] | None

_CAPS = ("advertiser", "campaign", "campaign_group", "flight", "product")
_KINDS = {
    NUMBER: (words.INTEGER, words.FLOAT),
    WHOLE: (words.INTEGER,),
    UINT32: (words.INTEGER,),
    TEXT: (words.STRING,),
}
_DOMAINS = {DEGREES: FLOAT, CLOCK: INTEGER}


def call(name: Word, arguments: list[Word], domains: Mapping[str, Domain], constants: Constants) -> Expr:
    """Returns the condition of a call of a special function.

    Raises Refusal: the arguments are wrong, a constant is missing, or a domain is not declared.
    """
    function = SPECIAL[name.value]
    named, takes = function.named, list(function.takes)
    if function.reads[0] is SEGMENT_FIELDS and arguments and arguments[0].kind == words.NAME:
        named, arguments = (arguments[0].value, named[1]), arguments[1:]
    if name.value == CAP:
        del takes[1]  # the id is a constant
    _check(name, len(arguments) == len(takes) and all(a.kind in _KINDS[k] for a, k in zip(arguments, takes)))
    values = [argument.value for argument in arguments]
    if name.value == CAP:
        values.insert(1, _cap_id(name, arguments[0], constants))
    values = [value & HALF if kind == UINT32 else value for value, kind in zip(values, function.takes, strict=True)]
    columns = [_read(name, each, _domain(reads), domains) for each, reads in zip(named, function.reads, strict=True)]
    shown_columns = [columns[0]] if function.reads[0] is SEGMENT_FIELDS else []
    literal = b""
    with suppress(ValueError, struct.error, OverflowError):
        literal = pack(name.value, tuple(values))
    _check(name, literal != b"")
    subject = subject_of(name.value, [ComputedValue("column", (column,)) for column in columns])
    text = f"{name.value}({', '.join([*shown_columns, PLACE])})"
    return Predicate(Verb.CALL, subject._replace(path=(text,)), (Operand(Kind.BINARY, value=literal),))


def _check(name: Word, right: bool) -> None:
    if not right:
        raise Refusal(f"{name.value} takes other arguments: {SPECIAL[name.value].betree}", name.at)


def _cap_id(name: Word, type: Word, constants: Constants) -> int:
    """Returns the id for a type of cap, from the constants of the expression."""
    types = [*_CAPS, *(f"{cap}:ip" for cap in _CAPS)]
    if type.value not in types:
        raise Refusal(f"there is no type of cap {show_value(type.value)}: {', '.join(types)} are", type.at)
    constant = f"{type.value.removesuffix(':ip')}_id"
    if constants and constant in constants:
        return constants[constant]
    raise Refusal(f"{name.value} needs the constant {constant!r}: give it with the expression, in constants=", name.at)


def _read(name: Word, attribute: str, type: str, domains: Mapping[str, Domain]) -> str:
    """Returns the column that a function reads."""
    domain = domains.get(attribute.lower())
    if domain is None or domain.type != type:
        raise Refusal(f"{name.value} reads {attribute!r}, which must be declared as a domain of type {type}", name.at)
    return domain.name


def _domain(reads: str | dict[str, Any]) -> str:
    """Returns the type of the domains that a function reads."""
    if isinstance(reads, dict):
        return SEGMENTS if reads is SEGMENT_FIELDS else FREQUENCY
    return _DOMAINS[reads]
