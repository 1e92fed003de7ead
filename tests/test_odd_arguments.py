"""Each argument of each public call takes each odd value, or raises an error of colmatch's own.

The values come from ``odd.py`` and ``hostile.py``; all other arguments are good ones. Errors of a
caller's own iterator, and the ``OSError`` of a file, come through as they are.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hostile import HOSTILE, OwnError, unitless
from odd import ODD, SCHEMA
from sizes import SMALL, THOROUGH
from workload import named

import colmatch as cm
from colmatch.given import incoming
from colmatch.given.arguments import python_value, whole_number
from colmatch.kinds.registry import KINDS

VALUES = [*ODD, *HOSTILE]
SHARE = 1 if THOROUGH else 31 if SMALL else 7  # one of so many values is tried
EVENTS = pa.RecordBatch.from_pylist([{"a": 1}], SCHEMA)
DOMAINS = ["a|integer|true|0|9"]
PAIRS: dict[str, Any] = {"event": [0], "attribute": ["x"], "value": [1]}
WHERE = "ids tags now ranges"
NUMBER, CONDITION = cm.col("f"), cm.col("a")
METHODS = (
    "__eq__ __lt__ eq_null_safe isin like ilike rlike startswith endswith contains array_contains arrays_overlap "
    "contains_all __getitem__ __and__ __or__ __rand__ __ror__ __add__ __radd__ __mod__ cast"
)
SIZES = (
    "name subscriptions seed attributes cardinality subscription_size subscription_mean event_size equality operators "
    "attribute_zipf value_zipf clusters cluster_size width list_size planted around weights layout"
)


class Call(NamedTuple):
    """A call, the arguments that are odd in turn, and good values for them."""

    made: Callable[..., Any]
    odd: str
    good: Mapping[str, Any] = MappingProxyType({})


def one_by_one(function: Callable[..., Any], names: str) -> Callable[..., Any]:
    return lambda **named: function(*(named[name] for name in names.split()))


def fresh(name: str, ids: Any = (1,)) -> Callable[..., Any]:
    """Returns a method of a new matcher, which the call may change."""
    return lambda **named: getattr(cm.Matcher.build(dict.fromkeys(ids, "a = 1"), SCHEMA, "scan"), name)(**named)


def opened(**named: Any) -> None:
    cm.Matcher.open(**named).close()


def written(made: Any) -> None:
    """Returns what the builder made, as a text and in a matcher."""
    if made is not NotImplemented:
        str(made)
        cm.Matcher.build([(1, made)], SCHEMA, "scan")


def built(matcher: cm.Matcher, betree: cm.Matcher) -> dict[str, Call]:
    """Returns all calls, each with a name for the test."""
    asked = {"events": EVENTS}
    new: dict[str, Any] = {"subscriptions": {1: "a = 1"}, "schema": SCHEMA, "index": "scan"}
    of_betree = {"subscriptions": {1: "a = 1"}, "schema": DOMAINS, "index": "scan", "language": "betree"}
    calls = {
        "build": Call(
            cm.Matcher.build, "subscriptions schema index options errors sample language missing constants tags progress", new
        ),
        "build betree": Call(cm.Matcher.build, "subscriptions schema sample missing constants tags", of_betree),
        "build one": Call(
            lambda id, text: cm.Matcher.build([(id, text)], SCHEMA, "scan"), "id text", {"id": 1, "text": "a = 1"}
        ),
        "match": Call(matcher.match, f"events {WHERE} invalid", asked),
        "match_batches": Call(lambda **named: list(matcher.match_batches(**named)), f"events {WHERE}", asked),
        "match_lists": Call(matcher.match_lists, f"events {WHERE}", asked),
        "count": Call(matcher.count, f"events {WHERE}", asked),
        "exists": Call(matcher.exists, f"events {WHERE}", asked),
        "match_topk": Call(matcher.match_topk, "events k score event_weights ids tags now", asked | {"k": 1}),
        "counters": Call(matcher.counters, f"events {WHERE} exists k", asked),
        "counters k": Call(matcher.counters, "score event_weights exists", asked | {"k": 1}),
        "columns_with": Call(matcher.columns_with, "ranges now k"),
        "columns_with k": Call(matcher.columns_with, "score event_weights", {"k": 1}),
        "reasons": Call(matcher.reasons, "events by ids tags now", asked),
        "subset": Call(matcher.subset, "ids tags", {"ids": [1]}),
        "explain": Call(matcher.explain, "event id now", {"event": EVENTS, "id": 1}),
        "explain many": Call(matcher.explain_many, "events ids tags now", {"events": EVENTS, "ids": [1]}),
        "explain value": Call(lambda value: matcher.explain({"a": value}, 1), "value"),
        "explain entry": Call(lambda value: matcher.explain({"attrs": {"k": value}}, 2), "value"),
        "explain list": Call(lambda value: matcher.explain({"tags": value}, 2), "value"),
        "explain nested": Call(lambda value: matcher.explain({"deep": {"x": value}}, 2), "value"),
        "explain betree": Call(betree.explain, "event id now", {"event": {"a": 1}, "id": 1}),
        "insert": Call(fresh("insert"), "subscriptions errors constants tags", {"subscriptions": {2: "a = 2"}}),
        "replace": Call(fresh("replace"), "subscriptions errors constants tags", {"subscriptions": {2: "a = 2"}}),
        "upsert": Call(fresh("upsert"), "subscriptions errors constants tags parameters", {"subscriptions": {2: "a = 2"}}),
        "sync": Call(fresh("sync"), "subscriptions errors constants tags parameters", {"subscriptions": {2: "a = 2"}}),
        "update": Call(
            fresh("update"), "insert replace upsert delete delete_tags define errors constants tags parameters", {"upsert": {2: "a = 2"}}
        ),
        "redefine": Call(fresh("redefine"), "define", {"define": {"named": "a = 2"}}),
        "restore": Call(fresh("restore"), "snapshot"),
        "verify": Call(matcher.verify, "events", asked),
        "check": Call(matcher.check, "checks ids sample", {"checks": ["never", "contained"], "ids": [1]}),
        "build collect": Call(
            lambda max_rejected: cm.Matcher.build({1: "a = 1"}, SCHEMA, errors="collect", max_rejected=max_rejected), "max_rejected"
        ),
        "report": Call(matcher.report, "events noisy ids tags now", asked),
        "expression": Call(matcher.expression, "id"),
        "[]": Call(lambda id: matcher[id], "id"),
        "in": Call(lambda id: id in matcher, "id"),
        "delete": Call(fresh("delete"), "ids tags"),
        "delete texts": Call(fresh("delete", ["x"]), "ids"),
        "compact": Call(fresh("compact"), "sample"),
        "options": Call(lambda options: setattr(cm.Matcher.build({1: "a = 1"}, SCHEMA), "options", options), "options"),
        "save": Call(matcher.save, "path"),
        "open": Call(opened, "path mmap verify journal fsync cache_bytes", {"path": "good.cm"}),
        "from_pairs": Call(cm.from_pairs, "pairs column rows", {"pairs": PAIRS}),
        "from_pairs column": Call(lambda **columns: cm.from_pairs(columns), "event attribute value", PAIRS),
        "from_pairs value": Call(lambda value: cm.from_pairs(PAIRS | {"value": [value]}), "value"),
        "from_json_rules": Call(cm.rules.from_json_rules, "rules conditions errors", {"rules": []}),
        "from_jsonlogic": Call(cm.rules.from_jsonlogic, "rules schema errors", {"rules": []}),
        "from_jsonlogic value": Call(lambda value: cm.rules.from_jsonlogic([{"==": [{"var": "a"}, value]}]), "value"),
        "from_growthbook": Call(cm.rules.from_growthbook, "rules groups schema errors", {"rules": []}),
        "from_growthbook value": Call(lambda value: cm.rules.from_growthbook([{"a": value, "s": {"$in": [value]}}]), "value"),
        "from_flagd": Call(cm.rules.from_flagd, "definition schema errors", {"definition": {"flags": {}}}),
        "from_flagd value": Call(lambda value: cm.rules.from_flagd({"flags": {"a": value}}), "value"),
        "from_json_rules fact": Call(rule, "fact operator value path", {"fact": "a", "operator": "equal", "value": 1, "path": None}),
        "Options": Call(cm.Options, " ".join(field.name for field in fields(cm.Options))),
        "index": Call(one_by_one(cm.index, "kind"), "kind"),
        "Schema": Call(cm.Schema, "columns"),
        "Schema column": Call(lambda given: cm.Schema({"a": given}), "given"),
        "PredicateTable": Call(one_by_one(cm.PredicateTable, "table"), "table"),
        "Domains": Call(cm.betree.Domains, "domains"),
        "Domains line": Call(lambda line: cm.betree.Domains([line]), "line"),
        "Domains part": Call(lambda given: cm.betree.Domains({"a": given}), "given"),
        "Domains parts": Call(
            lambda **parts: cm.betree.Domains({"a": parts}), "type allow_undefined min max",
            {"type": "integer", "allow_undefined": True, "min": 0, "max": 1},
        ),
        "events": Call(cm.betree.events, "lines domains", {"lines": ['{"a": 1}'], "domains": DOMAINS}),
        "events line": Call(lambda line: cm.betree.events([line], DOMAINS), "line"),
        "events value": Call(lambda value: cm.betree.events([{"a": value}], DOMAINS), "value"),
        "col": Call(lambda name, field: written(cm.col(name, field) == 1), "name field", {"name": "user", "field": "age"}),
        "function": Call(function, "name value", {"name": "lower", "value": cm.col("s")}),
        "least": Call(one_by_one(cm.at_least, "a b c"), "a b c", {"a": 1, "b": cm.col("f"), "c": cm.col("g")}),
        "geo": Call(one_by_one(cm.geo_within_radius, "a b c d e"), "a b c d e", {"a": NUMBER, "b": NUMBER, "c": 1, "d": 1, "e": 1}),
        "within": Call(one_by_one(cm.segment_within, "a b c d"), "a b c d", {"a": NUMBER, "b": NUMBER, "c": 1, "d": 1}),
        "before": Call(one_by_one(cm.segment_before, "a b c d"), "a b c d", {"a": NUMBER, "b": NUMBER, "c": 1, "d": 1}),
        "cap": Call(
            one_by_one(cm.within_frequency_cap, "a b c d e f g"), "a b c d e f g",
            {"a": NUMBER, "b": NUMBER, "c": "x", "d": 1, "e": "x", "f": 1, "g": 1},
        ),
        "weight": Call(lambda weight: written((CONDITION == 1).weight(weight)), "weight"),
        "between": Call(lambda low, high: written(CONDITION.between(low, high)), "low high", {"low": 1, "high": 2}),
        "isin": Call(lambda value: written(CONDITION.isin([value])), "value"),
        "workload": Call(named, SIZES, {"name": "dense", "subscriptions": 10}),
    }  # fmt: skip
    workload = named("dense", subscriptions=10)
    for name, odd in {
        "texts": "start count",
        "predicates": "start count",
        "events": "rows start",
        "pairs": "rows start",
    }.items():
        calls[f"workload {name}"] = Call(getattr(workload, name), odd, {"rows": 1} if "rows" in odd else {})
    for name in METHODS.split():
        calls[f"col.{name}"] = Call(lambda value, name=name: written(getattr(CONDITION, name)(value)), "value")
    for kind in KINDS.values():
        odd = " ".join(field.name for field in fields(kind.settings))
        calls[f"index {kind.name}"] = Call(lambda kind=kind, **settings: cm.index(kind.name, **settings), odd)
    return calls


def function(name: Any, value: Any) -> None:
    written(cm.function(name, value) == "x")


def rule(**condition: Any) -> Any:
    return cm.rules.from_json_rules([{"name": "x", "conditions": {"all": [condition]}}])


def matchers() -> tuple[cm.Matcher, cm.Matcher]:
    texts = {1: "a = 1 OR f > 1 OR s LIKE '%x%'", 2: "attrs['k'] > 1"}
    betree = cm.Matcher.build({1: "a = 1"}, DOMAINS, "scan", language="betree")
    return cm.Matcher.build(texts, SCHEMA, "scan"), betree


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Call]]:
    """Returns the calls, in a folder where files with odd names may be saved."""
    before, folder = Path.cwd(), tmp_path_factory.mktemp("odd")
    os.chdir(folder)
    matcher, betree = matchers()
    matcher.save("good.cm")
    yield built(matcher, betree)
    os.chdir(before)


NAMES = list(built(*matchers()))


@pytest.mark.parametrize("name", NAMES)
def test_only_errors_of_ours_come_out(calls: dict[str, Call], name: str) -> None:
    call, foreign = calls[name], []
    for number, argument in enumerate(call.odd.split()):
        for place in range((number + NAMES.index(name)) % SHARE, len(VALUES), SHARE):
            value = VALUES[place]()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call.made(**{**call.good, argument: value})
            except cm.ColmatchError as error:
                if not 0 < len(str(error)) < 5000:
                    foreign.append(f"{argument}, value {place}: an error of {len(str(error)):,} characters")
            except (OwnError, OSError):
                pass
            except Exception as error:
                foreign.append(f"{argument}, value {place}: {type(error).__name__}: {error!s:.100}")
    assert not foreign, "\n".join(foreign)


@pytest.mark.parametrize("flag", ["mmap", "verify", "journal", "fsync"])
@pytest.mark.parametrize("value", ["no", 0, 1, None, "true"])
def test_a_flag_is_true_or_false(calls: dict[str, Call], flag: str, value: Any) -> None:
    with pytest.raises(cm.OptionError, match=f"^{flag}={value!r}: True or False is needed"):
        cm.Matcher.open("good.cm", **{flag: value})


def test_a_list_that_contains_itself_is_an_error() -> None:
    """Arrow would otherwise end the process."""
    made: list[Any] = []
    made.append(made)
    with pytest.raises(cm.EventError, match="column 'value': its lists nest deeper than 50, or contain themselves"):
        cm.from_pairs(PAIRS | {"value": made})
    with pytest.raises(cm.EventError, match="or contain themselves"):
        cm.from_pairs(PAIRS | {"value": iter([made])})


def test_a_list_that_contains_itself_twice_is_looked_at_once_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be there 2 ** 50 times at the last one."""
    made: list[Any] = []
    made.extend([made, made])
    looked_at = count(1)

    def inside(container: Any, real: Callable[[Any], Any] = incoming._inside) -> Any:
        assert next(looked_at) < 2 * incoming.NESTED_MOST
        return real(container)

    monkeypatch.setattr(incoming, "_inside", inside)
    with pytest.raises(cm.EventError, match="or contain themselves"):
        cm.from_pairs(PAIRS | {"value": made})
    assert next(looked_at) > incoming.NESTED_MOST


@pytest.mark.parametrize("unit", ["s", "ns", "generic"])
def test_a_duration_is_no_number(unit: str) -> None:
    """To NumPy it is a kind of integer; its item is an int if it has nanoseconds or no unit."""
    three = unitless(lambda value: np.timedelta64(value, unit), 3)
    assert python_value(three) is three and whole_number(three) is None
    with pytest.raises(cm.OptionError, match="a whole number from 0 to 1024 is needed"):
        cm.Options(threads=three)
    with pytest.raises(cm.SubscriptionError, match="ids are int64 or strings"):
        cm.Matcher.build([(three, "a = 1")], SCHEMA, "scan")
    with pytest.raises(cm.SubscriptionError, match="there is no subscription"):
        fresh("delete", [3])(ids=[three])
    with pytest.raises(cm.ExpressionError, match="no column can be compared with"):
        cm.Matcher.build({1: cm.col("a") == three}, SCHEMA, "scan")
