"""Settings of a kind of index: what they may be, where they are kept, and what budgets do."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs, some_settings
from hypothesis import given
from hypothesis import strategies as st

import colmatch as cm
import colmatch.kinds.plan
from colmatch.kinds.plan import AutoSettings, settings_of
from colmatch.kinds.registry import KINDS
from colmatch.kinds.settings import Settings
from colmatch.store import file as store
from colmatch.updates import policy

SCHEMA = dict.fromkeys("abcdefghij", "int64")
CNF = " AND ".join(f"({a} > 1 OR {b} < 4)" for a, b in zip("abcde", "fghij"))  # 32 conjunctions
NESTED = "(a > 1 OR b < 4 AND c > 2) AND (d > 1 OR e < 4) AND (f > 1 OR g < 4)"  # 8
TEXTS = {1: CNF, 2: NESTED, 3: "a = 1 OR b = 2", 4: "a <> 3"}
named = pytest.mark.parametrize("kind", [*KINDS, "auto"])
randoms = st.randoms(use_true_random=False)


def some_events() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({name: pa.array(rng.integers(0, 6, 200), mask=rng.random(200) < 0.1) for name in SCHEMA})


def programs(matcher: cm.Matcher) -> set[int]:
    """Ids of the youngest segment's subscriptions that are kept whole."""
    preds, base = inside.predicates(matcher), inside.version(matcher).bases[-1]
    whole = preds.jump_first >= 0 if len(preds.jump_first) else np.zeros(len(preds.owner), bool)
    return {matcher.ids[base + int(number)].as_py() for number in preds.owner[whole]}


# The value


@named
@given(rng=randoms)
def test_settings_are_values(kind: str, rng: Random) -> None:
    value, other = some_settings(rng, kind), some_settings(rng, kind)
    assert eval(repr(value), {"index": cm.index}) == value == pickle.loads(pickle.dumps(value))
    assert cm.index(kind, **value.to_dict()) == value and hash(value) == hash(cm.index(kind, **value.to_dict()))
    assert (value == other) is (value.to_dict() == other.to_dict())
    texts = {name: settings_of(kind).parse(name, str(setting)) for name, setting in value.to_dict().items()}
    assert cm.index(kind, **texts) == value  # as the command line reads them
    assert settings_of(kind).parse("dnf_budget", "many") == settings_of(kind).parse("no", "many") == "many"


def test_repr_has_what_is_not_the_default() -> None:
    assert repr(cm.index("opindex")) == "index('opindex')" != repr(cm.index("scan"))
    assert repr(cm.index("opindex", signatures=False)) == "index('opindex', signatures=False)"
    assert repr(cm.index("kindex", enumerate="raw", dnf_budget=7)) == "index('kindex', dnf_budget=7, enumerate='raw')"
    assert (
        str(cm.index("opindex", signatures=False)) == "opindex (signatures=False)" and str(cm.index("scan")) == "scan"
    )
    assert cm.index("scan") != cm.index("propagation")


@named
def test_what_a_kind_says_of_its_settings(kind: str) -> None:
    of = settings_of(kind)
    assert of.kind == kind and of.about and issubclass(of, Settings) and (of is AutoSettings) == (kind == "auto")
    assert all(type(field.default) in (bool, int, str) and field.metadata["meaning"] for field in fields(of))
    assert of() == cm.index(kind)
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        of().dnf_budget = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("no", {}, "index='no': the kinds are 'scan', .*'bitslice' and 'auto'"),
        (3, {}, "index=3: the kinds are"),
        ([], {}, "index=\\[\\]: the kinds are"),
        ("scan", {"dnf_budget": 0}, "index\\('scan', dnf_budget=0\\): a whole number from 1 to 4096 is needed"),
        ("scan", {"dnf_budget": 4097}, "dnf_budget=4097\\): a whole number from 1 to 4096"),
        ("scan", {"dnf_budget": True}, "dnf_budget=True\\): a whole number"),
        ("scan", {"dnf_budget": 4.0}, "dnf_budget=4.0\\): a whole number"),
        ("scan", {"dnf_budget": "x" * 999}, "index\\('scan', dnf_budget='x{79}\\): a whole number"),
        ("opindex", {"signatures": 1}, "index\\('opindex', signatures=1\\): True or False is needed"),
        ("kindex", {"enumerate": "all"}, "enumerate='all'\\): 'boundaries' or 'raw' is needed"),
        ("kindex", {"enumerate": []}, "enumerate=\\[\\]\\): 'boundaries' or 'raw'"),
        (
            "opindex",
            {"no": 1},
            "no=1\\): the settings of 'opindex' are 'dnf_budget', 'cnf_budget', 'signatures', 'construction'$",
        ),
        (
            "scan",
            {"signatures": True},
            "settings of 'scan' are 'dnf_budget', 'tiles'; 'signatures' is a setting of 'opindex'",
        ),
        ("auto", {"enumerate": "raw"}, "'enumerate' is a setting of 'kindex': name that kind"),
    ],
)
def test_what_cannot_be_is_said(kind: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.OptionError, match=said):
        cm.index(kind, **settings)
    if not settings:
        with pytest.raises(cm.OptionError, match=said):
            cm.Matcher.build({}, SCHEMA, index=kind)


# Where they are kept


@named
@given(rng=randoms)
def test_a_matcher_keeps_its_settings_and_finds_the_same(kind: str, rng: Random) -> None:
    events, index = some_events().slice(0, 20), some_settings(rng, kind)
    wanted = pairs(cm.Matcher.build(TEXTS, SCHEMA, index="scan").match(events))
    matcher = cm.Matcher.build(TEXTS, SCHEMA, index=index)
    assert matcher.index == (index if kind != "auto" else cm.index(matcher.kind, dnf_budget=index.dnf_budget))
    opened = pickle.loads(pickle.dumps(matcher))  # writes what save() writes
    assert opened.index == matcher.index
    assert opened.stats()["settings"] == matcher.stats()["settings"] == matcher.index.to_dict()
    assert pairs(matcher.match(events)) == pairs(opened.match(events)) == wanted


def test_a_name_is_that_kind_with_its_defaults() -> None:
    for kind in KINDS:
        matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA, index=kind)
        assert matcher.index == cm.index(kind) and repr(matcher).endswith(f"index={kind!r})")
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA, index=cm.index("opindex", signatures=False))
    assert repr(matcher) == "Matcher(1 subscriptions, 1 attributes, index=index('opindex', signatures=False))"


@named
@given(rng=randoms)
def test_updates_and_merges_keep_settings(kind: str, rng: Random) -> None:
    index, fresh = some_settings(rng, kind), {0: "a = 1", **TEXTS}
    wanted = cm.Matcher.build(fresh, SCHEMA, index=index)
    matcher = cm.Matcher.build({0: "a = 1"}, SCHEMA, index=index)
    matcher.insert(TEXTS)
    grown = inside.segment(matcher).index.settings
    assert programs(matcher) == programs(wanted)
    is_own = kind == "scan" or getattr(index, "construction", "bulk") == "dynamic"
    assert grown == (index if is_own else cm.index("scan", dnf_budget=index.dnf_budget))
    with patch.object(policy, "GROWING_MOST", 1):
        matcher.insert({5: CNF, 6: NESTED})  # a segment of its own
    if kind != "auto":
        assert inside.segment(matcher).index.settings == index
    matcher.delete([5, 6])
    matcher.compact()
    assert matcher.index == (index if kind != "auto" else cm.index(matcher.kind, dnf_budget=index.dnf_budget))
    assert programs(matcher) == programs(wanted) and len(matcher.stats()["segments"]) == 1
    if kind == "opindex":
        assert inside.arrays(matcher).state[7] == index.signatures  # type: ignore[attr-defined]
    events = some_events().slice(0, 20)
    assert pairs(matcher.match(events)) == pairs(wanted.match(events))


@pytest.mark.parametrize("settings", [{"no": 1}, {"dnf_budget": 0}, [], None])
@pytest.mark.parametrize("of", ["asked", "segment"])
def test_settings_that_a_newer_version_wrote_are_refused_with_its_name(tmp_path: Path, of: str, settings: Any) -> None:
    cm.Matcher.build(TEXTS, SCHEMA, index="scan").save(tmp_path / "i")
    header, arrays = store.read_arrays(tmp_path / "i")
    (header["requested"] if of == "asked" else header["segments"][0])["settings"] = settings
    store.write_arrays(tmp_path / "new", header | {"version": "9.9"}, arrays)
    with pytest.raises(cm.StoreError, match="which colmatch 9.9 wrote"):
        cm.Matcher.open(tmp_path / "new")


# Budgets


def test_a_kind_with_clauses_keeps_a_cnf_whole_and_multiplies_other_expressions_out() -> None:
    def whole(index: Settings) -> set[int]:
        return programs(cm.Matcher.build(TEXTS, SCHEMA, index=index))

    assert not any(whole(cm.index(kind)) for kind in ("scan", "propagation", "bitslice", "auto"))
    assert whole(cm.index("opindex")) == {1}
    assert whole(cm.index("opindex", cnf_budget=31)) == {1} and whole(cm.index("opindex", cnf_budget=32)) == set()
    assert whole(cm.index("opindex", dnf_budget=7, cnf_budget=64)) == {1, 2}
    assert whole(cm.index("kindex")) == {1, 2}
    assert whole(cm.index("auto", dnf_budget=8)) == {1} and whole(cm.index("auto", dnf_budget=7)) == {1, 2}
    assert whole(cm.index("bitslice", dnf_budget=7)) == {1, 2} and whole(cm.index("bitslice", dnf_budget=31)) == {1}


@pytest.mark.parametrize(
    "clauses",
    [
        [*(f"a{i} = 1" for i in range(62)), *["(x = 1 OR y = 2 OR z = 3)"] * 2],  # 65 with the next line's
        ["(a0 IS NULL OR x = 1)", "(y = 1 OR z = 1 OR a1 = 1)"],
        ["(a0 = 1 OR x = 1)", "(y = 1 OR z = 1 AND a1 = 1 OR a2 = 5)"],
    ],
)
def test_what_the_clauses_of_opindex_cannot_hold_is_multiplied_out(clauses: list[str]) -> None:
    schema = dict.fromkeys([*(f"a{i}" for i in range(80)), *"xyz"], "int64")
    texts = {1: " AND ".join([*clauses, "(a70 = 1 OR a71 = 2)", "(a72 = 1 OR a73 = 2)"])}
    matcher = cm.Matcher.build(texts, schema, index="opindex")
    assert programs(matcher) == set() and len(inside.predicates(matcher).owner) > 4


def test_never_more_than_the_budget_however_an_expression_is_put_together() -> None:
    """Parts of an OR are multiplied out one by one; together they take sixteen budgets at most."""
    wide = " OR ".join(f"({CNF.replace('1', str(i))})" for i in range(40))
    for index in (
        cm.index("scan", dnf_budget=32),
        cm.index("opindex", dnf_budget=32),
        cm.index("bitslice", dnf_budget=32),
    ):
        matcher = cm.Matcher.build({1: wide}, SCHEMA, index=index)
        assert len(inside.predicates(matcher).owner) <= 16 * index.dnf_budget + 40
    events = some_events()
    wanted = pairs(cm.Matcher.build({1: wide}, SCHEMA, index=cm.index("scan", dnf_budget=1)).match(events))
    assert wanted and pairs(matcher.match(events)) == wanted


def test_defaults_are_those_that_were_measured() -> None:
    """BENCHMARKS.md, Budgets, has the figures: who changes a default measures again."""
    trees = {
        "capacity": 160,
        "ranking": "selectivity",
        "construction": "bulk",
        "short_circuit": True,
        "evaluation": "lazy",
    }
    spaces = {"ranking": "share", "construction": "bulk"}
    defaults = {kind: cm.index(kind).to_dict() for kind in [*KINDS, "auto"]}
    assert defaults == {
        "scan": {"dnf_budget": 64, "tiles": True},
        "kindex": {"dnf_budget": 1, "enumerate": "boundaries"},
        "propagation": {"dnf_budget": 64},
        "opindex": {"dnf_budget": 64, "cnf_budget": 4, "signatures": True, "construction": "bulk"},
        "betree": {"dnf_budget": 64, **trees, "halves": "keys"},
        "bestar": {"dnf_budget": 64, **trees, "split": "exhaustive", "alpha": 10, "beta": 4},
        "pstbloom": {"dnf_budget": 64, **spaces, "leaves": 128, "signatures": True},
        "psthash": {"dnf_budget": 64, **spaces, "leaves": 4, "dimensions": 2, "spaces": 64},
        "pbtree": {"dnf_budget": 64, "path": "", "cache_bytes": 1 << 26, "fsync": False},
        "bitslice": {"dnf_budget": 64, "close_columns": True},
        "auto": {"dnf_budget": 64},
    }


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_auto_chooses_is_lowered_as_its_settings_say(kind: str) -> None:
    """Expressions are lowered under the one budget of ``auto``, before a kind is chosen."""
    with patch.object(colmatch.kinds.plan, "estimates", return_value={kind: 1.0}):
        chosen = cm.Matcher.build(TEXTS, SCHEMA)
    again = cm.Matcher.build(TEXTS, SCHEMA, index=chosen.index)
    assert chosen.kind == kind
    assert programs(again) == programs(chosen)
    assert len(inside.predicates(again).owner) == len(inside.predicates(chosen).owner)


@pytest.mark.parametrize("value", [10**5000, [10**5000], Settings.__new__(Settings)], ids=["int", "list", "base"])
def test_values_that_have_no_repr(value: Any) -> None:
    for call in (
        lambda: cm.index(value),
        lambda: cm.index("scan", dnf_budget=value),
        lambda: cm.Matcher.build(TEXTS, SCHEMA, index=value),
        lambda: cm.Options(batch_rows=value),
    ):
        with pytest.raises(cm.OptionError):
            call()


def test_settings_may_be_numpys(tmp_path: Path) -> None:
    value = cm.index("pbtree", path=tmp_path / "x", cache_bytes=np.int32(1 << 16), fsync=np.True_)
    assert value == cm.index("pbtree", path=str(tmp_path / "x"), cache_bytes=1 << 16, fsync=True)
    assert type(value.to_dict()["cache_bytes"]) is int and value.to_dict()["fsync"] is True
    options = cm.Options(batch_rows=np.int64(64), ansi=np.False_)
    assert options == cm.Options(batch_rows=64) and options.to_dict()["ansi"] is False
    assert type(options.batch_rows) is int
    for odd in (np.True_, np.float64(64)):
        with pytest.raises(cm.OptionError, match="a whole number from 1 to"):
            cm.index("scan", dnf_budget=odd)
        with pytest.raises(cm.OptionError, match="a whole number from 1 to"):
            cm.Options(batch_rows=odd)
