"""The index of circles gives what asking every circle gives."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import colmatch as cm
from colmatch.arrays.frozen import freeze_view
from colmatch.events.special.circles import circles_of, places_in
from colmatch.kernels.special import EARTH

Floats = NDArray[np.float64]


def within(latitude: float, longitude: float, lat: float, lon: float, radius: float) -> bool:
    """The haversine, in plain Python."""
    if not (math.isfinite(latitude) and math.isfinite(longitude)):
        return False
    up, across = math.sin(math.radians(latitude - lat) / 2), math.sin(math.radians(longitude - lon) / 2)
    chord = up * up + math.cos(math.radians(latitude)) * math.cos(math.radians(lat)) * across * across
    return chord >= 0 and 2 * EARTH * math.asin(math.sqrt(min(chord, 1))) <= radius


def some_places(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Places all over the Earth, many of them near poles and the antimeridian, some beyond."""
    latitude, longitude = rng.uniform(-90, 90, count), rng.uniform(-180, 180, count)
    which = rng.integers(0, 8, count)
    latitude[which == 0] = rng.choice([-90.0, 90.0, 0.0, 89.9999, -89.99, 100.0, -135.0, 270.0], (which == 0).sum())
    longitude[which == 1] = rng.choice([-180.0, 180.0, 179.9999, -179.99, 360.0, 0.0, 541.0, -1e5], (which == 1).sum())
    longitude[which == 2] += 360 * rng.integers(-3, 4, (which == 2).sum())
    near = which == 3
    latitude[near], longitude[near] = 48 + rng.normal(0, 0.1, near.sum()), 16 + rng.normal(0, 0.1, near.sum())
    longitude[which == 4] = rng.choice([1e7, -3e9, 1e15], (which == 4).sum())
    return latitude, longitude


def pairs_of(row: NDArray[np.int64], circle: NDArray[np.int64]) -> set[tuple[int, int]]:
    found = list(zip(row.tolist(), circle.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert row.tolist() == sorted(row.tolist())
    return set(found)


@pytest.mark.parametrize("seed", range(6))
def test_places_are_in_the_circles_that_contain_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lat, lon = some_places(rng, 400)
    radius = rng.choice([0.0, -1.0, 0.001, 1.0, 12.0, 300.0, 2000.0, 9000.0, 15000.0, 20020.0, 30000.0, 1e300], 400)
    radius = np.where(radius > 0, radius * rng.uniform(0.9, 1.0, 400), radius)
    latitude, longitude = some_places(rng, 300)
    same = rng.integers(0, 400, 60)  # places that are centers, for radius 0
    latitude[:60], longitude[:60] = lat[same], lon[same]
    latitude[60], longitude[61], latitude[62] = math.nan, math.nan, math.inf
    index = circles_of(lat, lon, radius)
    found = pairs_of(*places_in(index, latitude, longitude))
    expected = {
        (r, c) for r in range(300) for c in range(400) if within(latitude[r], longitude[r], lat[c], lon[c], radius[c])
    }
    far = {(r, c) for r, c in found ^ expected if abs(longitude[r]) > 1e6 or abs(lon[c]) > 1e6}  # sines of 1e15
    assert found - far == expected - far and len(expected) > 5000
    every = index._replace(levels=index.levels[:0], anywhere=freeze_view(np.arange(400)))
    assert found == pairs_of(*places_in(every, latitude, longitude))


def test_few_circles_are_looked_at() -> None:
    """A circle is in nine cells at most, also at a pole and across the antimeridian."""
    rng = np.random.default_rng(3)
    lat, lon = rng.uniform(-89, 89, 20_000), rng.uniform(-180, 180, 20_000)
    index = circles_of(lat, lon, rng.uniform(0.1, 500, 20_000))
    assert len(index.member) <= 9 * 20_000 and not len(index.anywhere)
    size = np.diff(index.first)
    assert size.mean() < 20
    assert len(circles_of(np.array([89.999]), np.array([0.0]), np.array([50.0])).member) <= 9


def test_no_circles() -> None:
    none = np.empty(0)
    assert len(places_in(circles_of(none, none, none), np.zeros(3), np.zeros(3))[0]) == 0


def test_an_insert_builds_no_index_of_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    def counted(latitude: Floats, *others: Floats) -> object:
        built.append(len(latitude))
        return circles_of(latitude, *others)

    monkeypatch.setattr("colmatch.events.special.lists.circles_of", counted)
    schema = {"lat": "float64", "lon": "float64", "a": "int64"}
    texts = {id: f"geo_within_radius(lat, lon, {id % 90}.5, {id // 90}, 100)" for id in range(900)}
    with cm.Matcher.build(texts, schema) as matcher:
        event = {"lat": [30.5], "lon": [3.0], "a": [1]}
        first = matcher.match_lists(pa.table(event)).to_pylist()[0]
        assert 300 in first
        for id in range(900, 905):
            matcher.insert({id: f"geo_within_radius(lat, lon, 30, 3, {id}) AND a = 1"})
            assert sorted(matcher.match_lists(pa.table(event)).to_pylist()[0]) == sorted([*first, *range(900, id + 1)])
    assert built[0] == 900 and max(built[1:]) <= 5
