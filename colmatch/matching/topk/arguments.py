"""Arguments of a call for the best matches: their number, the score, and the weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, NamedTuple

from colmatch.errors import OptionError, SchemaError, show_value
from colmatch.given.arguments import check_choice, check_whole, double, text
from colmatch.given.schema import Role, Schema
from colmatch.kernels.layout import DOT, KEY_MAX, MAX, PRIORITY, SUM
from colmatch.lowering.weights import WEIGHT_MOST, Name
from colmatch.matching.event_weights import ColumnWeights, MapWeights, Weights
from colmatch.subscriptions.operators import attribute_named

Score = Literal["dot", "sum", "max", "priority"]
SCORES: dict[str, int] = {"dot": DOT, "sum": SUM, "max": MAX, "priority": PRIORITY}


class TopK(NamedTuple):
    """A request for the ``most`` best matches of each event, by a score."""

    most: int
    scoring: int  # a constant of ``kernels.layout``, such as DOT
    weights: Weights | None  # None if events give no weights, or the score uses none

    @property
    def columns(self) -> list[str]:
        """Columns of the events that are needed for the weights."""
        return [] if self.weights is None else self.weights.columns


def check_topk(k: object, score: object, event_weights: object, schema: Schema) -> TopK:
    """Checks the arguments of a call for the best matches.

    Raises OptionError: an argument cannot be used. The message has the reason.
    """
    most = check_whole("k={}", k, 1, KEY_MAX, most="2**63 - 1")
    scoring = SCORES[check_choice("score={}", score, SCORES)]
    weights = _weights(event_weights, schema)
    return TopK(most, scoring, weights if scoring in (DOT, MAX) else None)


def _weights(given: object, schema: Schema) -> Weights | None:
    if given is None:
        return None
    column = text(given)
    if column is not None:
        return MapWeights(column, lambda key: _find_name(key, schema))
    if not isinstance(given, Mapping):
        raise OptionError(
            f"event_weights={show_value(given)}: the name of a column of maps is needed, or a mapping from the name of an "
            "attribute to that of a column, or to a number"
        )
    sources: dict[Name, str | float] = {}
    for named, source in given.items():
        key = text(named)
        if key is None:
            raise OptionError(f"event_weights: {show_value(named)} is no name of an attribute")
        try:
            name = attribute_named(schema, key)
        except SchemaError as error:
            raise OptionError(f"event_weights: {error}") from None
        if name.role is Role.SIZE:
            raise OptionError(
                f"event_weights: {show_value(key)}: events give weights to columns, fields and entries of maps; that of a "
                "column counts for its size, too"
            )
        if name in sources:
            raise OptionError(f"event_weights: {show_value(key)} is named before, in another way: give it one weight")
        sources[name] = _source(key, source)
    return ColumnWeights(sources)


def _find_name(key: str, schema: Schema) -> Name | None:
    """Returns the name that a key of a map means, or None if there is no such attribute."""
    with suppress(SchemaError):
        return attribute_named(schema, key)
    return None


def _source(key: str, given: object) -> str | float:
    column = text(given)
    if column is not None:
        return column
    value = double(given)
    if value is not None and 0 <= value <= WEIGHT_MOST:
        return value
    raise OptionError(
        f"event_weights: {show_value(key)} has {show_value(given)}: the name of a column is needed, or a number from 0 to 1e100"
    )
