"""The way from rules of any format to conditions of the builder.

A format says the form of its rules (``Shape``) and converts one of them; ids, places and faults are
the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from colmatch.errors import ExpressionError, Rejected, show_value
from colmatch.expr.ast import Expr
from colmatch.given.arguments import check_choice
from colmatch.rules.refusal import Named, Steps, Unusable, run
from colmatch.rules.source import Rule, RulePositions

TOLD = 10  # most faults that an error lists
Convert = Callable[[Rule], Mapping[int | str, Expr] | None]


class ConvertedRules(dict[int | str, Expr]):
    """Conditions by id, as ``Matcher.build`` takes them.

    Attributes
    ----------
    rejected : rules that were left out, with ``errors="collect"``. Each has its id, line and column
        if it was a text, and the fault behind its path
    disabled : flags of flagd that are switched off, by key. They have no conditions
    """

    def __init__(self, made: Mapping[int | str, Expr], rejected: list[Rejected], disabled: list[int | str]) -> None:
        super().__init__(made)
        self.rejected = rejected
        self.disabled = disabled


def check_errors(errors: str) -> bool:
    """Returns whether the first bad rule is an error.

    Raises OptionError: ``errors`` is neither raise nor collect.
    """
    return check_choice("errors={}", errors, ("raise", "collect")) == "raise"


def convert_rules(
    rules: tuple[Iterable[Rule], RulePositions],
    convert: Convert,
    stops: bool,
    named: Iterable[tuple[str, Steps[Any]]] = (),
) -> ConvertedRules:
    """Converts rules one by one.

    Parameters
    ----------
    rules : the rules with their places
    convert : makes conditions of a rule, by id; None for a rule that is switched off. It raises
        ``Unusable`` for a fault
    stops : whether the first faults are an error; else bad rules are left out
    named : the reading of each named condition, with its name in errors. If rules are collected,
        each rule reports its own

    Raises
    ------
    ExpressionError : with the first ``TOLD`` faults and their places
    """
    entries, places = rules
    wrong: list[str] = []
    for label, reading in named if stops else ():
        try:
            run(reading)
        except Unusable as error:
            wrong.append(_describe_fault(error, label))
    results: dict[int | str, Expr] = {}
    rejected: list[Rejected] = []
    disabled: list[int | str] = []
    for rule in entries if not wrong else ():
        try:
            made = _convert(convert, rule, results)
        except Unusable as error:
            place = places.of(rule)
            rejected.append(Rejected(rule.id, place, _describe_fault(error, "")))
            wrong.append(_describe_fault(error, rule.label + (f" (line {place[0]})" if place else "")))
        else:
            results.update(made or {})
            if made is None:
                disabled.append(rule.id)
    if wrong and stops:
        more = f"; and {len(wrong) - TOLD:,} more" if len(wrong) > TOLD else ""
        raise ExpressionError("; ".join(wrong[:TOLD]) + more)
    return ConvertedRules(results, rejected, disabled)


def _convert(convert: Convert, rule: Rule, before: Mapping[int | str, Expr]) -> Mapping[int | str, Expr] | None:
    try:
        made = convert(rule)
    except ExpressionError as error:  # of the builder, for a value that no column can have
        raise Unusable("", str(error)) from None
    twice = [id for id in made or () if id in before]
    if twice:
        raise Unusable("", f"two rules have the id {show_value(twice[0])}: give one of them another name")
    return made


def readings_of(named: Named[Any], what: str, read: Callable[[Any], Steps[Any]]) -> Iterable[tuple[str, Steps[Any]]]:
    """Yields the reading of each named condition, with its name in errors."""
    for name in list(named.given):
        yield f"{what} {show_value(name)}", named.find(name, what, read)


def _describe_fault(error: Unusable, label: str) -> str:
    """Joins the name of the condition, if there is one, its path and its fault."""
    return ": ".join(filter(None, (error.owner or label, error.place, error.message)))
