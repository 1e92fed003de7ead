"""Labels: their order and their distances, however boundaries and literals come between others."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from sizes import SMALL

import colmatch as cm
from colmatch.arrays.frozen import freeze
from colmatch.events.vocabulary import Vocabulary
from colmatch.kernels.layout import FLAG_RUN, LABEL_TOP, Codes, Literals, Predicates
from colmatch.predicates.columns import EMPTY
from colmatch.updates import labels, literals

SEEDS = range(60 if SMALL else 200)
KEYS = [-(2**63), -(2**63) + 1, -(2**40), -5, 0, 1, 2, 3, 10**6, 2**40, 2**62, 2**63 - 2, 2**63 - 1]


def codes_of(keys: list[list[int]], labels: list[list[int]] | None = None) -> Codes:
    first = np.cumsum([0, *map(len, keys)])
    bound = np.array([key for some in keys for key in some], np.int64)
    label = np.array([] if labels is None else [*(x for some in labels for x in some), LABEL_TOP], np.uint32)
    return freeze(Codes(first, bound, np.zeros(len(keys), np.uint8), label))


def literals_of(words: list[list[bytes]], labels: list[list[int]] | None = None) -> Literals:
    flat = [word for some in words for word in some]
    label = np.array([x for some in labels or [] for x in some], np.int64)
    offset = np.cumsum([0, *map(len, flat)])
    return freeze(
        Literals(np.cumsum([0, *map(len, words)]), offset, np.frombuffer(b"".join(flat), np.uint8).copy(), label)
    )


def predicates_of(preds: list[tuple[int, int, int]], runs: list[tuple[int, int]] = []) -> Predicates:  # noqa: B006
    low, high = (np.array([run[end] for run in runs], np.uint32) for end in (0, 1))
    pred, owner = np.array(preds, np.uint32).reshape(-1, 3), np.zeros(1, np.uint32)
    return EMPTY._replace(first=np.array([0, len(preds)]), pred=pred, run_lo=low, run_hi=high, owner=owner)


def some_keys(rng: Random) -> list[int]:
    near = rng.choice([0, rng.randrange(-(2**62), 2**62)])
    keys = {near + rng.randrange(rng.choice([10, 1000, 2**60])) for _ in range(rng.choice([0, 1, 5, 40]))}
    return sorted(keys | set(rng.sample(KEYS, rng.choice([0, 1, 3]))) - {-(2**63)})


def check_codes(codes: Codes) -> None:
    assert len(codes.label) == len(codes.bound) + 1 and codes.label[-1] == LABEL_TOP
    for a in range(len(codes.multi)):
        bound = codes.bound[codes.first[a] : codes.first[a + 1]].tolist()
        label = codes.label[codes.first[a] : codes.first[a + 1]].tolist()
        assert len(label) == len(bound) and bound == sorted(set(bound))
        assert all(1 < x <= LABEL_TOP for x in label)
        for k, x in zip(pairwise(bound), pairwise(label)):
            assert 1 <= x[1] - x[0] <= k[1] - k[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_boundaries_come_between_others(seed: int) -> None:
    rng = Random(seed)
    attributes = rng.choice([1, 3])
    known = [some_keys(rng) for _ in range(attributes)]
    _, codes = labels.with_labels(predicates_of([]), codes_of(known))
    check_codes(codes)
    for _ in range(rng.choice([1, 5, 30])):
        attributes += rng.choice([0, 0, 1])
        known += [[] for _ in range(attributes - len(known))]
        new = [some_keys(rng) if rng.random() < 0.7 else [] for _ in known]
        before = {(a, key): x for a, key, x in spelled(codes)}
        there = sorted((a, key) for a, some in enumerate(known) for key in some)
        known = [sorted({*some, *others}) for some, others in zip(known, new)]
        try:
            joined, label = labels.join(codes, codes_of(new))
        except labels.NoRoomError:
            assert sorted((a, key) for a, key, _ in spelled(codes)) == there
            _, codes = labels.with_labels(predicates_of([]), codes_of(known))
            check_codes(codes)
            continue
        check_codes(joined)
        after = {(a, key): x for a, key, x in spelled(joined)}
        assert sorted(after) == sorted((a, key) for a, some in enumerate(known) for key in some)
        assert before.items() <= after.items()
        assert label.tolist() == [after[a, key] for a, some in enumerate(new) for key in some]
        assert {(a, key): x for a, key, x in spelled(codes)} == before  # which others may be reading
        assert joined is codes or after != before or len(joined.multi) > len(codes.multi)
        codes = joined


def spelled(codes: Codes) -> list[tuple[int, int, int]]:
    attr = np.repeat(np.arange(len(codes.multi)), np.diff(codes.first))
    return list(zip(attr.tolist(), codes.bound.tolist(), codes.label.tolist()))


def test_labels_come_and_go() -> None:
    """Of 10 and 1000; one predicate ends at each of them, one has two intervals, one is empty."""
    dense = predicates_of([(1, 2, 2), (1, 1, 1), (1, 3, 3), (1 | FLAG_RUN, 0, 2), (1, 1, 0)], [(1, 1), (3, 3)])
    labelled, codes = labels.with_labels(freeze(dense), codes_of([[], [10, 1000]]))
    a, b, _ = codes.label.tolist()
    check_codes(codes)
    assert labelled.pred.tolist() == [[1, a, b - 1], [1, 1, a - 1], [1, b, LABEL_TOP], [1 | FLAG_RUN, 0, 2], [1, 1, 0]]
    assert labelled.run_lo.tolist() == [1, b] and labelled.run_hi.tolist() == [a - 1, LABEL_TOP]
    again, same = labels.without_labels(labelled, codes)
    assert again.pred.tolist() == dense.pred.tolist() and not len(same.label)
    assert again.run_lo.tolist() == [1, 3] and again.run_hi.tolist() == [1, 3]


def test_there_is_no_room_between_labels_next_to_each_other() -> None:
    codes = codes_of([[], [10, 1000]], [[], [500, 501]])
    with pytest.raises(labels.NoRoomError):
        labels.join(codes, codes_of([[], [10, 11, 500]]))
    joined, label = labels.join(codes, codes_of([[], [10, 1001]]))
    assert joined.bound.tolist() == [10, 1000, 1001] and label.tolist() == [500, 502]


@pytest.mark.parametrize("kind", ["scan", "opindex", "propagation", "pstbloom", "psthash"])
def test_without_room_a_growing_segment_is_labelled_anew(kind: str) -> None:
    first = {i: f"a = {i} OR a NOT IN ({i}, {i + 50}) AND b > {i}" for i in range(9)}
    matcher = cm.Matcher.build({}, {"a": "int64", "b": "int64"}, index=kind)
    matcher.insert(first)
    matcher.delete([4])
    before = inside.segment(matcher)
    new = {i: f"a BETWEEN {i - 3} AND {i} AND b <> 3" for i in range(20, 29)}
    with patch.object(labels, "join", side_effect=labels.NoRoomError):
        matcher.insert(new)
    after = inside.segment(matcher)
    assert after is not before and after.size == 18 and matcher.stats()["segments"][-1]["subscriptions"] == 17
    check_codes(after.codes)
    del first[4]
    matcher.insert({30: "a = 31"})
    matcher.delete([0, 20])
    texts = {id: text for id, text in (first | new | {30: "a = 31"}).items() if id not in (0, 20)}
    events = pa.table({"a": [*range(60), None], "b": [i % 7 for i in range(61)]})
    fresh = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index="scan")
    assert pairs(matcher.match(events)) == pairs(fresh.match(events)) != []


WORDS = [
    b"",
    b"\0",
    b"a",
    b"a\0",
    b"ab",
    b"ab1",
    b"ab2",
    b"abc",
    b"b",
    b"zz",
    b"\xff",
    b"a long one that ends with 1",
    b"a long one that ends with 2",
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("crowd", [False, True])
def test_literals_come_between_others(seed: int, crowd: bool) -> None:
    rng = Random(seed)
    words = [sorted(rng.sample(WORDS, rng.choice([0, 1, 4]))) for _ in range(2)]
    codes, known = literals.label_first(both_sides(words), literals_of(words))
    if crowd:  # what could be there after many inserts
        spaced = [[5 + 2 * i for i in range(len(some))] for some in words]
        codes, known = codes_of([sides(some) for some in spaced]), literals_of(words, spaced)
    known = Vocabulary.among(known)
    for _ in range(rng.choice([1, 6])):
        words += [[]] * rng.choice([0, 0, 1])
        new = [sorted(rng.sample(WORDS, rng.choice([0, 1, 3, 6]))) for _ in words]
        before = keys_of(words, literals.whole(known))
        grown, keyed, move = literals.join_literals(known, both_sides(new), literals_of(new), len(words))
        words = [sorted({*some, *others}) for some, others in zip(words, new)]
        after = keys_of(words, literals.whole(grown))
        if move is None:
            assert before.items() <= after.items()
        else:
            moved = literals.move_keys(codes, move)
            assert (moved is codes) == ([*moved.bound] == [*codes.bound])
            codes = moved
        # a segment that has all words but the new ones, and the codes of those
        check_literals(words, literals.whole(grown))
        assert move is not None or not len(known.old) or grown.old.literals.label is known.old.literals.label
        assert codes.bound.tolist() == [key for place in before for key in sides([after[place]])]
        assert keyed.bound.tolist() == [
            key for a, some in enumerate(new) for word in some for key in sides([after[a, word]])
        ]
        known, codes = grown, codes_of([sides([after[a, w] for w in some]) for a, some in enumerate(words)])
    same, keyed, move = literals.join_literals(known, both_sides(words), literals_of(words), len(words))
    assert same is known and move is None and keyed.bound.tolist() == codes.bound.tolist()


def check_literals(words: list[list[bytes]], known: Literals) -> None:
    flat = [word for some in words for word in some]
    assert [known.data[i:j].tobytes() for i, j in pairwise(known.offset)] == flat
    assert known.first.tolist() == np.cumsum([0, *map(len, words)]).tolist()
    for i, j in pairwise(known.first):
        label = known.label[i:j].tolist()
        assert all(x >= 1 for x in label) and all(y - x >= 2 for x, y in pairwise(label))


def keys_of(words: list[list[bytes]], known: Literals) -> dict[tuple[int, bytes], int]:
    """The label of each word of each attribute."""
    places = [(a, word) for a, some in enumerate(words) for word in some]
    return dict(zip(places, known.label.tolist(), strict=True))


def sides(labels: list[int]) -> list[int]:
    return [key for label in labels for key in (label, label + 1)]


def both_sides(words: list[list[bytes]]) -> Codes:
    """Boundaries of an equality with each word, as lowering makes them."""
    return codes_of([sides([2 * r + 1 for r in range(len(some))]) for some in words])


def test_there_is_room_between_what_ascended() -> None:
    """Some of each gap is left on either side, wherever the new boundary lies."""
    _, codes = labels.with_labels(predicates_of([]), codes_of([[0, 2**40]]))
    for first in (1000, 1500):
        for key in range(first, 50_000 if SMALL else 500_000, 1000):
            codes, _ = labels.join(codes, codes_of([[key]]))
    check_codes(codes)
