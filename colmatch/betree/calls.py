"""The special functions of the be-tree library's language: their arguments, checked."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress

from colmatch.betree import tokens as words
from colmatch.betree.domains import FLOAT, FREQUENCY, INTEGER, SEGMENTS, Domain
from colmatch.betree.tokens import Word
from colmatch.calls import PLACE, pack
from colmatch.errors import shown
from colmatch.events.calls import HALF
from colmatch.expr.ast import Expr, Predicate, Refusal, Verb
from colmatch.expr.calls import subject_of
from colmatch.expr.computed import Computed
from colmatch.lowering.forms import Kind, Operand

Constants = Mapping[str, int] | None

_CAPS = ("advertiser", "campaign", "campaign_group", "flight", "product")
_NUMBERS = (words.INTEGER, words.FLOAT)
CALLS = {
    "within_frequency_cap": 'within_frequency_cap("flight", "namespace", 5, 3600)',
    "segment_within": "segment_within(12, 3600), or with an attribute before the id",
    "segment_before": "segment_before(12, 3600), or with an attribute before the id",
    "geo_within_radius": "geo_within_radius(48.2, 16.4, 10.0)",
}


def call(name: Word, arguments: list[Word], domains: Mapping[str, Domain], constants: Constants) -> Expr:
    """Makes the condition that a special function is.

    Raises Refusal: its arguments are not those that it takes, or a domain that it reads is not
    declared.
    """
    given = [argument.kind for argument in arguments]
    values = [argument.value for argument in arguments]
    if name.value == "within_frequency_cap":
        _check(name, given == [words.STRING, words.STRING, words.INTEGER, words.INTEGER])
        id = _cap_id(name, arguments[0], constants)
        read = [("frequency_caps", FREQUENCY), ("now", INTEGER)]
        values = [values[0], id & HALF, values[1], values[2] & HALF, values[3]]
    elif name.value == "geo_within_radius":
        _check(name, len(given) == 3 and all(kind in _NUMBERS for kind in given))
        read = [("latitude", FLOAT), ("longitude", FLOAT)]
    else:
        named = given[:1] == [words.NAME]
        _check(name, given[named:] == [words.INTEGER, words.INTEGER])
        read = [(values[0] if named else "segments_with_timestamp", SEGMENTS), ("now", INTEGER)]
        values = values[named:]
    columns = [_read(name, attribute, type, domains) for attribute, type in read]
    shown_columns = [columns[0]] if name.value.startswith("segment") else []
    literal = b""
    with suppress(ValueError, struct.error, OverflowError):
        literal = pack(name.value, tuple(values))
    _check(name, literal != b"")
    subject = subject_of(name.value, [Computed("column", (column,)) for column in columns])
    text = f"{name.value}({', '.join([*shown_columns, PLACE])})"
    return Predicate(Verb.CALL, subject._replace(path=(text,)), (Operand(Kind.BINARY, value=literal),))


def _check(name: Word, right: bool) -> None:
    if not right:
        raise Refusal(f"{name.value} takes other arguments: {CALLS[name.value]}", name.at)


def _cap_id(name: Word, type: Word, constants: Constants) -> int:
    """Returns the id that an expression's constants give for the type of a cap."""
    known = [*_CAPS, *(f"{cap}:ip" for cap in _CAPS)]
    if type.value not in known:
        raise Refusal(f"there is no type of cap {shown(type.value)}: {', '.join(known)} are", type.at)
    wanted = f"{type.value.removesuffix(':ip')}_id"
    if constants and wanted in constants:
        return constants[wanted]
    raise Refusal(f"{name.value} needs the constant {wanted!r}: give it with the expression, in constants=", name.at)


def _read(name: Word, attribute: str, type: str, domains: Mapping[str, Domain]) -> str:
    """Returns the column that a function reads."""
    domain = domains.get(attribute.lower())
    if domain is None or domain.type != type:
        raise Refusal(f"{name.value} reads {attribute!r}, which must be declared as a domain of type {type}", name.at)
    return domain.name
