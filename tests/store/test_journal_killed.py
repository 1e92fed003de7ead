"""``kill -9`` during journalled updates and saves: what was finished is there, and nothing half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from sizes import THOROUGH

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills children that it forks")
TIMES = 200 if THOROUGH else 20

# A process that forks writers, one after the other, kills each, and opens what is left. A writer
# makes updates and saves that follow from a number, and writes that number into a pipe when one is
# finished.
PROGRAM = """
    import json, os, random, signal, sys, time, warnings
    import pyarrow as pa
    import colmatch as cm
    from colmatch.updates import memory_set, policy

    warnings.simplefilter("ignore", DeprecationWarning)  # of forks
    path, times, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    policy.GROWING_MOST, policy.DELETED_LEAST, memory_set.REPLAYED_MOST = 16, 16, 1 << 14
    events = pa.table({"a": list(range(50)), "s": [f"x{i % 7}" for i in range(50)]})

    def change(number, there):
        # What update ``number`` does with the subscriptions that are there: a name, and its argument.
        rng = random.Random(f"{seed} {number}")
        some = rng.choice(["insert", "insert", "replace", "delete", "many", "bad", "release", "restore", "redefine"])
        text = lambda i: f"a = {rng.randrange(60)} AND (s <> 'x{rng.randrange(9)}' OR a > {i % 50}) OR s LIKE '%{i}'"
        if some == "delete" and there:
            return "delete", rng.sample(sorted(there), min(len(there), rng.choice([1, 1, 5, 40])))
        if some == "release":
            return "release", (
                rng.sample(sorted(there), min(len(there), rng.choice([1, 20]))), {i: text(i) for i in rng.sample(range(400), 30)}
            )
        if some == "restore":
            return "restore", {i: text(i) for i in rng.sample(range(400), 20)}
        if some == "redefine":
            return "redefine", text(7)
        if some == "many":
            return "replace", {i: text(i) for i in rng.sample(range(400), 60)}
        if some == "bad":
            return "bad", {1000 + number: "a ="}
        return "replace", {i: text(i) for i in rng.sample(range(400), rng.choice([1, 1, 1, 7]))}

    def apply(name, argument, there):
        if name == "delete":
            for id in argument:
                del there[id]
        elif name == "replace":
            there.update(argument)
        elif name == "release":
            for id in argument[0]:
                del there[id]
            there.update(argument[1])
        elif name == "restore":
            there.clear()
            there.update(argument)
        elif name == "redefine":
            there[500] = argument

    def change_in(matcher, name, argument):
        if name == "delete":
            matcher.delete(argument)
        elif name == "release":
            matcher.update(delete=argument[0], upsert=argument[1])
        elif name == "restore":
            draft = matcher.snapshot()
            draft.update(delete=draft.ids, insert=argument)
            matcher.restore(draft)
        elif name == "redefine":
            matcher.update(define={"same": argument}, upsert={500: "same"})
        else:
            matcher.upsert(argument, errors="collect")

    def write(pipe, number, there):
        matcher = cm.Matcher.open(path, journal=True)
        rng = random.Random(os.getpid())
        while True:
            number += 1
            name, argument = change(number, there)
            change_in(matcher, name, argument)
            os.write(pipe, number.to_bytes(4, "little"))
            apply(name, argument, there)
            if rng.random() < 0.3:
                matcher.save(path)

    def expected(there):
        matcher = cm.Matcher.build(there, {"a": "int64", "s": "string"}, index="scan")
        return sorted(map(tuple, map(dict.values, matcher.match(events).to_pylist())))

    def warm_up():
        # So that a child need not compile first, nor read what is compiled.
        with cm.Matcher.build({}, {"a": "int64", "s": "string"}) as matcher:
            there = {}
            for number in range(60):
                name, argument = change(number, there)
                change_in(matcher, name, argument)
                apply(name, argument, there)
            matcher.match(events)
            matcher.compact()

    warm_up()
    cm.Matcher.build({}, {"a": "int64", "s": "string"}).save(path)
    there, number, told, unfinished, rejected, loose = {}, 0, 0, 0, [], 0
    rng = random.Random(seed)
    for time_ in range(times):
        read, pipe = os.pipe()
        child = os.fork()
        if not child:
            try:
                write(pipe, number, dict(there))
            finally:
                os._exit(3)
        os.close(pipe)
        begun = os.read(read, 4) if time_ % 4 else b""  # or while it opens
        time.sleep(rng.random() * 0.08)
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        done = begun
        while more := os.read(read, 1 << 16):
            done += more
        os.close(read)
        last = int.from_bytes(done[-4:], "little") if done else number
        with cm.Matcher.open(path, journal=True) as matcher:
            assert matcher.version in (last, last + 1), (matcher.version, last)
            unfinished += matcher.version > last
            while number < matcher.version:
                number += 1
                name, argument = change(number, there)
                apply(name, argument, there)
                rejected += argument if name == "bad" else []
            assert sorted(matcher.ids.to_pylist()) == sorted(there)
            assert [r.id for r in matcher.rejected] == rejected
            assert sorted(map(tuple, map(dict.values, matcher.match(events).to_pylist()))) == expected(there)
        loose += any(name.endswith("-tmp") for name in os.listdir(os.path.dirname(path)))
    print(json.dumps({"kills": times, "updates": number, "unfinished": unfinished, "during a save": loose}))
"""


def test_what_was_finished_is_there(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "index"), str(TIMES), "7"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    print(found)
    assert found["kills"] == TIMES and found["updates"] > TIMES
