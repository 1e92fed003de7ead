"""Right and wrong uses, for type checkers: ``tests/test_types.py`` runs these over it.

Each line that ends in ``# wrong`` must be an error, and no other line may be one. Nothing here is
run.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

import colmatch as cm
from colmatch.spark import build, match, match_topk


class Batches:
    """Something of a caller's own with the Arrow C stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.table({"price": [1.0]}).__arrow_c_stream__(requested_schema)


@dataclass
class Offer:
    price: float


class Flight(NamedTuple):
    price: float


def made(frame: pl.DataFrame, table: Any) -> cm.Matcher:
    cm.Matcher.build({1: "price < 3"}, frame, index="scan", errors="collect", language="sql", missing="false")
    cm.Matcher.build({1: "price < 3"}, frame, index=cm.index("bitslice"), sample=frame)
    cm.Matcher.build({1: "price < 3"}, frame, options=cm.Options(missing_columns="null", order="any"))
    for kind in cm.index_kinds():
        cm.Matcher.build({1: "price < 3"}, frame, index=kind)
    cm.Matcher.build({1: "price < 3"}, frame, index="bitslices")  # wrong
    cm.Matcher.build({1: "price < 3"}, frame, errors="ignore")  # wrong
    cm.Matcher.build({1: "price < 3"}, frame, language="be-tree")  # wrong
    cm.Matcher.build({1: "price < 3"}, frame, missing="null")  # wrong
    cm.Matcher.build({1: "price < 3"}, frame, sample=7)  # wrong
    cm.Matcher.build(42, frame)  # wrong
    cm.Matcher.build({1: "price < 3"}, 42)  # wrong
    cm.Matcher.build({1: "price < 3"}, [1, 2])  # wrong
    cm.Matcher.build("price < 3", frame)  # wrong
    cm.Matcher.build(["price < 3"], frame)  # wrong
    cm.Matcher.build({1: "price < 3"}, frame, tags=["a"])  # wrong
    cm.Matcher.build({1: "price < 3"}, frame, constants=7)  # wrong
    cm.Schema(None)  # wrong
    cm.index("bitslices")  # wrong
    cm.Options(missing_columns="NULL")  # wrong
    cm.Options(order="none")  # wrong
    return cm.Matcher.build({1: "price < 3"}, table)


def given(frame: pl.DataFrame, lazy: pl.LazyFrame, rules: cm.PredicateTable, types: dict[str, str]) -> None:
    """Forms of subscriptions and schemas."""
    texts = ["price < 3", "price < 4"]
    for subscriptions in (
        {1: "price < 3"},
        [(1, "price < 3"), (2, cm.col("price") < 4)],
        frame,
        lazy,
        rules,
        Batches(),
    ):
        cm.Matcher.build(subscriptions, frame)
    cm.Matcher.build(enumerate(texts), "price double")
    cm.Matcher.build(zip([1, 2], texts), [("price", float)], tags={1: ["a"], 2: "b", 3: None})
    cm.Matcher.build(((i, text) for i, text in enumerate(texts)), Offer, tags="teams", id="key")
    cm.Matcher.build([[1, "price < 3"]], Flight)
    cm.Matcher.build({"a": "b = 1"}, ["b|integer|false"], language="betree", constants={"a": {"x": 1}})
    cm.Matcher.build(ds.dataset("rules"), ds.dataset("events"), tags=frame)
    cm.Matcher.build(cm.rules.from_jsonlogic([]), cm.Schema({"price": "double"}))
    for schema in (
        types,
        pa.schema([("price", "double")]),
        frame.schema,
        lazy,
        cm.betree.Domains(["a|integer|true"]),
        Batches(),
    ):
        cm.Matcher.build({}, schema).insert({1: "price < 3"})


def changed(matcher: cm.Matcher, frame: pl.DataFrame) -> None:
    matcher.insert(frame, tags="teams")
    matcher.update(upsert={1: "price < 3"}, delete=[2], delete_tags={"a"})
    matcher.delete(range(3))
    matcher.insert(42)  # wrong
    matcher.replace("price < 3")  # wrong
    matcher.upsert([1, 2])  # wrong
    matcher.sync(None)  # wrong
    matcher.update(insert=42)  # wrong
    matcher.update(delete=2)  # wrong
    matcher.delete(2)  # wrong


def matched(matcher: cm.Matcher, frame: pl.DataFrame, invalid: bool) -> Iterator[object]:
    for events in (pa.table({"price": [1.0]}), frame, Batches(), ds.dataset("events"), ds.dataset("events").scanner()):
        yield matcher.match(events)
    matches, lacking = matcher.match(frame, invalid="collect")
    yield matches.num_rows + lacking.num_rows + matcher.match(frame, invalid="raise").num_rows
    assert_type(matcher.count(frame, ids=[1]), NDArray[np.int64])
    assert_type(matcher.exists(frame, tags=["a"]), NDArray[np.bool_])
    yield matcher.match_topk(frame, 3, "priority", event_weights={"price": 2.0}).num_rows
    yield matcher.reasons(frame, by="predicate")
    matcher.match(42)  # wrong
    matcher.match("events.parquet")  # wrong
    yield matcher.match([{"price": 1.0}, {"dest": None}], keep="dest")
    yield matcher.match([Offer(1.0), Flight(2.0)])
    matcher.match([1.0])  # wrong
    matcher.match({"price": [1.0]})  # wrong
    yield matcher.match(frame, invalid="collect").num_rows  # wrong
    matcher.match(frame, invalid="drop")  # wrong
    matcher.match(frame, id=[1])  # wrong
    matcher.match(frame, ids=1)  # wrong
    matcher.count(frame, tags=[1])  # wrong
    matcher.exists(frame, now="today")  # wrong
    matcher.match_topk(frame, 3, "best")  # wrong
    matcher.match_batches(7)  # wrong
    matcher.count(None)  # wrong
    matcher.reasons(frame, by="column")  # wrong
    matcher.explain_many(frame, [1])
    matcher.explain_many(None, [1])  # wrong
    matcher.compact(sample="all")  # wrong
    matcher.match(frame, ranges=["price"])  # wrong


def matched_one(matcher: cm.Matcher) -> Iterator[object]:
    for event in ({"price": 1.0}, Offer(1.0), Flight(1.0)):
        yield matcher.match_one(event, unknown="ignore")
    assert_type(matcher.exists_one({"price": 1.0}), bool)
    yield matcher.explain({"price": 1.0}, 1)
    yield matcher.match_one({"price": 1.0}, ids=matcher.subset([1]), tags=("a",), now=dt.datetime(2026, 1, 1))
    yield matcher.count_one({"price": 1.0}, ids=np.array([1]), tags={"a"}, now=np.int64(3))
    matcher.match_one({"price": 1.0}, ids=1)  # wrong
    matcher.match_one(42)  # wrong
    matcher.match_one("price=1")  # wrong
    matcher.match_one({"price": 1.0}, unknown="drop")  # wrong
    matcher.match_topk_one({"price": 1.0}, 3, "best")  # wrong


def in_spark(df: Any, matcher: cm.Matcher) -> None:
    match(df, matcher, mode="lists").count()
    match_topk(df, build({1: "price < 3"}, df, index="auto"), 3, "sum")
    match(df, matcher, mode="listed")  # wrong
    match_topk(df, matcher, 3, "best")  # wrong
    match(7, matcher)  # wrong
