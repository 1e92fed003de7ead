"""Tables of Delta, Iceberg, Lance and Hudi as events, as a schema, and as subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from installed import needs
from lakes import EACH_LAKE, delta_with_deletion_vectors, iceberg

import colmatch as cm
from colmatch.events.long_form import from_pairs
from colmatch.given import scans

OFFERS = pa.table(
    {"price": [89.5, 310.0, None], "dest": ["LIS", "NCE", "LIS"], **{f"note{i}": ["x", "y", "z"] for i in range(7)}}
)
RULES = {"cheap": "price < 100", "beach": "dest IN ('LIS', 'NCE')"}
FOUND = [["cheap", "beach"], ["beach"], ["beach"]]
Lake = Callable[[pa.Table, Path], Any]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Returns the columns of each batch that is read from now on."""
    seen: list[list[str]] = []

    def recording_scan(schema: Any, names: list[str], read: Callable[[Any], Iterable[pa.RecordBatch]]) -> scans.Scan:
        def recorded(columns: list[str] | None) -> Iterator[pa.RecordBatch]:
            for batch in read(columns):
                seen.append(batch.schema.names)
                yield batch

        return plain(schema, names, recorded)

    plain = scans.Scan
    monkeypatch.setattr(scans, "Scan", recording_scan)
    return seen


@EACH_LAKE
def test_events(lake: Lake, tmp_path: Path, read: list[list[str]]) -> None:
    matcher = cm.Matcher.build(RULES, {"price": "double", "dest": "string"})
    table = lake(OFFERS, tmp_path / "offers")
    assert matcher.match_lists(table).to_pylist() == FOUND
    assert [sorted(names) for names in read] == [["dest", "price"]]
    assert matcher.match(table, keep="note3").to_pydict() == matcher.match(OFFERS, keep="note3").to_pydict()
    assert sorted(read[-1]) == ["dest", "note3", "price"]
    assert matcher.match_topk(table, 1).equals(matcher.match_topk(OFFERS, 1))
    assert sum(batch.num_rows for batch in matcher.match_batches(table)) == 4
    assert matcher.count(table).tolist() == [2, 1, 1]
    assert cm.Matcher.build(RULES, OFFERS.schema, "opindex", sample=table).exists(table).all()
    assert cm.Matcher.build({}, OFFERS.schema).count(table).tolist() == [0, 0, 0]
    assert len(read[-1]) == 1  # rows are counted by some column


@EACH_LAKE
def test_a_schema(lake: Lake, tmp_path: Path, read: list[list[str]]) -> None:
    matcher = cm.Matcher.build(RULES, lake(OFFERS, tmp_path / "offers"))
    assert matcher.match_lists(OFFERS).to_pylist() == FOUND
    assert matcher.schema.arrow.names == OFFERS.schema.names
    assert not read


@EACH_LAKE
def test_subscriptions(lake: Lake, tmp_path: Path, read: list[list[str]]) -> None:
    given = pa.table(
        {
            "owner": ["ada", "ben"],
            "id": [7, 8],
            "expression": [*RULES.values()],
            "priority": [1.0, 2.0],
            "tags": ["a", "b"],
        }
    )
    table = lake(given, tmp_path / "rules")
    matcher = cm.Matcher.build(table, OFFERS.schema)
    assert matcher.to_table().equals(cm.Matcher.build(given, OFFERS.schema).to_table())
    assert [sorted(names) for names in read] == [["expression", "id", "priority", "tags"]]
    assert matcher.sync(table).changed.to_pylist() == []
    matcher.upsert(table)
    none = cm.Matcher.build({}, OFFERS.schema)
    none.insert(table)
    assert none.match_topk(OFFERS, 1, "priority")["subscription"].to_pylist() == [8, 8, 8]
    assert none.tags.to_pylist() == [["a"], ["b"]]


@EACH_LAKE
def test_a_table_without_expressions(lake: Lake, tmp_path: Path, read: list[list[str]]) -> None:
    with pytest.raises(cm.SubscriptionError, match="there is no column 'expression'; its columns are 'id', 'rule'"):
        cm.Matcher.build(lake(pa.table({"id": [1], "rule": ["price < 1"]}), tmp_path / "rules"), OFFERS.schema)
    assert not read


@EACH_LAKE
def test_a_table_without_a_column_that_expressions_use(lake: Lake, tmp_path: Path) -> None:
    matcher = cm.Matcher.build(RULES, OFFERS.schema)
    with pytest.raises(
        cm.EventError, match="no column 'dest', which the expressions use: the batch has 'price', 'note0'"
    ):
        matcher.match(lake(OFFERS.drop_columns(["dest"]), tmp_path / "offers"))


@EACH_LAKE
def test_a_table_is_no_single_event(lake: Lake, tmp_path: Path) -> None:
    """A DeltaTable is a dataclass, too: its fields are no columns."""
    matcher, table = cm.Matcher.build(RULES, OFFERS.schema), lake(OFFERS, tmp_path / "offers")
    with pytest.raises(cm.EventError, match=r"match\(events\) takes tables and their like"):
        matcher.match_one(table)
    with pytest.raises(cm.EventError):
        matcher.explain(table, "cheap")


@EACH_LAKE
def test_tables_beside_the_subscriptions(lake: Lake, tmp_path: Path) -> None:
    tags = lake(pa.table({"id": ["cheap"], "tags": ["mine"]}), tmp_path / "tags")
    assert cm.Matcher.build(RULES, OFFERS.schema, tags=tags).count(OFFERS, tags=["mine"]).tolist() == [1, 0, 0]
    pairs = pa.table({"event": [0, 1], "attribute": ["a", "b"], "value": [1, 2]})
    assert from_pairs(lake(pairs, tmp_path / "pairs")).to_pydict() == from_pairs(pairs).to_pydict()


@needs("deltalake")
def test_rows_that_a_deletion_vector_hides(tmp_path: Path) -> None:
    table = delta_with_deletion_vectors(OFFERS, tmp_path / "offers")
    table.delete("dest = 'NCE'")
    assert cm.Matcher.build(RULES, table).match_lists(table).to_pylist() == [["cheap", "beach"], ["beach"]]


@needs("pyiceberg")
def test_a_scan_that_has_chosen_rows_and_columns(tmp_path: Path, read: list[list[str]]) -> None:
    scan = iceberg(OFFERS, tmp_path / "offers").scan("price > 50", selected_fields=("dest", "note1"))
    matcher = cm.Matcher.build({"beach": RULES["beach"]}, scan)
    assert matcher.schema.arrow.names == ["dest", "note1"]
    assert matcher.match_lists(scan).to_pylist() == [["beach"], ["beach"]]
    assert read == [["dest"]]


@needs("pyiceberg")
def test_a_schema_of_iceberg(tmp_path: Path) -> None:
    assert cm.Schema(iceberg(OFFERS, tmp_path / "offers").schema()).arrow.names == OFFERS.schema.names


@EACH_LAKE
def test_no_rows(lake: Lake, tmp_path: Path) -> None:
    empty = pa.table({"id": [1], "expression": ["price < 1"]}).slice(1)
    table = lake(empty, tmp_path / "rules")
    assert len(cm.Matcher.build(table, OFFERS.schema)) == 0
    assert cm.Matcher.build({1: "id = 1"}, table).match(table).num_rows == 0


@needs("polars")
def test_a_lazy_frame_of_subscriptions(read: list[list[str]]) -> None:
    import polars as pl

    frame = pl.LazyFrame({"id": [1, 2], "expression": ["price < 100", "price > 100"], "owner": ["ada", "ben"]})
    assert cm.Matcher.build(frame, OFFERS.schema).ids.to_pylist() == [1, 2]
    assert read == [["id", "expression"]]
    assert len(cm.Matcher.build(frame.filter(pl.col("id") > 2), OFFERS.schema)) == 0


@needs("deltalake")
def test_the_change_feed_of_a_delta_table(tmp_path: Path) -> None:
    import deltalake

    def rules(texts: dict[str, str]) -> pa.Table:
        return pa.table({"id": [*texts], "expression": [*texts.values()], "owner": ["ada"] * len(texts)})

    path, feed = str(tmp_path / "rules"), {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(path, rules({"a": "price < 1", "b": "price < 2", "c": "price < 3"}), configuration=feed)
    table = deltalake.DeltaTable(path)
    matcher = cm.Matcher.build(table, {"price": "double", "dest": "string"})
    table.delete("id = 'a'")
    (
        table.merge(rules({"b": "price < 20", "d": "dest = 'LIS'"}), "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    table.update(predicate="id = 'd'", updates={"expression": "'price < 99'"})
    changes = matcher.sync(table.load_cdf(starting_version=1))
    assert [ids.to_pylist() for ids in changes] == [["d"], ["b"], ["a"]]
    assert {row["id"]: row["expression"] for row in matcher.to_table().to_pylist()} == {
        "b": "price < 20", "c": "price < 3", "d": "price < 99"
    }  # fmt: skip
    deltalake.write_deltalake(path, rules({"c": "price < 3", "e": "price < 5"}), mode="overwrite")
    again = deltalake.DeltaTable(path)
    matcher.sync(again.load_cdf(starting_version=again.version()))
    assert matcher.to_table().to_pydict() == cm.Matcher.build(again, matcher.schema).to_table().to_pydict()
