"""Shards answer as one matcher does, whichever way rows meet them, before and after updates."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.spark import (
    build,
    build_shards,
    describe_shards,
    hits,
    match,
    match_topk,
    register,
    totals,
    update_shards,
)
from colmatch.spark.manifest import read_present
from colmatch.spark.storage import Folder

TEXTS = [
    "a = 3", "b > 2 AND a < 5", "s = 'x1' OR b = 1", "m['k1'] > 3", "m['k2'] = 2 AND s LIKE 'x%'", "a IS NULL", "NOT (b = 2)",
    "a + b > 7", "s IN ('x1', 'x3') AND (a = 1 OR b = 2)", "array_contains(tags, 't1')", "size(tags) = 2 AND m['k0'] < 4", "b = 9",
    "at > '2024-01-01 00:30:00'", "hour(at) = 3", "m['nowhere'] = 1",
]  # fmt: skip
SUBSCRIPTIONS = dict(enumerate(TEXTS * 8))
CHANGES = {2: "a = 6", 5: "m['k1'] = 5", 500: "b = 4", 501: "s = 'new'", 7: None, 999: None}
PLANS = ["in_turn", "routed"]


@pytest.fixture
def events(spark: Any) -> Any:
    return spark.sql(
        "SELECT id, id % 7 AS a, IF(id % 3 = 0, NULL, id % 5) AS b, IF(id % 2 = 0, NULL, concat('x', id % 4)) AS s, "
        "map(concat('k', id % 3), id % 6) AS m, IF(id % 4 = 0, NULL, array('t0', concat('t', id % 3))) AS tags, "
        "timestamp_seconds(1704067200 + id * 60) AS at FROM range(0, 400, 1, 3)"
    )


def frame(spark: Any, texts: dict[Any, str | None]) -> Any:
    rows = list(texts.items())
    return spark.createDataFrame(rows, f"id {'string' if isinstance(rows[0][0], str) else 'long'}, expression string")


def weighted(table: Any) -> Any:
    """Adds all that subscriptions may have beside their expressions."""
    return table.selectExpr(
        "*",
        "map('a', 1D + length(expression) % 3, 'b', 2D) AS weights",
        "cast(length(expression) % 5 AS double) AS priority",
        "array(concat('tag-', length(expression) % 3)) AS tags",
    )


def rows_of(found: Any) -> list[Any]:
    return sorted(tuple(sorted(one) if isinstance(one, list) else one for one in row) for row in found.collect())


def same_answers(events: Any, one: cm.Matcher, folder: str, **among: Any) -> None:
    """Compares all ways to ask with those of one matcher."""
    for plan in PLANS:
        assert rows_of(match(events, folder, ["id"], plan=plan, **among)) == rows_of(
            match(events, one, ["id"], **among)
        )
        assert rows_of(totals(events, folder, plan=plan, **among)) == rows_of(totals(events, one, **among))
    for mode in ("lists", "count", "exists"):
        assert rows_of(match(events, folder, ["id"], mode, **among)) == rows_of(
            match(events, one, ["id"], mode, **among)
        )


def test_the_same_rows_are_the_same_files(spark: Any, events: Any, tmp_path: Path) -> None:
    """Whatever their order: a shard has its rows by id."""
    for order, folder in (("739182645", "one"), ("123456789", "two")):
        table = spark.createDataFrame([(id, f"a >= {id}") for id in order], "id string, expression string").coalesce(1)
        build_shards(table, events, tmp_path / folder, shards=2)
    one, two = (read_present(Folder(tmp_path / folder)).shards for folder in ("one", "two"))
    assert one == two and None not in one


FEED = "id long, expression string, _change_type string, _commit_version long"


def test_a_change_feed(spark: Any, events: Any, tmp_path: Path) -> None:
    """The last change of each id counts, whatever the order of the rows."""
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, shards=3)
    feed = [
        (1, TEXTS[1], "update_preimage", 4), (1, "a = 1", "update_postimage", 4),
        (2, TEXTS[2], "delete", 4), (2, "a = 2", "insert", 4),  # a version that overwrites the row
        (3, "a = 4", "update_postimage", 5), (3, "a = 3", "update_postimage", 4), (4, TEXTS[4], "delete", 4),
        (5, "a = 5", "insert", 5), (5, TEXTS[5], "delete", 4), (700, "a = 6", "insert", 4), (701, "a = 0", "insert", 4),
        (701, "a = 0", "delete", 6), (6, TEXTS[6], "update_preimage", 6), (702, "a = 7", "update_postimage", 6),
        (8, None, "insert", 4), (8, TEXTS[8], "update_postimage", 5),
        (9, TEXTS[9], "delete", 4), (9, TEXTS[9], "update_preimage", 4),
    ]  # fmt: skip
    update_shards(spark.createDataFrame(feed[::-1], FEED), events, tmp_path)
    after = SUBSCRIPTIONS | {1: "a = 1", 2: "a = 2", 3: "a = 4", 5: "a = 5", 700: "a = 6", 702: "a = 7"}
    for gone in (4, 6, 9):
        del after[gone]
    same_answers(events, build(after, events), str(tmp_path))
    for wrong, said in (
        ([(1, "a = 1", "insert", 4), (1, "a = 2", "insert", 4)], "id 1 is given more than once"),
        ([(1, "a = 1", "upsert", 4)], "column '_change_type' has no change of Delta Lake: upsert"),
        ([(1, "a = 1", None, 4)], "column '_change_type' has no change of Delta Lake: NULL"),
        ([(1, "a = 1", "upsert", 4), (1, "a = 1", "insert", 5)], "column '_change_type' has no change of Delta Lake"),
        ([(1, None, "insert", 4)], "column 'expression' is NULL in the new row of id 1"),
    ):
        with pytest.raises(Exception, match=said):
            update_shards(spark.createDataFrame(wrong, FEED), events, tmp_path)
    with pytest.raises(cm.SubscriptionError, match=r"is a change feed: update_shards\(\) takes it"):
        build_shards(spark.createDataFrame(feed, FEED), events, tmp_path / "new", shards=3)
    with pytest.raises(cm.SubscriptionError, match=r"are a change feed"):
        build(spark.createDataFrame(feed, FEED), events)
    same_answers(events, build(after, events), str(tmp_path))


@pytest.mark.parametrize("ids", ["string", "long"])
def test_the_same_as_one_matcher(spark: Any, events: Any, tmp_path: Path, ids: str) -> None:
    name = (lambda i: f"s{i:04}") if ids == "string" else (lambda i: i)
    texts = {name(i): text for i, text in SUBSCRIPTIONS.items()}
    table, folder = weighted(frame(spark, texts)), str(tmp_path / "alerts")
    made = build_shards(table, events, folder, 4)
    one = build(table, events)
    assert (made.version, len(made), made.written) == (1, len(texts), (0, 1, 2, 3))
    assert max(made.sizes) < 2 * len(texts) / 4 and describe_shards(folder).sizes == made.sizes
    same_answers(events, one, folder)
    some = [name(3), name(40), name(12345)]
    same_answers(events, one, folder, ids=some)
    assert rows_of(match(events, folder, ["id"], tags=["tag-1"])) == rows_of(match(events, one, ["id"], tags=["tag-1"]))
    for score in ("dot", "priority", "max"):
        best = match_topk(events, folder, 3, score, {"a": 2.0}, ["id"])
        assert rows_of(best) == rows_of(match_topk(events, one, 3, score, {"a": 2.0}, ["id"]))
    changed = {name(i): text for i, text in CHANGES.items()}
    after = update_shards(weighted(frame(spark, changed)), events, folder)
    assert after.version == 2 and after.written
    one.delete([name(7)])
    one.upsert(weighted(frame(spark, {id: text for id, text in changed.items() if text})).toArrow())
    assert len(after) == len(one)
    same_answers(events, one, folder)


def test_columns_and_functions_take_shards(spark: Any, events: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    folder, table = str(tmp_path), frame(spark, SUBSCRIPTIONS)
    build_shards(table, events, folder, 3)
    want = rows_of(match(events, folder, ["id"], "lists"))
    assert rows_of(events.select("id", hits(folder)(F.struct("*")))) == want
    register(spark, "sharded", folder, keep="id")
    events.createOrReplaceTempView("sharded_events")
    found = spark.sql("SELECT * FROM sharded(TABLE(SELECT * FROM sharded_events))")
    assert rows_of(found) == rows_of(match(events, folder, ["id"]))


@pytest.mark.parametrize("plan", PLANS)
def test_explain_tells_the_plan(spark: Any, events: Any, tmp_path: Path, plan: Any, capsys: Any) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 3)
    match(events, tmp_path, plan=plan).explain()
    shown = capsys.readouterr().out
    assert (": 3 shards in turn" in shown) == (plan == "in_turn")
    assert f"match {tmp_path.name} version " in shown
    assert (": one of 3 shards each" in shown) == (plan == "routed")


def test_lists_are_made_of_as_many_rows_as_memory_takes(
    spark: Any, events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from colmatch.spark import sharded, worker

    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 3)
    monkeypatch.setattr(sharded, "LISTED_FIRST", 16)
    monkeypatch.setattr(sharded, "LISTED_MOST", 500)
    seen, lists = [], sharded.ShardedMatcher.match_lists

    def noted(self: Any, piece: Any, *given: Any, **more: Any) -> Any:
        seen.append(len(piece))
        return lists(self, piece, *given, **more)

    monkeypatch.setattr(sharded.ShardedMatcher, "match_lists", noted)
    table = events.toArrow()
    index = worker.IndexFile(
        read_present(Folder(tmp_path)).hash, "x", read_present(Folder(tmp_path)).name, False, folder=str(tmp_path)
    )
    used = tuple((i, name) for i, name in enumerate(table.column_names))
    task = worker.PartitionTask(index, 1, used, "lists", ("id", "subscriptions"))
    found = pa.Table.from_batches(list(task(iter(table.to_batches()))))
    one = build(frame(spark, SUBSCRIPTIONS), events)
    assert [sorted(ids) for ids in found["subscriptions"].to_pylist()] == [
        sorted(ids) for ids in one.match_lists(table).to_pylist()
    ]
    assert found["id"].to_pylist() == list(range(400))
    assert seen[0] == 16 and sum(seen) == 400 and max(seen) < 40 and len(set(seen)) > 2


@pytest.mark.parametrize("plan", PLANS)
def test_numbers_of_a_job(spark: Any, events: Any, tmp_path: Path, plan: Any) -> None:
    from pyspark.sql import Observation

    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 3)
    seen = Observation()
    matches = match(events, tmp_path, plan=plan, observe=seen).count()
    told = seen.get
    assert (told["matches"], told["index_version"]) == (matches, read_present(Folder(tmp_path)).hash[:12])
    assert told["rows"] == (400 if plan == "in_turn" else 1200)


def test_an_update_writes_what_changes(spark: Any, events: Any, tmp_path: Path) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 8)
    before = read_present(Folder(tmp_path))
    homes = spark.sql("SELECT pmod(xxhash64(3L), 8) AS home").first().home
    after = update_shards(frame(spark, {3: "a = 1"}), events, tmp_path)
    assert after.written == (homes,)
    now = read_present(Folder(tmp_path))
    assert [old == new for old, new in zip(before.shards, now.shards)] == [i != homes for i in range(8)]
    assert update_shards(frame(spark, {12345: None}), events, tmp_path).written == ()


def test_an_update_that_only_deletes(spark: Any, events: Any, tmp_path: Path) -> None:
    """A column of nothing but NULL has no type in SQL."""
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2)
    after = update_shards(spark.sql("SELECT 3L AS id, NULL AS expression"), events, tmp_path)
    assert len(after) == len(SUBSCRIPTIONS) - 1
    assert match(events, tmp_path, ids=[3]).count() == 0


def test_a_planned_query_keeps_its_version(spark: Any, events: Any, tmp_path: Path) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2)
    planned, want = match(events, tmp_path, ["id"]), None
    want = rows_of(planned)
    for i in range(7):
        update_shards(frame(spark, {3: f"a = {i}"}), events, tmp_path)
    assert rows_of(planned) == want != rows_of(match(events, tmp_path, ["id"]))
    update_shards(frame(spark, {3: "a = 9"}), events, tmp_path)
    files = set(Folder(tmp_path).files())
    assert len([name for name in files if name.startswith("manifest")]) == 8
    with pytest.raises(Exception, match="plan the query again"):
        planned.collect()


def test_a_build_takes_the_place_of_another(spark: Any, events: Any, tmp_path: Path) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2)
    made = build_shards(frame(spark, {"x": "a = 1"}), events, tmp_path, 3)
    assert (made.version, len(made), len(made.sizes)) == (2, 1, 3)
    assert rows_of(match(events, tmp_path, ["id"], ids=["x"])) == [(i, "x") for i in range(1, 400, 7)]


def test_nothing_to_match(spark: Any, events: Any, tmp_path: Path) -> None:
    empty = frame(spark, SUBSCRIPTIONS).where("false")
    assert build_shards(empty, events, tmp_path, 3).sizes == (0, 0, 0)
    same_answers(events, cm.Matcher.build({}, {"a": "long"}), str(tmp_path))
    assert match_topk(events, tmp_path, 2).count() == 0
    update_shards(frame(spark, {1: "a = 1"}), events, tmp_path)
    assert match(events, tmp_path).count() == 57


def test_what_is_wrong_with_an_expression(spark: Any, events: Any, tmp_path: Path) -> None:
    table = frame(spark, {1: "a = 1", 2: "nope > 3", 3: "a ="})
    with pytest.raises(cm.ExpressionError, match="nope|=") as raised:
        build_shards(table, events, tmp_path, 3)
    assert raised.value.id in (2, 3)
    made = build_shards(table, events, tmp_path, 3, errors="collect")
    assert len(made) == 1 and sorted(one.id for one in made.rejected) == [2, 3]
    with pytest.raises(cm.ExpressionError):
        update_shards(frame(spark, {1: "nope = 1"}), events, tmp_path)
    assert describe_shards(tmp_path).version == 1


def test_a_bad_replacement_leaves_the_old_one(spark: Any, tmp_path: Path) -> None:
    events = spark.sql("SELECT id, map(concat('k', id % 40), 1L) AS m FROM range(40)")
    first = {i: f"m['k{i}'] = 1" for i in range(40)} | {99: "nope = 1"}
    made = build_shards(frame(spark, first), events, tmp_path, 8, errors="collect")
    assert [one.id for one in made.rejected] == [99]
    changes = dict.fromkeys(range(0, 40, 3), "nope = 1") | {1: "m['k5'] = 1"}
    made = update_shards(frame(spark, changes), events, tmp_path, errors="collect")
    assert sorted(one.id for one in made.rejected) == list(range(0, 40, 3)) and len(made) == 40
    found = {row.subscription: row.id for row in match(events, tmp_path, ["id"]).collect()}
    assert found == {i: 5 if i == 1 else i for i in range(40)}


def test_now(spark: Any, tmp_path: Path) -> None:
    events = spark.sql("SELECT id, id AS now FROM range(10)")
    texts = {i: f"now > {i} AND id < 5" for i in range(10)}
    build_shards(frame(spark, texts), events, tmp_path, 3)
    same_answers(events.drop("now"), build(frame(spark, texts), events), str(tmp_path), now=7)


def test_an_unreadable_folder_can_be_built_again(spark: Any, events: Any, tmp_path: Path) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2)
    for text in ("{", '{"manifest": 5}'):
        (tmp_path / "shards.json").write_text(text)
        with pytest.raises(cm.StoreError, match="damaged|not there"):
            describe_shards(tmp_path)
    assert build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2).version == 1


def test_old_files_of_nothing_are_removed(spark: Any, events: Any, tmp_path: Path) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2)
    left, fresh, other = (tmp_path / name for name in (f"shard-00001-{'0' * 32}.cm", f"new-{'1' * 32}", "notes.txt"))
    for path in (left, fresh, other):
        path.write_text("x")
    for path in (left, other):
        os.utime(path, (0, 0))
    update_shards(frame(spark, {1: "a = 1"}), events, tmp_path)
    assert not left.exists() and fresh.exists() and other.exists()
    assert rows_of(match(events, tmp_path, ["id"], ids=[1])) == [(i, 1) for i in range(1, 400, 7)]


def test_ids_are_unique(spark: Any, events: Any, tmp_path: Path) -> None:
    table = spark.createDataFrame([(1, "a = 1"), (2, "a = 1"), (1, "b = 2")], "id long, expression string")
    with pytest.raises(cm.SubscriptionError, match="id 1 is given more than once"):
        build_shards(table, events, tmp_path, 2)
    build_shards(table.limit(0), events, tmp_path, 2)
    with pytest.raises(cm.SubscriptionError, match="id 1 is given more than once"):
        update_shards(table, events, tmp_path)


def test_what_cannot_be_used(spark: Any, events: Any, tmp_path: Path) -> None:
    table = frame(spark, SUBSCRIPTIONS)
    for subscriptions, said in [
        ({1: "a = 1"}, "a Spark DataFrame"),
        (spark.range(3), "has no column 'expression': it has 'id'"),
        (spark.readStream.format("rate").load(), "are a stream"),
        (spark.sql("SELECT 1.5 AS id, 'a' AS expression"), "column 'id' is decimal"),
        (spark.sql("SELECT 1 AS id, 2 AS expression"), "column 'expression' is int"),
        (spark.sql("SELECT 1 AS id, 'a' AS expression, 'x' AS define"), "shards take no definitions"),
    ]:
        with pytest.raises(cm.SubscriptionError, match=said):
            build_shards(subscriptions, events, tmp_path, 2)
    for arguments, said in [
        ({"shards": 0}, "shards=0"),
        ({"shards": 2, "index": cm.index("pbtree", path=str(tmp_path / "pages"))}, "index='pbtree'"),
    ]:
        with pytest.raises(cm.OptionError, match=said):
            build_shards(table, events, tmp_path, **arguments)
    with pytest.raises(cm.SchemaError, match="a Spark DataFrame is needed"):
        build_shards(table, {"a": "long"}, tmp_path, 2)
    for ask in (
        lambda: match(events, tmp_path),
        lambda: describe_shards(tmp_path),
        lambda: update_shards(table, events, tmp_path),
    ):
        with pytest.raises(cm.StoreError, match="holds no shards"):
            ask()
    build_shards(table, events, tmp_path, 2)
    with pytest.raises(cm.OptionError, match="shared=False"):
        match(events, tmp_path, shared=False)
    with pytest.raises(cm.OptionError, match="plan='routed' is for pairs"):
        match(events, tmp_path, mode="lists", plan="routed")
    with pytest.raises(cm.OptionError, match="plan='routed' is for a folder"):
        match(events, build(table, events), plan="routed")
    with pytest.raises(cm.EventError, match="no column 'a'"):
        match(events.drop("a"), tmp_path)
    with pytest.raises(cm.EventError, match="column 'a'"):
        match(events.withColumn("a", events.s), tmp_path)
    with pytest.raises(cm.SchemaError, match="other columns"):
        update_shards(table, events.drop("b"), tmp_path)
    with pytest.raises(cm.SubscriptionError, match="ids of the changes are string"):
        update_shards(frame(spark, {"x": "a = 1"}), events, tmp_path)


def test_settings_of_the_session(spark: Any, events: Any, tmp_path: Path, conf: Any) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 3)
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    with pytest.raises(cm.OptionError, match="the zone of this session"):
        match(events, tmp_path)
    with pytest.raises(cm.OptionError, match=r"spark\.sql\.session\.timeZone='Asia/Tokyo'"):
        update_shards(frame(spark, {1: "a = 1"}), events, tmp_path)
    conf("spark.sql.session.timeZone", "UTC")
    conf("spark.sql.ansi.enabled", "false")
    with pytest.raises(cm.OptionError, match=r"spark\.sql\.ansi\.enabled"):
        match(events, tmp_path)
    with pytest.raises(cm.OptionError, match=r"spark\.sql\.ansi\.enabled=false"):
        update_shards(frame(spark, {1: "a = 1"}), events, tmp_path)
    conf("spark.sql.ansi.enabled", "true")
    conf("spark.sql.caseSensitive", "true")
    with pytest.raises(cm.SchemaError, match="names them otherwise"):
        update_shards(frame(spark, {1: "a = 1"}), events, tmp_path)


def test_an_error_says_which_event(spark: Any, tmp_path: Path) -> None:
    events = spark.sql("SELECT id, map(concat('k', id % 2), 1L) AS m, id AS a FROM range(0, 10, 1, 1)")
    build_shards(frame(spark, {0: "m['k0'] = 1", 1: "m['k1'] > 0 AND a < 9"}), events, tmp_path, 2)
    odd = events.selectExpr("id", "m", "IF(id = 7, 7.5D, CAST(a AS DOUBLE)) AS a")
    for plan in PLANS:
        with pytest.raises(Exception, match=r"event 7: .*7\.5" if plan == "in_turn" else r"7\.5"):
            match(odd, tmp_path, plan=plan).collect()


@pytest.mark.parametrize("damage", ["pointer", "manifest", "shard", "gone"])
def test_damage_is_told(spark: Any, events: Any, tmp_path: Path, damage: str) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2)
    manifest = read_present(Folder(tmp_path))
    shard = tmp_path / str(manifest.shards[0].file)  # type: ignore[union-attr]
    if damage == "pointer":
        (tmp_path / "shards.json").write_text("{")
    elif damage == "manifest":
        (tmp_path / manifest.name).write_bytes((tmp_path / manifest.name).read_bytes()[:-9] + b"}        ")
    elif damage == "shard":
        data = bytearray(shard.read_bytes())
        data[-100] ^= 255
        shard.write_bytes(data)
    else:
        shard.unlink()
    with pytest.raises(Exception, match="damaged|is gone"):
        match(events, tmp_path).collect()


def test_two_updates_at_once(spark: Any, events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from colmatch.spark import shards

    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path, 2)
    asked, once = shards._run_task, []

    def meanwhile(*given: Any) -> Any:
        found = asked(*given)
        if not once:
            once.append(1)
            update_shards(frame(spark, {1: "a = 2"}), events, tmp_path)
        return found

    monkeypatch.setattr(shards, "_run_task", meanwhile)
    with pytest.raises(cm.StoreError, match="changed by another call meanwhile"):
        update_shards(frame(spark, {1: "a = 3"}), events, tmp_path)
    assert describe_shards(tmp_path).version == 2


def test_a_folder_moves(spark: Any, events: Any, tmp_path: Path) -> None:
    build_shards(frame(spark, SUBSCRIPTIONS), events, tmp_path / "here", 2)
    want = rows_of(match(events, tmp_path / "here"))
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert rows_of(match(events, f"file:{tmp_path}/there")) == want
