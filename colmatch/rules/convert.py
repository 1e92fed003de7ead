"""Rules of json-rules-engine, as JSON or parsed JSON, converted to conditions of the builder."""

from __future__ import annotations

from collections.abc import Mapping

from colmatch.errors import ExpressionError, Rejected, show_value
from colmatch.expr.ast import Expr
from colmatch.given.arguments import check_choice
from colmatch.rules.conditions import ConditionReader, Unusable
from colmatch.rules.source import Rule, read_conditions, read_rules

TOLD = 10  # most faults that an error lists


class ConvertedRules(dict[int | str, Expr]):
    """Conditions by id, as ``Matcher.build`` takes them.

    Attributes
    ----------
    rejected : rules that were left out, with ``errors="collect"``. Each has its id, line and column
        if it was a text, and the fault behind its path
    """

    def __init__(self, made: Mapping[int | str, Expr], rejected: list[Rejected]) -> None:
        super().__init__(made)
        self.rejected = rejected


def from_json(rules: object, conditions: object = None, errors: str = "raise") -> ConvertedRules:
    """Reads rules of the npm package json-rules-engine (7.3) for ``Matcher.build``.

    Facts are columns, and a ``path`` such as ``$.address.city`` is a struct field. A rule matches
    an event if the engine would fire it with ``allowUndefinedFacts``:

    - an absent or null fact is neither less nor greater than any value, and contains nothing. It is
      ``notEqual`` to everything but null, and ``notIn`` every list without null
    - ``doesNotContain`` is true for lists alone
    - ``not`` is plain negation, so ``missing=`` of ``Matcher.build`` makes no difference
    - an empty ``all`` is true, and so is an empty ``any``

    Some rules differ from the engine:

    - an absent fact is a null fact, and both are ``equal`` to null
    - an order with a null fact as its ``value`` is false; JavaScript takes null for 0
    - integers beyond 2**53 are exact
    - NaN, which JSON does not have, is above all numbers
    - columns have types, so comparing a number with a text is an error of ``Matcher.build``; the
      engine would never fire such a rule
    - numbers with a fraction need float64 columns, like JavaScript's numbers
    - two facts that are text columns have the order of text

    Events and priorities of rules are ignored: all rules are matched, in no order.

    Parameters
    ----------
    rules : JSON as text, bytes or an open file, or parsed JSON: a list of rules, one rule, or an
        object from id to rule. A text may also have one rule on each line, and a rule of parsed
        JSON may still be a text
    conditions : the named conditions that rules refer to, an object from name to conditions
    errors : ``"raise"``, or ``"collect"``: leave bad rules out and list them in ``rejected``

    Returns
    -------
    Rules : a dict from id to condition. Ids come from the object, else they are the names of the
        rules if all have one, else their positions from 0

    Raises
    ------
    ExpressionError : some rules cannot be converted: custom or decorated operators, ``params``,
        paths other than names, and everything that the engine refuses. The message has the fault of
        each of the first ten, with its path
    SubscriptionError : the input is not JSON, or not rules; or two rules have the same name

    Examples
    --------
    >>> rule = '{"conditions": {"not": {"fact": "age", "operator": "lessThan", "value": 18}}}'
    >>> {id: str(condition) for id, condition in from_json(rule).items()}
    {0: 'NOT ((age < 18) IS TRUE)'}
    """
    stops = check_choice("errors={}", errors, ("raise", "collect")) == "raise"
    entries, places = read_rules(rules)
    converter = ConditionReader(read_conditions(conditions))
    wrong: list[str] = []
    for name in converter.names if stops else ():  # else each rule reports its own conditions
        try:
            converter.check_named(name)
        except Unusable as error:
            wrong.append(_describe_fault(error, f"condition {show_value(name)}"))
    results: dict[int | str, Expr] = {}
    rejected: list[Rejected] = []
    for rule in entries if not wrong else ():
        try:
            results[rule.id] = _condition_of(converter, rule)
        except Unusable as error:
            place = places.of(rule)
            rejected.append(Rejected(rule.id, place, _describe_fault(error, "")))
            wrong.append(_describe_fault(error, rule.label + (f" (line {place[0]})" if place else "")))
    if wrong and stops:
        more = f"; and {len(wrong) - TOLD:,} more" if len(wrong) > TOLD else ""
        raise ExpressionError("; ".join(wrong[:TOLD]) + more)
    return ConvertedRules(results, rejected)


def _condition_of(converter: ConditionReader, rule: Rule) -> Expr:
    if not isinstance(rule.given, Mapping):
        raise Unusable("", f"an object with conditions is needed, not {show_value(rule.given)}")
    if "conditions" not in rule.given:
        raise Unusable("", "it has no conditions")
    return converter.convert(rule.given["conditions"])


def _describe_fault(error: Unusable, label: str) -> str:
    """Joins the name of the condition, if there is one, its path and its fault."""
    return ": ".join(filter(None, (error.owner or label, error.place, error.message)))
