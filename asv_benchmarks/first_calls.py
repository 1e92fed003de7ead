"""The first calls on a machine without compiled kernels: seconds, and the lines that they print.

    python asv_benchmarks/first_calls.py

A process with an empty cache folder makes the calls one after the other. A second process makes
them again with the kernels that the first one has kept. Seconds are those of the clock. The package
must have no machine code, as in a clone (``ls kernels/*.bundle``).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from random import Random
from typing import Any

COLUMNS = [f"a{i}" for i in range(20)]


def calls() -> None:
    """Makes the calls in this process, and prints a line of JSON for each."""
    import pyarrow as pa

    began = time.perf_counter()
    import colmatch as cm

    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("colmatch").addHandler(handler)
    random, imported = Random(0), time.perf_counter() - began

    def rules(count: int) -> dict[int, str]:
        return {
            i: " AND ".join(
                f"{random.choice(COLUMNS)} {random.choice('<>=')} {random.randrange(100)}" for _ in range(4)
            )
            for i in range(count)
        }

    def events(count: int) -> Any:
        return pa.table({name: [random.randrange(100) for _ in range(count)] for name in COLUMNS})

    def report(name: str, call: Callable[[], Any]) -> Any:
        nonlocal began
        result = call()
        print(json.dumps([name, time.perf_counter() - began, said]), flush=True)
        said.clear()
        began = time.perf_counter()
        return result

    schema = dict.fromkeys(COLUMNS, "int64") | {"s": "string"}
    few, many, small, large = rules(10), rules(5000), events(5), events(100_000)
    texts = {i: f"s LIKE '%{random.randrange(10**6)}%'" for i in range(5000)}
    names = pa.table({"s": [str(random.randrange(10**9)) for _ in range(20_000)]})
    began = time.perf_counter() - imported
    matcher = report("import, build 10 rules", lambda: cm.Matcher.build(few, schema))
    report("match 5 events", lambda: matcher.match(small))
    report("match_one", lambda: matcher.match_one(small.to_pylist()[0]))
    matcher = report("build 5,000 rules", lambda: cm.Matcher.build(many, schema))
    report("match 100,000 events", lambda: matcher.match(large))
    report("insert a rule, and match", lambda: (matcher.insert({-1: "a0 > 5"}), matcher.match(large)))
    report("match_topk, 5 best", lambda: matcher.match_topk(large, 5))
    patterns = report("build 5,000 LIKE '%x%'", lambda: cm.Matcher.build(texts, schema))
    report("match 20,000 texts", lambda: patterns.match(names))


def measure() -> None:
    """Prints the table of two processes."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COLMATCH_CACHE_DIR": folder, "COLMATCH_KERNELS": "auto"}
        command = [sys.executable, __file__, "--here"]
        runs = [
            [
                json.loads(line)
                for line in subprocess.run(command, env=environment, check=True, stdout=-1).stdout.splitlines()
            ]
            for _ in range(2)
        ]
    print("| first call | seconds | line | in a second process |\n|---|---|---|---|")
    for (name, seconds, said), (_, again, _) in zip(*runs, strict=True):
        print(f"| {name} | {seconds:.1f} | {'; '.join(said) or '-'} | {again:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--here", action="store_true", help="make the calls in this process, and print JSON")
    calls() if parser.parse_args().here else measure()
