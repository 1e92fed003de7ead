"""Heaps of the best of each row, against sorting."""

from random import Random

import numpy as np
import pytest

from colmatch.arrays.frozen import freeze_view
from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import Top
from colmatch.kernels.topk import least_score, offer, sort_best


@kernel
def offer_all(top, row, score, number, repeats, least):
    for i in range(len(row)):
        offer(top.score, top.number, top.fill, row[i], score[i], number[i], repeats, top.id, top.offset, top.data)
    for r in range(len(least)):
        least[r] = least_score(top.score, top.fill, r)


def a_top(rows: int, most: int, ids: list) -> Top:
    texts = [id.encode() for id in ids] if isinstance(ids[0], str) else []
    offset = np.cumsum([0, *map(len, texts)]) if texts else np.empty(0, np.int64)
    return Top(
        np.empty((rows, most)),
        np.empty((rows, most), np.uint32),
        np.zeros(rows, np.int64),
        freeze_view(np.array([] if texts else ids, np.int64)),
        freeze_view(offset.astype(np.int64)),
        freeze_view(np.frombuffer(b"".join(texts), np.uint8)),
        freeze_view(np.empty(0, np.uint64)),
        np.zeros(3, np.int64),
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_best_of_each_row_in_order(seed):
    rng = Random(seed)
    size, rows, most = rng.choice([1, 3, 60]), rng.choice([1, 4]), rng.choice([1, 2, 7, 100])
    texts = ["", "a", "ab", "b", "é", "\uff5e", "😀", "a\0"]
    ids = rng.sample(range(-50, 50), size) if seed % 2 else [rng.choice(texts) + str(i) for i in range(size)]
    repeats = seed % 3 == 0
    offers = []
    for r in range(rows):
        of = [rng.randrange(size) for _ in range(80)] if repeats else rng.sample(range(size), rng.randrange(size + 1))
        offers += [(r, rng.choice([-1.5, 0.0, 0.5, 0.5, 2.0]), n) for n in of]
    rng.shuffle(offers)
    top, least = a_top(rows, most, ids), np.empty(rows)
    row, score, number = zip(*offers, strict=True) if offers else ((), (), ())
    offer_all(top, np.array(row, np.int64), np.array(score, np.float64), np.array(number, np.uint32), repeats, least)
    wanted = []
    for r in range(rows):
        found = {}
        for at, s, n in offers:
            if at == r:
                found[n] = max(s, found.get(n, s))
        order = sorted(found, key=lambda n: (-found[n], ids[n]))[:most]
        wanted.append([(n, found[n]) for n in order])
        assert least[r] == (min(s for _, s in wanted[-1]) if len(order) == most else -np.inf)
    place, count = np.empty(rows + 1, np.int64), int(top.fill.sum())
    out_score, out_number = np.empty(count), np.empty(count, np.uint32)
    sort_best(top, rows, place, out_score, out_number)
    got = [
        list(zip(out_number[place[r] : place[r + 1]].tolist(), out_score[place[r] : place[r + 1]].tolist()))
        for r in range(rows)
    ]
    assert got == wanted
