"""Builds from columns of texts: by kernels, and one by one, in turns within one run.

``nested`` are texts with ANDs, ORs and NOTs in each other, each of a form of its own. ``one form``
are texts that differ in their literals alone. In ``nested, a tenth bad``, every tenth text has an
unknown column, a literal of another type, a date that is none, or a parenthesis too many; these are
collected. The index is ``bitslice``, whose build is a part of the time.

    python -m benchmarks.bench_texts [TEXTS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

import colmatch as cm
from benchmarks.measure import medians
from benchmarks.workloads import WIDE, nested_texts
from colmatch.kernels._jit import forbid_interpreting
from colmatch.subscriptions import intake

KERNELS, ALONE = "by kernels", "one by one"
REPEAT = 3


def one_form(n: int) -> list[str]:
    return [f"a1 > {i % 90} AND a2 = {i % 83} AND a3 BETWEEN {i % 50} AND 90 OR a4 <> {i}" for i in range(n)]


def spoilt(n: int) -> list[str]:
    rng = Random(6)
    ways: list[Callable[[str], str]] = [
        lambda text: text.replace("a", "b", 1),
        lambda text: f"{text} AND a5 = 'x'",
        lambda text: f"{text} AND day = '2013-02-{rng.randrange(30, 99)}'",
        lambda text: f"{text})",
    ]
    return [ways[i // 10 % 4](text) if i % 10 == 0 else text for i, text in enumerate(nested_texts(n))]


SHAPES = {"nested": nested_texts, "one form": one_form, "nested, a tenth bad": spoilt}


def measured(shape: str, n: int, alone: int) -> dict[str, float]:
    """Microseconds a text. One by one, ``alone`` of the texts are read."""
    texts = pa.array(SHAPES[shape](n))
    schema = WIDE | {"day": "date32[day]"}

    def build(size: int, fewest: int) -> None:
        was, intake.FEWEST_TEXTS = intake.FEWEST_TEXTS, fewest
        try:
            table = pa.table({"id": pa.array(range(size)), "expression": texts.slice(0, size)})
            cm.Matcher.build(table, schema, "bitslice", errors="collect")
        finally:
            intake.FEWEST_TEXTS = was

    with forbid_interpreting():
        build(2000, 1)
        build(2000, 1 << 60)
        ways = {KERNELS: lambda: build(n, 1), ALONE: lambda: build(alone, 1 << 60)}
        taken = medians(ways, REPEAT)
    return {KERNELS: 1e6 * taken[KERNELS] / n, ALONE: 1e6 * taken[ALONE] / alone}


class BuildFromTexts:
    """Microseconds a text, by kernels and one by one."""

    params = (list(SHAPES), [KERNELS, ALONE])
    param_names = ("shape", "way")
    timeout = 1200

    def setup_cache(self) -> dict[tuple[str, str], float]:
        return {(shape, way): us for shape in SHAPES for way, us in measured(shape, 200_000, 10_000).items()}

    setup_cache.timeout = 1200  # type: ignore[attr-defined]

    def track_us_a_text(self, taken: dict[tuple[str, str], float], shape: str, way: str) -> float:
        return taken[shape, way]

    track_us_a_text.unit = "us"  # type: ignore[attr-defined]


def main(arguments: list[Any]) -> None:
    n = int(arguments[0]) if arguments else 1_000_000
    for shape in SHAPES:
        found = measured(shape, n, min(n, 20_000))
        ratio = found[ALONE] / found[KERNELS]
        print(f"{shape:22s}{found[KERNELS]:8.2f} us a text by kernels {found[ALONE]:8.1f} one by one {ratio:8.1f} x")


if __name__ == "__main__":
    main(sys.argv[1:])
