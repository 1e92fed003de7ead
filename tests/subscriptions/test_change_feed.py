"""Change feeds of Delta Lake, which ``sync`` takes, against a table that is kept by hand."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import colmatch as cm

SCHEMA = {"i": "int64"}
FEED = pa.schema(
    [("id", pa.int64()), ("expression", pa.string()), ("tags", pa.list_(pa.string())),
     ("_change_type", pa.string()), ("_commit_version", pa.int64()), ("_commit_timestamp", pa.timestamp("us"))]
)  # fmt: skip
Row = tuple[str, list[str] | None]


def feed(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(FEED.names, (*row, None))) for row in rows], FEED)


def table_of(rules: dict[int, Row]) -> pa.Table:
    rows = [{"id": id, "expression": text, "tags": tags} for id, (text, tags) in rules.items()]
    return pa.Table.from_pylist(rows, pa.schema([FEED.field(i) for i in range(3)]))


def commit(random: Random, rules: dict[int, Row], version: int) -> list[tuple[Any, ...]]:
    """Changes rules at random, as one version; returns the rows of the feed."""
    rows: list[tuple[Any, ...]] = []
    for id in random.sample(range(30), random.randrange(8)):
        new = f"i > {random.randrange(1000)}", random.choice([None, [], ["a"], ["a", "b"]])
        old, way = rules.get(id), random.random()
        if old is None:
            rows.append((id, *new, "insert", version))
            rules[id] = new
        elif way < 0.4:
            rows.append((id, *old, "delete", version))
            del rules[id]
        elif way < 0.6:  # a version that overwrites rows
            rows += [(id, *old, "delete", version), (id, *new, "insert", version)]
            rules[id] = new
        else:
            rows += [(id, *old, "update_preimage", version), (id, *new, "update_postimage", version)]
            rules[id] = new
    return rows


def content(matcher: cm.Matcher) -> list[Any]:
    table = matcher.to_table()
    if "define" in table.column_names:
        table = table.filter(pc.is_null(table["define"]))
    rows = zip(*(table[name].to_pylist() for name in ("id", "expression")), matcher.tags.to_pylist(), strict=True)
    return sorted((id, text, sorted(tags)) for id, text, tags in rows)


def expected(rules: dict[int, Row]) -> list[Any]:
    return sorted((id, text, sorted(tags or [])) for id, (text, tags) in rules.items())


@pytest.mark.parametrize(("seed", "pages"), [*((seed, False) for seed in range(20)), (20, True), (21, True)])
def test_a_feed_leads_to_the_table(seed: int, pages: bool, tmp_path: Path) -> None:
    random, rules = Random(repr(("feed", seed))), {id: (f"i > {id}", None) for id in range(0, 30, 2)}
    index = cm.index("pbtree", path=str(tmp_path / "rules.pages")) if pages else "auto"
    matcher = cm.Matcher.build(table_of(rules), SCHEMA, index)
    for first in range(0, 12, 3):
        before = content(matcher)
        rows = [row for version in range(first, first + 3) for row in commit(random, rules, version)]
        random.shuffle(rows)  # Delta Lake promises no order
        changes = matcher.sync(feed(rows))
        assert content(matcher) == expected(rules)
        old, new = {row[0]: row for row in before}, {row[0]: row for row in content(matcher)}
        assert sorted(changes.added.to_pylist()) == sorted(new.keys() - old.keys())
        assert sorted(changes.removed.to_pylist()) == sorted(old.keys() - new.keys())
        assert sorted(changes.changed.to_pylist()) == sorted(id for id in old.keys() & new.keys() if old[id] != new[id])
        again = matcher.sync(feed(rows))
        assert not any(len(ids) for ids in again)
    matcher.close()


def test_others_refuse_a_feed() -> None:
    rows = feed([(1, "i > 1", None, "insert", 0)])
    matcher = cm.Matcher.build({}, SCHEMA)
    for take in (
        matcher.insert,
        matcher.upsert,
        lambda rows: matcher.update(upsert=rows),
        lambda rows: cm.Matcher.build(rows, SCHEMA),
    ):
        with pytest.raises(
            cm.SubscriptionError, match=r"are a change feed, with a column '_change_type': sync\(\) takes it"
        ):
            take(rows)
    only_kinds = rows.drop_columns(["_commit_version"])  # any column may have that name
    assert len(cm.Matcher.build(only_kinds, SCHEMA)) == 1
    matcher.sync(rows.slice(0, 0))
    assert len(matcher) == 0


def test_versions_are_compared_and_not_computed_with() -> None:
    matcher = cm.Matcher.build({}, SCHEMA)
    for versions in ((-3, -2), (0, 2**63 - 1), (-(2**63), 2**63 - 1)):
        first, last = ((1, f"i > {version}", None, "insert", version) for version in versions)
        matcher.sync(feed([last, first]))
        assert content(matcher) == [(1, last[1], [])]


def test_what_no_feed_has_is_an_error() -> None:
    matcher = cm.Matcher.build({1: "i > 1"}, SCHEMA)
    for row, said in (
        ((1, "i > 2", None, "upsert", 0), "column '_change_type' is 'upsert' in row 1: Delta Lake writes 'delete'"),
        ((1, "i > 2", None, None, 0), "column '_change_type' is None in row 1"),
        ((3, "i > 2", None, "insert", None), "column '_commit_version' is NULL in row 1"),
        ((None, "i > 2", None, "insert", 0), "column 'id' is NULL"),
        ((None, "i > 2", None, "delete", 0), "column 'id' is NULL"),
        ((2, "i > 3", None, "insert", 0), "id 2 is given more than once"),
    ):  # fmt: skip
        with pytest.raises(cm.SubscriptionError, match=said):
            matcher.sync(feed([(2, "i > 2", None, "insert", 0), row]))
    with pytest.raises(cm.SubscriptionError, match="'_change_type' and '_commit_version' cannot be read"):
        bad = feed([(1, "i > 2", None, "insert", 0)]).set_column(4, "_commit_version", pa.array(["x"]))
        matcher.sync(bad)
    for column, odd in ((0, pa.array([[1]])), (1, pa.array([5])), (4, pa.array([1.5]))):
        with pytest.raises(cm.SubscriptionError, match=f"'{FEED.names[column]}'"):
            matcher.sync(feed([(1, "i > 2", None, "delete", 0)]).set_column(column, FEED.names[column], odd))
    with pytest.raises(cm.SubscriptionError, match="the column 'define' cannot be read"):
        matcher.sync(feed([(1, "i > 2", None, "delete", 0)]).append_column("define", pa.array([["low"]])))
    with pytest.raises(cm.SubscriptionError, match="ids of this matcher are int64, those given are string"):
        matcher.sync(feed([(1, None, None, "delete", 0)]).set_column(0, "id", pa.array(["x"])))
    with pytest.raises(cm.ExpressionError):
        matcher.sync(feed([(1, None, None, "delete", 0), (2, "i >", None, "insert", 0)]))
    assert matcher.to_table()["id"].to_pylist() == [1]


def test_a_bad_row_that_is_left_out_stays_as_it_was() -> None:
    matcher = cm.Matcher.build({1: "i > 1", 2: "i > 2"}, SCHEMA)
    rows = feed(
        [(1, "i >", None, "update_postimage", 0), (2, "i > 2", None, "delete", 0), (3, "i > 3", None, "insert", 0)]
    )
    changes = matcher.sync(rows, "collect", max_rejected=1)
    assert [ids.to_pylist() for ids in changes] == [[3], [], [2]]
    assert dict(zip(matcher.ids.to_pylist(), matcher.to_table()["expression"].to_pylist())) == {1: "i > 1", 3: "i > 3"}


def test_an_update_of_an_id_moves_the_rule() -> None:
    matcher = cm.Matcher.build({1: "i > 1", 2: "i > 2", 3: "i > 3"}, SCHEMA)
    rows = feed(
        [(1, "i > 1", None, "update_preimage", 7), (4, "i > 1", None, "update_postimage", 7),  # to a new id
         (2, "i > 2", None, "update_preimage", 7), (3, "i > 2", None, "update_postimage", 7),  # and two change places
         (3, "i > 3", None, "update_preimage", 7), (2, "i > 3", None, "update_postimage", 7)]
    )  # fmt: skip
    changes = matcher.sync(rows)
    assert [sorted(ids.to_pylist()) for ids in changes] == [[4], [2, 3], [1]]
    assert content(matcher) == [(2, "i > 3", []), (3, "i > 2", []), (4, "i > 1", [])]


def test_a_feed_of_bad_rows_alone_changes_nothing() -> None:
    """The other rules stay, so unlike a table of bad rows the feed is no error."""
    matcher = cm.Matcher.build({1: "i > 1", 2: "i > 2"}, SCHEMA)
    changes = matcher.sync(feed([(2, "i >", None, "update_postimage", 0)]), "collect")
    assert [ids.to_pylist() for ids in changes] == [[], [], []]
    assert [one.id for one in matcher.rejected] == [2]
    assert matcher.to_table()["expression"].to_pylist() == ["i > 1", "i > 2"]
    with pytest.raises(cm.SubscriptionError, match="1 of 1 expressions cannot be used, and max_rejected=0"):
        matcher.sync(feed([(2, "i >", None, "update_postimage", 0)]), "collect", max_rejected=0)


def test_a_feed_may_lack_the_rules_with_parameters() -> None:
    matcher = cm.Matcher.build({1: "i > :least", 2: "i > 2"}, SCHEMA, parameters={"least": 7})
    for row, text in (
        ((2, "i > 3", None, "update_postimage", 1), "i >  7"),
        ((1, "i < :least", None, "insert", 2), "i <  8"),
    ):
        matcher.sync(feed([row]), parameters={"least": int(text[-1])})
        assert matcher.to_table().sort_by("id")["expression"].to_pylist() == [text, "i > 3"]
    matcher.sync(feed([]), parameters={"least": 7})
    with pytest.raises(cm.ExpressionError, match="parameter :most has no value"):
        matcher.sync(feed([(1, "i < :most", None, "insert", 3)]), parameters={"least": 7})


def with_names(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Returns a feed whose rows end with the name of a definition, or None."""
    return feed([row[:-1] for row in rows]).append_column("define", pa.array([row[-1] for row in rows], pa.string()))


@pytest.mark.parametrize("seed", range(8))
def test_a_feed_with_definitions(seed: int) -> None:
    random = Random(repr(("definitions in a feed", seed)))
    names: dict[str, str] = {name: f"i > {n} AND i <> 5" for n, name in enumerate(("low", "mid", "top"))}
    rules: dict[int, str] = {id: f"{random.choice([*names])} OR i = {id}" for id in range(10)}
    matcher = cm.Matcher.build(rules, SCHEMA, define=names)
    for version in range(12):
        rows: list[tuple[Any, ...]] = []
        name = random.choice(["low", "mid", "top", "new", "odd"])
        used = any(name in text for text in rules.values())
        if name not in names:
            names[name] = f"i < {version} AND i <> 7"
            rows.append((None, names[name], None, "insert", version, name))
        elif used or random.random() < 0.5:
            rows.append((None, names[name], None, "update_preimage", version, name))
            names[name] = f"i > {version} AND i <> 9"
            rows.append((None, names[name], None, "update_postimage", version, name))
        else:
            rows.append((None, names.pop(name), None, "delete", version, name))
        id = random.randrange(12)
        if id in rules and random.random() < 0.4:
            rows.append((id, rules.pop(id), None, "delete", version, None))
        else:
            rows.append((id, f"{random.choice([*names])} AND i <> {id}", None, "insert", version, None))
            rules[id] = rows[-1][1]
        random.shuffle(rows)
        matcher.sync(with_names(rows))
        same = cm.Matcher.build(rules, SCHEMA, define=names)
        assert matcher.definitions == names and content(matcher) == content(same)
        events = pa.table({"i": [*range(-2, 20), None]})
        found, want = (one.match_lists(events).to_pylist() for one in (matcher, same))
        assert [sorted(ids) for ids in found] == [sorted(ids) for ids in want]
        matcher.sync(with_names(rows))  # twice does no harm
        assert matcher.definitions == names and content(matcher) == content(same)


def test_a_definition_of_a_feed_that_rules_use_stays() -> None:
    matcher = cm.Matcher.build({1: "low OR i = 9"}, SCHEMA, define={"low": "i < 3 AND i > 0"})
    with pytest.raises(cm.ExpressionError, match="unknown attribute 'low'"):
        matcher.sync(with_names([(None, "i < 3", None, "delete", 1, "low")]))
    with pytest.raises(cm.SubscriptionError, match="column 'id' is NULL in row 1"):
        matcher.sync(with_names([(None, "i < 3", None, "delete", 1, "low"), (None, "i < 3", None, "delete", 1, None)]))
    assert matcher.definitions == {"low": "i < 3 AND i > 0"}
    # A rule becomes a definition
    matcher.sync(
        with_names(
            [(1, "low OR i = 9", None, "update_preimage", 2, None), (1, "i = 4", None, "update_postimage", 2, "mid")]
        )
    )
    assert len(matcher) == 0 and matcher.definitions == {"low": "i < 3 AND i > 0", "mid": "i = 4"}


@pytest.mark.parametrize(
    "type", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_a_feed_of_other_types_of_strings(type: pa.DataType) -> None:
    matcher = cm.Matcher.build({"a": "low", "b": "i > 2"}, SCHEMA, define={"low": "i < 3 AND i > 0"})
    columns = {
        "id": ["a", "c", None, "b", "b"],
        "expression": ["low OR i = 8", "i = 7", "i < 4 AND i > 0", "i > 2", "i > 2"],
        "define": [None, None, "low", None, None],
        "_change_type": ["insert", "insert", "update_postimage", "delete", "update_preimage"],
    }
    table = pa.table({name: pa.array(values, pa.string()).cast(type) for name, values in columns.items()})
    table = table.append_column("_commit_version", pa.array([2, 1, 9, 3, 3], pa.int32()))
    changes = matcher.sync(table)
    assert [ids.to_pylist() for ids in changes] == [["c"], ["a"], ["b"]]
    assert matcher.definitions == {"low": "i < 4 AND i > 0"}
    assert content(matcher) == [("a", "low OR i = 8", []), ("c", "i = 7", [])]
    rules = table.slice(0, 3).drop_columns(["_change_type", "_commit_version"])
    assert cm.Matcher.build(rules, SCHEMA).definitions == matcher.definitions
