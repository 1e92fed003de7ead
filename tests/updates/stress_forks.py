"""Children are forked beside threads at work, and must be able to do all that their parent can.

    python tests/updates/stress_forks.py --forks 2000

Threads match, update, merge, save and write a journal, with each kind of index in memory, with
pages, and with text patterns. Another thread compiles kernels, loads them from the disk and imports
a module. Each child does some of that with its copy, and must see one version, as ``stress.py``
says. A child that takes more than ``SECONDS`` hangs: it is ended, and counted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this file is a program
from forking import HANGS, in_child
from stress import SCHEMA, SHARE, SMALL, Updating, a_text, events, going_on, wrong

import colmatch as cm
from colmatch.arrays.frozen import freeze_view
from colmatch.kernels import _forks, _jit
from colmatch.kernels.scores import group_conjunctions
from colmatch.matching import threads as workers_threads
from colmatch.updates import policy

SECONDS = 180.0
ROWS = 60
ALWAYS = 1 << 30
PAUSE = 0.01  # seconds that each thread leaves to others
LEAF = "colmatch.bench.flights"  # a module that nothing else here imports
PATTERNS = ["s LIKE '%{0}' AND d < 2", "s RLIKE 'v+{0}|w' AND d < 2", "s LIKE 'v{0}%' AND x < -1"]


@dataclass
class Outcome:
    """The outcome of a run: numbers of actions, and everything that was wrong.

    Attributes
    ----------
    done : how often each action was done in children
    beside : how often by threads of the parent meanwhile
    """

    forks: int = 0
    hangs: int = 0
    done: Counter[str] = field(default_factory=Counter)
    beside: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Parent:
    """A matcher of each kind, and actions on them."""

    def __init__(self, folder: str, kinds: list[str], seed: int) -> None:
        self.folder, self.rng = folder, Random(seed)
        self.tables = [events(ROWS, i) for i in range(3)]
        options = cm.Options(threads=2, batch_rows=32)
        base = {-1 - i: f"({a_text(Random(i))}) AND x = 99" for i in range(100)}
        base |= {-1000 - i: PATTERNS[i % 3].format(i) for i in range(30)}
        self.matchers: dict[str, cm.Matcher] = {}
        for kind in kinds:
            index: Any = cm.index("pbtree", path=f"{folder}/pages") if kind == "pages" else kind
            # a batch of events sees one state of the pages
            own = cm.Options(threads=2) if kind == "pages" else options
            self.matchers[kind] = cm.Matcher.build(base, SCHEMA, index=index, options=own)
        journalled = self.matchers[kinds[0]]
        journalled.save(f"{folder}/journalled")
        self.matchers["journal"] = cm.Matcher.open(f"{folder}/journalled", journal=True)
        self.updating = {kind: Updating(matcher, 0, seed) for kind, matcher in self.matchers.items()}
        for kind, updating in self.updating.items():  # compiles most kernels that are needed
            updating.one()
            self.look(kind)

    def look(self, kind: str) -> str | None:
        """Matches. Says what is wrong."""
        updating, table = self.updating[kind], self.rng.choice(self.tables)
        least = updating.done
        found = updating.matcher.match(table)
        event, id = (found[name].to_numpy() for name in found.column_names)
        most = ALWAYS if kind == "pages" and _forks.is_child() else updating.begun  # the parent changes on
        what = wrong(event[id >= 0], id[id >= 0], len(table), [(least, most)])
        return None if what is None else f"{kind}: {what}"

    def match(self) -> str | None:
        return self.look(self.rng.choice(list(self.matchers)))

    def update(self) -> None:
        self.updating[self.rng.choice(list(self.matchers))].one()

    def compact(self) -> None:
        self.matchers[self.rng.choice(list(self.matchers))].compact()

    def save(self) -> None:
        kind = self.rng.choice([kind for kind in self.matchers if kind != "journal"])
        self.matchers[kind].save(f"{self.folder}/saved-{os.getpid()}")
        self.matchers["journal"].save(f"{self.folder}/journalled")

    def build(self) -> None:
        """Parses, which takes the limit of the stack, and makes sets of expressions."""
        matcher = cm.Matcher.build({1: PATTERNS[1].format(7), 2: "x + 1 = 2"}, SCHEMA)
        assert len(matcher.match(self.tables[0]))

    def compile(self) -> None:
        """Compiles a new kernel, and loads one that is on disk."""

        @_jit.kernel
        def double(values):  # type: ignore[no-untyped-def]
            return values[0] * 2

        assert double(np.array([21])) == 42

    def load(self) -> None:
        again = _jit.kernel(getattr(group_conjunctions, "py_func", group_conjunctions))
        first, members = np.zeros(4, np.int64), np.zeros(4, np.int64)
        again(freeze_view(np.array([0, 0, 1, 2], np.uint32)), first, members)
        assert first.tolist() == [0, 2, 3, 4]

    def imports(self) -> None:
        sys.modules.pop(LEAF, None)
        importlib.import_module(LEAF)


def child(parent: Parent, seed: int) -> str:
    """Does some actions in a child. Returns what was done, or what is wrong."""
    rng = parent.rng = Random(seed)
    own = {
        "build": parent.build,
        "compile": parent.compile,
        "load": parent.load,
        "import": lambda: importlib.import_module(LEAF),
    }
    kinds = rng.sample(list(parent.matchers), 2)
    done = []
    for kind in [*kinds, *({"pages", "journal"} & parent.matchers.keys() if rng.random() < 0.3 else ())]:
        what = parent.look(kind)
        if what is not None:
            return what
        matcher = parent.matchers[kind]
        done.append(f"match {kind}")
        try:
            matcher.insert({1 << 60: "x = 1"})
            matcher.delete([1 << 60])
            if rng.random() < 0.2:
                matcher.compact()
        except cm.OptionError as error:
            if kind not in ("pages", "journal") or not ("parent" in str(error) or "forked" in str(error)):
                raise
        done.append(f"update {kind}")
        if rng.random() < 0.2:
            path = Path(f"{parent.folder}/child-{os.getpid()}")
            matcher.save(path)
            path.unlink()
            done.append(f"save {kind}")
    what = rng.choice(list(own))
    own[what]()
    return "done " + ",".join([*done, what])


def stress(forks: int, kinds: list[str] | None = None, seed: int = 0, told: Callable[[Outcome], None] = id) -> Outcome:
    """Forks so many children, one after the other."""
    outcome = Outcome()
    kinds = [*cm.index_kinds(), "auto", "pages"] if kinds is None else kinds
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(workers_threads, "SHARE_ROWS", SHARE),
        patch.multiple(policy, **SMALL),
    ):
        parent = Parent(folder, kinds, seed)
        lock = threading.Lock()

        def counted(name: str) -> Callable[[], None]:
            def act() -> None:
                time.sleep(PAUSE)
                what = getattr(parent, name)()
                with lock:
                    outcome.beside[name] += 1
                    outcome.wrong += [what] if what else []

            return act

        def both(*names: str) -> Callable[[], None]:
            actions = [counted(name) for name in names]

            def act() -> None:
                for action in actions:
                    action()

            return act

        work = [both("match"), both("match"), both("update"), both("compact", "save"), both("build")]
        work.append(both("compile", "load", "load", "imports"))
        with going_on(work, outcome.wrong):
            while outcome.forks < forks and not outcome.wrong:
                time.sleep(parent.rng.random() * 0.01)
                said = in_child(lambda: child(parent, seed + outcome.forks), SECONDS)
                outcome.forks += 1
                if said == HANGS:
                    outcome.hangs += 1
                elif said.startswith("'done "):
                    outcome.done.update(said[6:-1].split(","))
                else:
                    outcome.wrong.append(said)
                told(outcome)
        for matcher in parent.matchers.values():
            matcher.close()
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forks", type=int, default=2000)
    parser.add_argument("--kinds", nargs="+", help="instead of all, auto and pages")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()

    def told(outcome: Outcome) -> None:
        if outcome.forks % 100 == 0:
            print(f"{time.monotonic() - began:.0f} s: {outcome.forks:,} forks, {outcome.hangs} hang", flush=True)

    outcome = stress(given.forks, given.kinds, given.seed, told)
    print(f"{outcome.forks:,} forks, {outcome.hangs} hang, {len(outcome.wrong)} wrong")
    print("in children:", dict(sorted(outcome.done.items())))
    print("beside them:", dict(sorted(outcome.beside.items())))
    print(*outcome.wrong[:5], sep="\n")
    raise SystemExit(outcome.hangs > 0 or len(outcome.wrong) > 0)


if __name__ == "__main__":
    main()
