"""Decimals that are rounded or cast near the ends of their type, against Python's decimals."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal, localcontext
from random import Random

import pyarrow as pa
import pytest

import colmatch as cm

D = Decimal
TYPES = [(1, 1), (2, 1), (4, 2), (9, 9), (18, 2), (19, 18), (37, 1), (38, 2), (38, 37), (38, 38), (38, 0)]


def drawn(precision: int, scale: int) -> list[Decimal]:
    rng, most = Random(precision * 100 + scale), 10**precision - 1
    whole = [
        0,
        1,
        most,
        most - 1,
        most // 2,
        5 * 10**scale // 10,
        10**scale,
        *(rng.randint(0, most) for _ in range(20)),
    ]
    return [D(sign * min(one, most)).scaleb(-scale) for one in whole for sign in (1, -1)]


@pytest.mark.parametrize(("precision", "scale"), TYPES)
@pytest.mark.parametrize("ansi", [False, True])
def test_rounding(precision: int, scale: int, ansi: bool) -> None:
    with localcontext(prec=100):
        values = drawn(precision, scale)
        modes = {"ceil(d)": ROUND_CEILING, "floor(d)": ROUND_FLOOR, "round(d)": ROUND_HALF_UP}
        meant = {
            (text, i): value.quantize(D(1), mode) for text, mode in modes.items() for i, value in enumerate(values)
        }
    rules = {
        f"{text} {i}": f"{text} = {result:f}" for (text, i), result in meant.items() if len(f"{abs(result):f}") < 39
    }
    options = cm.Options(ansi=ansi)
    matcher = cm.Matcher.build(
        rules | {"null": "ceil(d) IS NULL OR floor(d) IS NULL"}, {"d": f"decimal({precision},{scale})"}, options=options
    )
    found = matcher.match_lists(pa.table({"d": pa.array(values, pa.decimal128(precision, scale))})).to_pylist()
    for row, ids in enumerate(found):
        wanted = {f"{text} {i}" for (text, i), result in meant.items() if result == meant[text, row]}
        assert set(ids) == wanted & set(rules), values[row]


@pytest.mark.parametrize(("precision", "scale"), TYPES)
@pytest.mark.parametrize(("type", "bits"), [("bigint", 64), ("int", 32)])
def test_casts_to_whole_numbers(precision: int, scale: int, type: str, bits: int) -> None:
    with localcontext(prec=100):
        values = drawn(precision, scale)
        whole = [int(value.quantize(D(1), ROUND_DOWN)) for value in values]
    wrapped = [(one + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for one in whole]
    rules = {i: f"CAST(d AS {type}) = {one}" for i, one in enumerate(wrapped)}
    schema = {"d": f"decimal({precision},{scale})"}
    events = pa.table({"d": pa.array(values, pa.decimal128(precision, scale))})
    found = cm.Matcher.build(rules, schema).match_lists(events).to_pylist()
    assert all(row in ids for row, ids in enumerate(found))
    strict = cm.Matcher.build(rules, schema, options=cm.Options(ansi=True))
    fits = [row for row, one in enumerate(whole) if -(2 ** (bits - 1)) <= one < 2 ** (bits - 1)]
    assert all(row in ids for row, ids in zip(fits, strict.match_lists(events.take(fits)).to_pylist(), strict=True))
    for row in set(range(len(values))) - set(fits):
        with pytest.raises(cm.EventError, match="does not fit"):
            strict.match(events.slice(row, 1))
