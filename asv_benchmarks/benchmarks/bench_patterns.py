"""10,000 text patterns of one operator on 10,000 distinct strings of 20 to 100 bytes.

Beside it, each pattern alone with Arrow's functions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import medians, one_thread, seconds
from colmatch.given.schema import Family, Type
from colmatch.text.pattern_index import BasePatterns, Pattern, PatternIndex

COUNT = 10_000
ALONE = 100  # patterns that are run one by one, for the ratio
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Draw = Callable[[random.Random, str], Pattern]  # from a random generator and one of the strings


def _word(rng: random.Random, size: int) -> str:
    return "".join(rng.choices(LETTERS, k=size))


def _part(rng: random.Random, text: str, size: int) -> str:
    start = rng.randrange(len(text) - size)
    return text[start : start + size]


DRAWS: dict[str, Draw] = {
    "contains, none there": lambda rng, text: ("contains", _word(rng, 10)),
    "contains, one string": lambda rng, text: ("contains", _part(rng, text, 8)),
    "contains, many strings": lambda rng, text: ("contains", _word(rng, 3)),
    "endswith, none there": lambda rng, text: ("endswith", _word(rng, 10)),
    "endswith, one string": lambda rng, text: ("endswith", text[-8:]),
    "LIKE %a%b%": lambda rng, text: (
        "like",
        f"%{_part(rng, text[: len(text) // 2], 4)}%{_part(rng, text[len(text) // 2 :], 6)}%",
    ),
    "LIKE %a%b%, short": lambda rng, text: ("like", f"%{_word(rng, 2)}%{_word(rng, 3)}%"),
    "LIKE a_b%": lambda rng, text: ("like", f"{text[:4]}_{text[5:9]}%"),
    "ILIKE %a%b%": lambda rng, text: (
        "ilike",
        f"%{_part(rng, text[: len(text) // 2], 4).upper()}%{_part(rng, text[len(text) // 2 :], 6)}%",
    ),
    "RLIKE, with a literal": lambda rng, text: (
        "rlike",
        f"{_part(rng, text, 6)}[a-m]+({_word(rng, 1)}|{_word(rng, 2)})?",
    ),
    "RLIKE, any case": lambda rng, text: ("rlike", f"(?i){_part(rng, text, 8).upper()}"),
    "RLIKE, without a literal": lambda rng, text: ("rlike", f"[0-9]{{3}}[{_word(rng, 3)}]+[0-9]"),
}
ARROW: dict[str, Callable[..., pa.Array]] = {
    "contains": pc.match_substring,
    "endswith": pc.ends_with,
    "like": pc.match_like,
    "ilike": partial(pc.match_like, ignore_case=True),
    "rlike": pc.match_substring_regex,
}
TENTH = ("RLIKE, without a literal",)  # of the count: nothing but a set helps


def draw(name: str) -> tuple[pa.Array, list[Pattern]]:
    """The strings, and the patterns, all different."""
    rng = random.Random(1)
    strings = [_word(rng, rng.randint(20, 100)) for _ in range(COUNT)]
    count = COUNT // 10 if name in TENTH else COUNT
    patterns = dict.fromkeys(DRAWS[name](rng, text) for text in strings[:count])
    return pa.array(strings, pa.large_string()), list(patterns)


class Patterns:
    params = tuple(DRAWS)
    param_names = ("patterns",)
    timeout = 300

    def setup_cache(self) -> dict[str, dict[str, float]]:
        one_thread()
        type = Type(Family.STRING, name="string")
        taken = {}
        for name in DRAWS:
            strings, patterns = draw(name)
            build = seconds(lambda: PatternIndex([BasePatterns(patterns, range(len(patterns)), type)]))  # noqa: B023
            index = PatternIndex([BasePatterns(patterns, range(len(patterns)), type)])
            truths = [partial(ARROW[op], pattern=operand) for op, operand in patterns[:ALONE]]
            pairs = len(index.matches(strings)[0])
            times = medians(
                {"index": lambda: index.matches(strings), "alone": lambda: [truth(strings) for truth in truths]},  # noqa: B023
                repeat=5,
                budget=10.0,
            )
            alone = times["alone"] / len(truths) * len(patterns)
            taken[name] = {"build": build, "seconds": times["index"], "ratio": times["index"] / alone, "pairs": pairs}
        return taken

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def track_seconds(self, taken: dict[str, dict[str, float]], patterns: str) -> float:
        """For all patterns on all strings."""
        return taken[patterns]["seconds"]

    def track_ratio_to_one_by_one(self, taken: dict[str, dict[str, float]], patterns: str) -> float:
        """Time of the index as a part of that of Arrow's functions.

        These run one pattern after the other: 100 are run, and the rest is reckoned.
        """
        return round(taken[patterns]["ratio"], 6)

    def track_build(self, taken: dict[str, dict[str, float]], patterns: str) -> float:
        return taken[patterns]["build"]

    def track_pairs(self, taken: dict[str, dict[str, float]], patterns: str) -> float:
        """Pairs of a string and a pattern that is true of it."""
        return taken[patterns]["pairs"]

    track_seconds.unit = track_build.unit = "seconds"  # type: ignore[attr-defined]
    track_ratio_to_one_by_one.unit = "times"  # type: ignore[attr-defined]
    track_pairs.unit = "pairs"  # type: ignore[attr-defined]
