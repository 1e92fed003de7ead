"""Special functions written in Python: ``segment_within(col("seen"), col("now"), 12, 3600)``."""

from __future__ import annotations

from typing import Any

from colmatch.errors import ExpressionError
from colmatch.expr.ast import Expr, Predicate, Verb, make_at_least
from colmatch.expr.build_computed import Computing, make_computed
from colmatch.expr.build_literals import literal
from colmatch.expr.special import COLUMNS, WrongArgument, describe_column, literal_of, subject_of
from colmatch.given.special import BEFORE, CAP, CIRCLE, WITHIN
from colmatch.lowering.forms import Kind, Operand


def at_least(least: int, *conditions: Expr | bool) -> Expr:
    """Makes a condition: at least so many conditions are true.

    It is False where too few could be true, whatever those that are Unknown are, and else Unknown.
    A condition counts as often as it is given.

    Parameters
    ----------
    least : from 1 to the number of conditions

    Raises
    ------
    ExpressionError : ``least`` is no such number, or something is no condition

    Examples
    --------
    >>> from colmatch import col
    >>> str(at_least(2, col("price") < 100, col("stars") > 3, col("pool")))
    'at_least(2, price < 100, stars > 3, pool)'
    """
    return make_at_least(least, conditions)


def geo_within_radius(
    latitude: Computing, longitude: Computing, center_latitude: float, center_longitude: float, kilometres: float
) -> Expr:
    """Makes a condition: a place lies within some kilometres of a center, on a great circle.

    The Earth is a ball of 6372.8 km radius. The condition is Unknown if a column is NULL or NaN.

    Parameters
    ----------
    latitude, longitude : columns of numbers, degrees

    Examples
    --------
    >>> from colmatch import col
    >>> str(geo_within_radius(col("lat"), col("lon"), 48.2, 16.4, 10))
    'geo_within_radius(lat, lon, 48.2, 16.4, 10.0)'
    """
    return _make_call(CIRCLE, (latitude, longitude), (center_latitude, center_longitude, kilometres))


def segment_within(segments: Computing, now: Computing, id: int, seconds: int) -> Expr:
    """Makes a condition: the segment ``id`` was entered at most ``seconds`` ago.

    The condition is false if the segment was not entered, and Unknown if a column is NULL.

    Parameters
    ----------
    segments : a column of lists of structs of ``id`` and ``timestamp``, microseconds since 1970;
        the first struct of an id counts
    now : a column of seconds since 1970, or of timestamps
    """
    return _make_call(WITHIN, (segments, now), (id, seconds))


def segment_before(segments: Computing, now: Computing, id: int, seconds: int) -> Expr:
    """Makes a condition: the segment ``id`` was entered more than ``seconds`` ago.

    The columns are as in ``segment_within``.
    """
    return _make_call(BEFORE, (segments, now), (id, seconds))


def within_frequency_cap(
    caps: Computing, now: Computing, type: str, id: int, space: str, value: int, seconds: int
) -> Expr:
    """Makes a condition: an item was shown fewer than ``value`` times.

    A cap counts how often an item of one type, id and name space was shown. The condition is also
    true without such a cap, or with one older than ``seconds``. With 0 seconds, a cap of any age
    counts. The condition is Unknown if the caps are NULL, or if ``now`` is NULL and the list is not
    empty.

    Parameters
    ----------
    caps : a column of lists of structs of ``type``, ``id``, ``ns``, ``value`` and ``timestamp``,
        microseconds since 1970. Ids and values have 32 bits; the first of equal caps counts
    now : a column of seconds since 1970, or of timestamps
    """
    return _make_call(CAP, (caps, now), (type, id, space, value, seconds))


def _make_call(function: str, columns: tuple[Any, ...], values: tuple[Any, ...]) -> Expr:
    read = []
    for place, column in enumerate(columns):
        argument = make_computed(column) if isinstance(column, Computing) else None
        if argument is None or argument.function != "column":
            raise ExpressionError(f"argument {place + 1}: {describe_column(function)}")
        read.append(argument)
    operands = [literal(value) for value in values]
    try:
        packed = literal_of(function, [(None, None) if o is None else (o.kind, o.value) for o in operands])
    except WrongArgument as error:
        raise ExpressionError(f"argument {error.place + 1}: {error}") from None
    assert len(read) == COLUMNS
    return Predicate(Verb.CALL, subject_of(function, read), (Operand(Kind.BINARY, value=packed),))
