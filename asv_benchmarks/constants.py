"""What a constant of its own in each expression costs, beside the same test of a plain column.

    python asv_benchmarks/constants.py --subscriptions 5000

Every form is a matcher. Its expressions differ in their constants, and few of them match an event.
All forms are timed in turns on one thread, and the medians are compared with that of the
plain column: for batches of 8,192 events, and for single events. Networks are compared with ranges
of a number, and a part of a text with ``contains``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import ipaddress
import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions

import colmatch as cm

ROWS = 8192
MOST = 1_000_000
DAY = dt.date(2024, 1, 1)
# form -> the form that it is compared with, and its text for a constant c and a result k
FORMS: dict[str, tuple[str, Callable[[int, int], str]]] = {
    "i > k": ("", lambda c, k: f"i > {k}"),
    "i + c > k": ("i > k", lambda c, k: f"i + {c} > {k + c}"),
    "c - i < k": ("i > k", lambda c, k: f"{c} - i < {c - k}"),
    "abs(i - k) < 100": ("i > k", lambda c, k: f"abs(i - {k}) < 100"),
    "i * 3 + c > k": ("i > k", lambda c, k: f"i * 3 + {c} > {3 * k + c}"),
    "x > k": ("", lambda c, k: f"x > {k}D"),
    "x * c > k": ("x > k", lambda c, k: f"x * {c}.5D > {k * (c + 0.5)}D"),
    "x + c > k": ("x > k", lambda c, k: f"x + {c}.25D > {k + c + 0.25}D"),
    "datediff(d, c) = 7": ("i > k", lambda c, k: f"datediff(d, DATE '{DAY + dt.timedelta(k % 20_000)}') = 7"),
    "contains(s, c)": ("", lambda c, k: f"contains(s, 'w{c:05}')"),
    "instr(s, c) > 0": ("contains(s, c)", lambda c, k: f"instr(s, 'w{c:05}') > 0"),
    "i % c = k": ("i > k", lambda c, k: f"i % {c + MOST} = {k}"),
    "i & c = c": ("i > k", lambda c, k: f"i & {c * 7919 % MOST} = {c * 7919 % MOST}"),
    "x % c > k": ("i > k", lambda c, k: f"x % {c + MOST}D > {k}D"),
    "(i + j) % c = k": ("i > k", lambda c, k: f"(i + j) % {c + 2 * MOST} = {k}"),
}


def _rules(form: str, count: int) -> dict[int, str]:
    rng = random.Random(7)
    text = FORMS[form][1]
    return {id: text(id + 1, MOST - rng.randrange(400)) for id in range(count)}


def _events() -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "i": rng.integers(0, MOST, ROWS),
            "j": rng.integers(0, MOST, ROWS),
            "x": rng.random(ROWS) * MOST,
            "d": pa.array(rng.integers(19_000, 40_000, ROWS).astype(np.int32)).cast(pa.date32()),
            "s": [f"a text with w{n:05} in it" for n in rng.integers(0, 200_000, ROWS)],
        }
    )


def _networks(count: int) -> tuple[dict[int, str], dict[int, str], pa.Table]:
    """Returns networks, the same as ranges of a number, and events for both."""
    rng = random.Random(9)
    some = [
        ipaddress.ip_network((rng.getrandbits(32), rng.choice([20, 24, 24, 28])), strict=False) for _ in range(count)
    ]
    texts = {id: f"cidr_contains('{one}', ip)" for id, one in enumerate(some)}
    ranges = {id: f"n BETWEEN {int(one[0])} AND {int(one[-1])}" for id, one in enumerate(some)}
    inside = [
        int(rng.choice(some)[0]) + rng.randrange(16) if rng.random() < 0.5 else rng.getrandbits(32) for _ in range(ROWS)
    ]
    return texts, ranges, pa.table({"ip": [str(ipaddress.ip_address(n)) for n in inside], "n": inside})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    one_thread()
    print(machine(), versions("colmatch", "pyarrow"), sep="\n")
    events, options = _events(), cm.Options(threads=1)
    matchers = {
        form: (cm.Matcher.build(_rules(form, given.subscriptions), events.schema, options=options), events)
        for form in FORMS
    }
    compared = {form: plain for form, (plain, _) in FORMS.items()}
    networks, ranges, addresses = _networks(2 * given.subscriptions)
    for name, rules, plain in (("range of a number", ranges, ""), ("network", networks, "range of a number")):
        matchers[name] = cm.Matcher.build(rules, addresses.schema, options=options), addresses
        compared[name] = plain
    found = [matchers[name][0].match(addresses).num_rows for name in ("network", "range of a number")]
    assert found[0] == found[1]
    single = {name: [table.slice(row, 1).to_pylist()[0] for row in range(64)] for name, (_, table) in matchers.items()}
    batches = medians({name: lambda m=m, t=t: m.match(t) for name, (m, t) in matchers.items()}, repeat=given.repeat)
    ones = medians(
        {
            name: lambda m=m, name=name: [m.match_one(event) for event in single[name]]
            for name, (m, _) in matchers.items()
        },
        repeat=given.repeat,
    )
    print(f"{'':20} {'us an event':>12} {'ratio':>7} {'one event':>12} {'ratio':>7} {'matches':>9}")
    for name, (matcher, table) in matchers.items():
        plain = compared[name] or name
        batch, one = batches[name] / ROWS * 1e6, ones[name] / 64 * 1e6
        matches = matcher.match(table).num_rows / ROWS
        print(
            f"{name:20} {batch:12.2f} {batches[name] / batches[plain]:7.2f} {one:12.1f} {ones[name] / ones[plain]:7.2f} {matches:9.2f}"
        )


if __name__ == "__main__":
    main()
