"""Special functions in SQL and in the builder: what they mean, what is refused, and the clock."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from sizes import SMALL

import colmatch as cm

SEGMENTS = pa.list_(pa.struct({"id": pa.int64(), "timestamp": pa.int64()}))
CAPS = pa.large_list(
    pa.struct(
        {"type": pa.string(), "id": pa.int32(), "ns": pa.large_string(), "value": pa.int64(), "timestamp": pa.int64()}
    )
)
SCHEMA = pa.schema(
    {
        "lat": pa.float64(),
        "place": pa.struct({"lon": pa.float32()}),
        "a": pa.int64(),
        "t": pa.int64(),
        "seen": SEGMENTS,
        "caps": CAPS,
        "attrs": pa.map_(pa.string(), pa.string()),
        "at": pa.timestamp("ms", "UTC"),
    }
)
T = 1_700_000_000
FULL = [{"type": "f", "id": 7, "ns": "n", "value": 3, "timestamp": 0}]
SIMPLE = (
    "geo_within_radius(lat, place.lon, 48.2, 16.5, 1000.0)",
    "geo_within_radius(lat, place.lon, -10, -170.25, 1.5e3)",
    "segment_within(seen, t, 1, 60)",
    "segment_before(seen, t, 1, 60)",
    "segment_within(seen, t, 2, 0)",
    "within_frequency_cap(caps, t, 'f', 1, 'n', 2, 0)",
    "within_frequency_cap(caps, t, 'f', 2, 'n', 1, 60)",
    "a > 2",
)


def truth_of(text: str, event: dict[str, Any]) -> bool | None:
    """What a function says of an event, in plain Python: None is Unknown."""
    name, arguments = text.removesuffix(")").split("(")
    now, lat, lon = event["t"], event["lat"], (event["place"] or {}).get("lon")
    if name == "geo_within_radius":
        if lat is None or lon is None:
            return None
        center = [float(x) for x in arguments.split(",")[2:]]
        here, there = (
            (math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a))
            for a, b in ((math.radians(lat), math.radians(lon)), (math.radians(center[0]), math.radians(center[1])))
        )
        return 2 * 6372.8 * math.asin(min(math.dist(here, there) / 2, 1)) <= center[2]
    if name.startswith("segment"):
        if event["seen"] is None or now is None:
            return None
        id, seconds = (int(x) for x in arguments.split(",")[2:])
        times = [one["timestamp"] for one in event["seen"] if one["id"] == id]
        return bool(times) and (now - seconds <= times[0] / 1e6) is (name == "segment_within")
    if event["caps"] is None or (event["caps"] and now is None):
        return None
    type, id_text, space, most, seconds = (x.strip(" '") for x in arguments.split(",")[2:])
    for cap in event["caps"]:
        if (cap["type"], cap["id"], cap["ns"]) == (type, int(id_text), space):
            waited = int(seconds) != 0 and now - cap["timestamp"] / 1e6 > int(seconds)
            return int(most) > cap["value"] or waited
    return True


def random_condition(rng: Random, depth: int) -> tuple[str, Any]:
    """A text, and a function from an event and the two truths of what is absent to its truth."""
    kind = rng.choice(["leaf", "leaf", "not", "and", "or"]) if depth else "leaf"
    if kind == "leaf":
        text = rng.choice(SIMPLE)
        if text == "a > 2":
            return text, lambda event: None if event["a"] is None else event["a"] > 2
        return text, lambda event: truth_of(text, event)
    if kind == "not":
        text, of = random_condition(rng, depth - 1)
        return f"NOT ({text})", lambda event: negated(of(event))
    parts = [random_condition(rng, depth - 1) for _ in range(2)]
    join = all_of if kind == "and" else any_of
    return f"({parts[0][0]}) {kind.upper()} ({parts[1][0]})", lambda event: join([of(event) for _, of in parts])


def negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def all_of(truths: list[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def any_of(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def random_event(rng: Random) -> dict[str, Any]:
    def or_null(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    def when() -> int:
        return (T - rng.choice([0, 30, 59, 60, 61, 100])) * 10**6

    caps = [
        {"type": rng.choice("fg"), "id": rng.choice([1, 2]), "ns": rng.choice("nm"), "value": rng.randrange(4), "timestamp": when()}
        for _ in range(rng.randrange(4))
    ]  # fmt: skip
    return {
        "lat": or_null(rng.choice([48.0, -9.5, 40.0])),
        "place": or_null({"lon": or_null(rng.choice([16.0, 179.5, -170.0, 189.5]))}),
        "a": or_null(rng.randrange(5)),
        "t": or_null(T),
        "seen": or_null([{"id": rng.randrange(3), "timestamp": when()} for _ in range(rng.randrange(4))]),
        "caps": or_null(caps),
        "attrs": None,
        "at": None,
    }


@pytest.mark.parametrize("missing", ["unknown", "false"])
@pytest.mark.parametrize("kind", ["scan", "bitslice", "opindex", "betree", "psthash"])
def test_what_matches(kind: str, missing: str, tmp_path: Path) -> None:
    rng = Random(f"{kind} {missing}")
    count = 50 if SMALL else 150
    conditions = {id: random_condition(rng, 3) for id in range(count)}
    events = [random_event(rng) for _ in range(40 if SMALL else 120)]
    table = pa.Table.from_pylist(events, SCHEMA)

    def truths(event: dict[str, Any]) -> list[int]:
        return [id for id, (_, of) in conditions.items() if of(event) is True]

    texts = {id: text for id, (text, _) in conditions.items()}
    matcher = cm.Matcher.build(dict(list(texts.items())[: count // 2]), SCHEMA, kind, missing=missing)
    matcher.insert({id: text for id, text in texts.items() if id >= count // 2})
    found = [sorted(ids) for ids in matcher.match_lists(table).to_pylist()]
    if missing == "unknown":
        assert found == [truths(event) for event in events]
    else:  # a leaf that is Unknown is False
        for event, ids in zip(events, found, strict=True):
            expected = [id for id, text in texts.items() if two_valued(text, event)]
            assert ids == expected
    for _ in range(20):
        event, id = rng.randrange(len(events)), rng.randrange(count)
        assert matcher.explain(table.slice(event, 1), id).matched is (id in found[event])
    matcher.save(tmp_path / "m.cm")
    for other in (cm.Matcher.open(tmp_path / "m.cm"), pickle.loads(pickle.dumps(matcher))):
        assert [sorted(ids) for ids in other.match_lists(table).to_pylist()] == found
    matcher.delete(range(0, count, 2))
    matcher.compact()
    odd = [[id for id in ids if id % 2] for ids in found]
    assert [sorted(ids) for ids in matcher.match_lists(table).to_pylist()] == odd


def test_caps_of_which_there_are_none_are_known_at_any_time() -> None:
    """An explanation said Unknown where the matcher said True."""
    text = "within_frequency_cap(caps, t, 'f', 2, 'n', 1, 60)"
    matcher = cm.Matcher.build({1: text, 2: f"NOT {text}", 3: f"({text}) IS UNKNOWN"}, SCHEMA)
    for caps, t, truths in (
        ([], None, (True, False, False)),
        ([], T, (True, False, False)),
        (None, T, (None, None, True)),
    ):
        event = {"caps": caps, "t": t}
        assert [matcher.explain(event, id).tree.truth for id in (1, 2, 3)] == list(truths)
        assert matcher.match_one(event) == [id for id in (1, 2, 3) if truths[id - 1]]


def two_valued(text: str, event: dict[str, Any]) -> bool:
    words = text
    for number, simple in enumerate(SIMPLE):
        truth = event["a"] is not None and event["a"] > 2 if simple == "a > 2" else truth_of(simple, event) is True
        words = words.replace(simple, f"TRUTH{number}={truth}")
    for number in range(len(SIMPLE)):
        words = words.replace(f"TRUTH{number}=", "")
    return bool(eval(words.replace("NOT", "not ").replace("AND", "and").replace("OR", "or")))


SAID = {  # text: column, and what is said
    "geo_within_radius(lat, lat, 48.2, 16.4)": (1, "geo_within_radius has too few or too many arguments here: it is written geo"),
    "geo_within_radius()": (1, "geo_within_radius has too few or too many arguments"),
    "geo_within_radius(48.2, lat, 48.2, 16.4, 3)": (19, "the name of a column is expected here"),
    "geo_within_radius(lat + 1, lat, 1, 2, 3)": (19, "the name of a column is expected here"),
    "geo_within_radius(lat, lat, a, 16.4, 3)": (29, "a number is expected here"),
    "geo_within_radius(lat, lat, 'x', 16.4, 3)": (29, "a number is expected here"),
    "a = 1 AND geo_within_radius(lat, lat, NULL, 2, 3)": (29, "a number is expected here"),
    "geo_within_radius(lat, lat, CAST('NaN' AS DOUBLE), 2, 3)": (34, "a number is expected here"),
    "geo_within_radius(lat, seen, 1, 16.4, 3)": (24, "column 'seen' is list.*, geo_within_radius needs a number of"),
    "geo_within_radius(lat, place, 1, 16.4, 3)": (24, "column 'place' is struct"),
    "geo_within_radius(lat, lo, 1, 16.4, 3)": (24, "unknown attribute 'lo'"),
    "segment_within(seen, t, 1.5, 3)": (25, "a whole number of 64 bits is expected here: segment_within is called as"),
    "segment_within(seen, t, 1, 99999999999999999999)": (28, "a whole number of 64 bits is expected here"),
    "segment_within(seen, t, (1, 2), 3)": (26, "a whole number of 64 bits"),
    "segment_within(caps, t, 1, 3)": (16, "column 'caps' is .*, segment_within needs a list of struct<id: int64, time"),
    "segment_before(seen, caps, 1, 3)": (22, "column 'caps' is .*, segment_before needs a number of seconds, or a time"),
    "segment_before(seen, place.lon, 1, 3)": (22, "takes a column for its clock, not the field 'place.lon'"),
    "segment_within(seen, attrs['x'], 1, 3)": (22, "the name of a column is expected here"),
    "within_frequency_cap(seen, t, 'f', 1, 'n', 1, 1)": (22, "within_frequency_cap needs a list of struct<type:"),
    "within_frequency_cap(caps, t, 7, 1, 'n', 1, 1)": (31, "a string is expected here"),
    "within_frequency_cap(caps, t, 'f', 4294967296, 'n', 1, 1)": (36, r"a whole number below 2\^32 is expected here"),
    "geo_within_radius(lat, lat, 1, 2, 3) > 5": (19, r"a column is needed here, not geo_within_radius\(\.\.\.\)"),
    "lower(segment_within(seen, t, 1, 3)) = 'a'": (22, "this condition cannot be a part of a value"),
}  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_what_is_refused(text: str) -> None:
    column, said = SAID[text]
    with pytest.raises(cm.ExpressionError, match=said) as error:
        cm.Matcher.build({1: text}, SCHEMA)
    assert (error.value.line, error.value.column) == (1, column)


def test_texts_and_built_expressions_are_one() -> None:
    lat, lon, seen, caps, t = (cm.col(name) for name in ("lat", "place.lon", "seen", "caps", "t"))
    built = (
        cm.geo_within_radius(lat, lon, 48.2, 16, 10)
        & ~cm.segment_within(seen, t, 12, 60)
        & (cm.segment_before(seen, t, -1, 0) | cm.within_frequency_cap(caps, t, "it's", 7, "n", 3, 60))
    )
    text = str(built)
    assert text == (
        "geo_within_radius(lat, place.lon, 48.2, 16.0, 10.0) AND NOT (segment_within(seen, t, 12, 60)) AND "
        "(segment_before(seen, t, -1, 0) OR within_frequency_cap(caps, t, 'it\\'s', 7, 'n', 3, 60))"
    )
    matcher = cm.Matcher.build({1: built, 2: text, 3: text.replace("48.2", "1.0")}, SCHEMA)
    events = pa.Table.from_pylist([{"lat": 48.2, "place": {"lon": 16.0}, "t": T, "seen": [], "caps": []}], SCHEMA)
    assert matcher.match_lists(events).to_pylist() == [[1, 2]]
    for wrong, said in (
        (lambda: cm.geo_within_radius(lat, 3, 1, 2, 3), "argument 2: the name of a column is expected here"),
        (lambda: cm.geo_within_radius(lat + 1, lon, 1, 2, 3), "argument 1: the name of a column"),
        (lambda: cm.geo_within_radius(lat, lon, 1, "x", 3), "argument 4: a number is expected here"),
        (lambda: cm.geo_within_radius(lat, lon, 1, None, 3), "argument 4: a number is expected here"),
        (lambda: cm.segment_within(seen, t, 1.5, 3), "argument 3: a whole number of 64 bits"),
        (lambda: cm.segment_within(seen, t, True, 3), "argument 3: a whole number of 64 bits"),
        (lambda: cm.within_frequency_cap(caps, t, "a\0b", 1, "n", 1, 1), "argument 3: a string is expected here"),
    ):
        with pytest.raises(cm.ExpressionError, match=said):
            wrong()


def test_literals_of_one_shape_are_told_apart() -> None:
    texts = {id: f"geo_within_radius(lat, place.lon, {id}, 2, 1.0) OR a = {id}" for id in range(50)}
    texts |= {id + 50: f"a < 0 OR geo_within_radius(lat, place.lon, -{id}.0, -2, 1.0)" for id in range(1, 50)}
    matcher = cm.Matcher.build(texts, SCHEMA)
    events = [{"lat": 7.0, "place": {"lon": 2.0}, "a": 9}, {"lat": -7.0, "place": {"lon": -2.0}, "a": 60}]
    found = matcher.match_lists(pa.Table.from_pylist(events, SCHEMA)).to_pylist()
    assert [sorted(ids) for ids in found] == [[7, 9], [57]]


def test_a_later_text_of_a_shape_is_refused_at_its_place() -> None:
    texts = {
        1: "a = 1 OR segment_within(seen, t, 12, 60)",
        2: "a = 2 OR segment_within(seen, t, 12, 99999999999999999999)",
    }
    with pytest.raises(cm.ExpressionError, match="a whole number of 64 bits is expected here") as error:
        cm.Matcher.build(texts, SCHEMA)
    assert (error.value.line, error.value.column) == (1, 38)
    texts[3] = texts[1].replace("12", "-12")
    texts |= {id: f"/* {id} */ segment_within(seen, t, {id}, {9**id})" for id in (11, 13, 15, 17, 19, 21)}
    matcher = cm.Matcher.build(texts, SCHEMA, errors="collect", max_rejected=1.0)
    assert [(bad.id, bad.position) for bad in matcher.rejected] == [(2, (1, 38)), (21, (1, 38))]
    with pytest.raises(cm.ExpressionError, match="whole number below"):
        matcher.insert(
            {
                4: "within_frequency_cap(caps, t, 'f', 1, 'n', 1, 1)",
                5: "within_frequency_cap(caps, t, 'f', 1, 'n', 4294967296, 1)",
            }
        )


@pytest.mark.usefixtures("kept_predicates")
def test_explain() -> None:
    text = "NOT geo_within_radius(lat, place.lon, 1, 2, 3.5) AND within_frequency_cap(caps, t, 'f', 7, 'n', 3, 60)"
    matcher = cm.Matcher.build({1: text}, SCHEMA)
    told = str(matcher.explain({"lat": None, "place": {"lon": 1.0}, "caps": [], "t": 5}, 1)).splitlines()
    assert told[:2] == ["subscription 1: does not match", "└─ Unknown all of"]
    assert sorted(line[6:] for line in told[2:]) == [
        "True    within_frequency_cap(caps, t, 'f', 7, 'n', 3, 60)   [{'caps': [], 't': 5}]",
        "Unknown NOT geo_within_radius(lat, place.lon, 1.0, 2.0, 3.5)   [{'lat': None, 'place.lon': 1.0}]",
    ]
    assert sorted(matcher.columns) == ["caps", "lat", "place", "t"]


@pytest.mark.parametrize("missing", ["unknown", "false"])
@pytest.mark.parametrize(("lat", "caps"), [(None, None), (math.nan, None), (1.0, []), (1.0, FULL), (-80.0, FULL)])
@pytest.mark.usefixtures("kept_predicates")
def test_explain_has_three_truth_values(lat: float | None, caps: list[Any] | None, missing: Any) -> None:
    """A function and its NOT are unknown together, and opposites otherwise."""
    near, cap = "geo_within_radius(lat, place.lon, 1, 2, 350)", "within_frequency_cap(caps, t, 'f', 7, 'n', 3, 0)"
    texts = {1: near, 2: f"NOT {near}", 3: cap, 4: f"NOT {cap}", 5: f"NOT ({near} OR {cap})"}
    texts |= {6: f"({near}) IS UNKNOWN", 7: f"({near}) IS NOT TRUE"}
    matcher = cm.Matcher.build(texts, SCHEMA, missing=missing)
    event = {"lat": lat, "place": {"lon": 2.0}, "caps": caps, "t": 5}
    is_near = None if lat is None or math.isnan(lat) else lat == 1.0
    is_below = None if caps is None else not caps
    if missing == "false":
        is_near, is_below = bool(is_near), bool(is_below)
    none_of = False if is_near or is_below else None if None in (is_near, is_below) else True
    expected = [is_near, None if is_near is None else not is_near, is_below, None if is_below is None else not is_below]
    told = [matcher.explain(event, id) for id in texts]
    assert [one.tree.truth for one in told] == [*expected, none_of, is_near is None, is_near is not True]
    assert matcher.match_one(event) == [one.id for one in told if one.matched]
    assert told[6].tree.text == (f"({texts[2]}) IS NOT FALSE" if missing == "unknown" else texts[2]).replace(
        "1, 2, 350", "1.0, 2.0, 350.0"
    )


# The clock
# --------------------------------------------------------------------------

CLOCKED = {1: "segment_within(seen, t, 1, 60)", 2: "segment_before(seen, at, 1, 60)", 3: "t > 5"}


def clocked(since: int) -> pa.Table:
    return pa.table({"seen": pa.array([[{"id": 1, "timestamp": (T - since) * 10**6}]], SEGMENTS)})


@pytest.mark.parametrize(
    "now",
    [
        T,
        float(T),
        dt.datetime.fromtimestamp(T, dt.UTC),
        dt.datetime.fromtimestamp(T, dt.timezone(dt.timedelta(hours=2))),
    ],
)
def test_now_is_given_with_the_call(now: Any) -> None:
    matcher = cm.Matcher.build(CLOCKED, SCHEMA)
    assert matcher.match_lists(clocked(60), now=now).to_pylist() == [[1, 3]]
    assert sorted(matcher.match_lists(clocked(61), now=now).to_pylist()[0]) == [2, 3]
    events = clocked(60).append_column("T", pa.array([3]))  # what it says counts for nothing
    assert matcher.match(events, now=now).num_rows == matcher.count(events, now=now)[0] == 2
    assert matcher.exists(events, now=now).all()
    assert sum(batch.num_rows for batch in matcher.match_batches(events, now=now)) == 2
    assert matcher.match_topk(events, 1, now=now).num_rows == 1
    assert matcher.counters(events, now=now)["matches"] == 2
    assert matcher.explain(events, 1, now=now).matched and matcher.explain({"seen": None}, 3, now=now).matched
    assert matcher.match(events, {"a": ("low", "high")}, now=now).num_rows == 2
    with pytest.raises(cm.EventError, match="no column 't'"):
        matcher.match(clocked(60))


def test_now_without_a_zone_is_in_that_of_the_options() -> None:
    matcher = cm.Matcher.build(CLOCKED, SCHEMA, options=cm.Options(timezone="Europe/Berlin"))
    now = dt.datetime.fromtimestamp(T, dt.timezone(dt.timedelta(hours=1))).replace(tzinfo=None)
    assert matcher.match_lists(clocked(60), now=now).to_pylist() == [[1, 3]]


def test_now_in_the_language_of_betree() -> None:
    """It stands for the domain ``now``, which must be defined here."""
    domains = cm.betree.Domains("seen|segments|true\nnow|integer|false\n")
    matcher = cm.Matcher.build({1: "segment_within(seen, 1, 60)", 2: "now > 5"}, domains, language="betree")
    events = cm.betree.events([{"seen": [[1, (T - 60) * 10**6]]}], domains)
    assert matcher.match(events).num_rows == 0
    assert (
        matcher.match(events, now=T + 0.5).num_rows == matcher.match(events.drop_columns(["now"]), now=T).num_rows == 2
    )
    assert matcher.match(events, now=T + 1).num_rows == 1
    assert matcher.explain({"seen": []}, 2, now=T).matched


@pytest.mark.parametrize("now", ["12:00", True, math.nan, math.inf, 1 << 70, dt.date(2026, 1, 1)])
def test_other_times_are_refused(now: Any) -> None:
    matcher = cm.Matcher.build(CLOCKED, SCHEMA)
    with pytest.raises(cm.OptionError, match="a datetime is needed, or seconds since 1970"):
        matcher.match(clocked(1), now=now)


def test_a_time_that_fits_no_column_is_refused() -> None:
    matcher = cm.Matcher.build({1: "segment_within(seen, t, 1, 60)"}, {"seen": SEGMENTS, "t": "int8"})
    with pytest.raises(cm.OptionError, match="now=1700000000 does not fit column 't', which is int8"):
        matcher.match(clocked(1), now=T)
