"""Labels: their order and their distances, however boundaries and literals come between others."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from contract import NO_JIT

from colmatch.arrays.frozen import freeze
from colmatch.kernels.layout import FLAG_RUN, LABEL_TOP, Codes, Literals, Predicates
from colmatch.updates import labels

SEEDS = range(60 if NO_JIT else 200)
KEYS = [-(2**63), -(2**63) + 1, -(2**40), -5, 0, 1, 2, 3, 10**6, 2**40, 2**62, 2**63 - 2, 2**63 - 1]


def codes_of(keys: list[list[int]], labels: list[list[int]] | None = None) -> Codes:
    first = np.cumsum([0, *map(len, keys)])
    bound = np.array([key for some in keys for key in some], np.int64)
    label = np.array([x for some in labels or [] for x in some], np.uint32)
    return freeze(Codes(first, bound, np.zeros(len(keys), np.uint8), label))


def literals_of(words: list[list[bytes]], labels: list[list[int]] | None = None) -> Literals:
    flat = [word for some in words for word in some]
    label = np.array([x for some in labels or [] for x in some], np.int64)
    offset = np.cumsum([0, *map(len, flat)])
    return freeze(
        Literals(np.cumsum([0, *map(len, words)]), offset, np.frombuffer(b"".join(flat), np.uint8).copy(), label)
    )


def predicates_of(preds: list[tuple[int, int, int]], runs: list[tuple[int, int]] = []) -> Predicates:  # noqa: B006
    none = np.empty(0, np.int64)
    return Predicates(
        np.array([0, len(preds)]), np.array(preds, np.uint32).reshape(-1, 3), np.array([lo for lo, _ in runs], np.uint32),
        np.array([hi for _, hi in runs], np.uint32), np.zeros(1, np.uint32), np.empty(0), none, np.empty((0, 2), np.int32), none,
        np.empty(0, np.int32),
    )  # fmt: skip


def some_keys(rng: Random) -> list[int]:
    near = rng.choice([0, rng.randrange(-(2**62), 2**62)])
    keys = {near + rng.randrange(rng.choice([10, 1000, 2**60])) for _ in range(rng.choice([0, 1, 5, 40]))}
    return sorted(keys | set(rng.sample(KEYS, rng.choice([0, 1, 3]))) - {-(2**63)})


def check_codes(codes: Codes) -> None:
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
    none = literals_of([[] for _ in known])
    preds, codes, literals = labels.with_labels(predicates_of([]), codes_of(known), none)
    check_codes(codes)
    for _ in range(rng.choice([1, 5, 30])):
        attributes += rng.choice([0, 0, 1])
        known += [[] for _ in range(attributes - len(known))]
        new = [some_keys(rng) if rng.random() < 0.7 else [] for _ in known]
        before = {(a, key): x for a, key, x in spelled(codes)}
        try:
            grown = labels.join(codes, literals, codes_of(new), literals_of([[] for _ in new]))
        except labels.NoRoomError:
            preds, grown = labels.join_respaced(preds, codes, literals, codes_of(new), literals_of([[] for _ in new]))
            before = {}
        known = [sorted({*some, *others}) for some, others in zip(known, new)]
        codes, literals = grown.codes, grown.literals
        check_codes(codes)
        after = {(a, key): x for a, key, x in spelled(codes)}
        assert sorted(after) == sorted((a, key) for a, some in enumerate(known) for key in some)
        assert before.items() <= after.items()
        assert grown.label.tolist() == [after[a, key] for a, some in enumerate(new) for key in some]
        assert grown.recoded or after == before


def spelled(codes: Codes) -> list[tuple[int, int, int]]:
    attr = np.repeat(np.arange(len(codes.multi)), np.diff(codes.first))
    return list(zip(attr.tolist(), codes.bound.tolist(), codes.label.tolist()))


def test_without_room_predicates_get_other_labels() -> None:
    """Of 10 and 1000, whose labels are next to each other; of the predicates, one ends at each
    of them, and one has two intervals.
    """
    codes = codes_of([[], [10, 1000]], [[], [500, 501]])
    none = literals_of([[], []])
    new = codes_of([[], [10, 11, 500]])
    with pytest.raises(labels.NoRoomError):
        labels.join(codes, none, new, none)
    preds = predicates_of(
        [(1, 500, 500), (1, 1, 499), (1, 501, LABEL_TOP), (1 | FLAG_RUN, 0, 2), (1, 1, 0)], [(1, 499), (501, LABEL_TOP)]
    )
    moved, grown = labels.join_respaced(freeze(preds), codes, none, new, none)
    assert grown.codes.bound.tolist() == [10, 11, 500, 1000]
    a, b, c, d = grown.codes.label.tolist()
    check_codes(grown.codes)
    assert grown.label.tolist() == [a, b, c]
    assert moved.pred.tolist() == [[1, a, d - 1], [1, 1, a - 1], [1, d, LABEL_TOP], [1 | FLAG_RUN, 0, 2], [1, 1, 0]]
    assert moved.run_lo.tolist() == [1, d] and moved.run_hi.tolist() == [a - 1, LABEL_TOP]


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
    literals = literals_of(words)
    _, codes, literals = labels.with_labels(predicates_of([]), both_sides(words), literals)
    if crowd:  # what could be there after many inserts
        spaced = [[5 + 2 * i for i in range(len(some))] for some in words]
        bounds = [[key for x in some for key in (x, x + 1)] for some in spaced]
        codes = codes_of(bounds, [[100 + i for i in range(len(some))] for some in bounds])
        literals = literals_of(words, spaced)
    for _ in range(rng.choice([1, 6])):
        words += [[]] * rng.choice([0, 0, 1])
        new = [sorted(rng.sample(WORDS, rng.choice([0, 1, 3, 6]))) for _ in words]
        old_labels = codes.label.tolist()
        try:
            grown = labels.join(codes, literals, both_sides(new), literals_of(new))
            assert set(old_labels) <= set(grown.codes.label.tolist())
        except labels.NoRoomError:
            _, grown = labels.join_respaced(predicates_of([]), codes, literals, both_sides(new), literals_of(new))
        codes, literals = grown.codes, grown.literals
        words = [sorted({*some, *others}) for some, others in zip(words, new)]
        assert [literals.data[i:j].tobytes() for i, j in zip(literals.offset, literals.offset[1:])] == [
            w for some in words for w in some
        ]
        assert literals.first.tolist() == np.cumsum([0, *map(len, words)]).tolist()
        for a in range(len(words)):
            label = literals.label[literals.first[a] : literals.first[a + 1]].tolist()
            assert all(x >= 1 for x in label) and all(y - x >= 2 for x, y in pairwise(label))
            assert codes.bound[codes.first[a] : codes.first[a + 1]].tolist() == [
                key for x in label for key in (x, x + 1)
            ]
        check_codes(codes)
        of = {(a, key): x for a, key, x in spelled(codes)}
        mine = iter(grown.label.tolist())
        for a, some in enumerate(new):
            for word in some:
                label = int(literals.label[literals.first[a] + bisect_left(words[a], word)])
                assert (next(mine), next(mine)) == (of[a, label], of[a, label + 1])


def both_sides(words: list[list[bytes]]) -> Codes:
    """Boundaries of an equality with each word, as lowering makes them."""
    return codes_of([[key for r in range(len(some)) for key in (2 * r + 1, 2 * r + 2)] for some in words])
