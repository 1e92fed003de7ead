"""The experiments of the papers, run again for every kind of index: a CSV table each.

    python asv_benchmarks/documents.py 003-figure-7b 000-beta --cpu
    python asv_benchmarks/documents.py 003 --subscriptions 1000000 --results asv_benchmarks/results
    python asv_benchmarks/documents.py 003-figure-6a --plot asv_benchmarks/pictures/documents.svg

Names begin with the number of a paper: 000 for BE*-Tree, 002 for OpIndex, 003 for PS-Tree.
``experiments/catalogue.py`` has an entry for each: workload, parameters, kinds, settings. A table
has a row for each kind at each point, with these columns:

- the parameters of the point, under their names;
- ``us``, microseconds an event on one thread, the median of rounds in which kinds take turns;
- ``ratio`` to the kind in ``ratio_to``, from the same rounds: the figure to compare on a busy
  machine;
- ``build_s``, seconds, measured once, and ``bytes`` of a subscription;
- ``us_alone``, microseconds of a call with one event, of 64 events that are matched one by one;
- counters of an event, which are the same on every machine; ``nodes_alone`` and
  ``conjunctions_alone`` are of those 64 events. Trees and OpIndex look at the events of a batch in
  tiles of 64, so alike events share work;
- measurements of what was drawn: ``distinct_events``, ``probability_found``, ``equalities`` and
  others.

A batch with repeated events is refused. So is a parameter that changes nothing: each has a measured
column that must follow it (``experiments/axes.py``). All kinds must find the same number of
matches. ``runs.csv`` says when, where and by which command each table was made.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.measure import machine, one_thread, versions
from experiments import turns
from experiments.catalogue import EXPERIMENTS
from experiments.entry import KINDS, VARIANTS
from experiments.measuring import How, measured
from experiments.pictures import draw
from experiments.tables import RESULTS, write

ABOUT = {name: experiment.about for name, experiment in EXPERIMENTS.items()} | turns.ABOUT


def main() -> None:
    one_thread()
    given = arguments()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    clock = time.process_time if given.cpu else time.perf_counter
    how = How(given.subscriptions, given.repeat, clock, given.kinds, given.alone)
    found = {}
    for name in given.experiments:
        began = time.perf_counter()
        rows = turns.measured(name, how) if name in turns.ABOUT else measured(EXPERIMENTS[name], how)
        took = time.perf_counter() - began
        if not rows:
            print(f"{name}: none of the kinds takes part, nothing is written")
            continue
        path = write(given.results, name, rows, took, ABOUT[name])
        print(f"{path}: {ABOUT[name]}, {len(rows)} rows, {took:.0f} s", flush=True)
        found[name] = rows
    if given.plot:
        draw(given.plot, {name: rows for name, rows in found.items() if name in EXPERIMENTS})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "experiments", nargs="*", metavar="EXPERIMENT", help=f"all, or what begins so, of {', '.join(ABOUT)}"
    )
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help=f"of {', '.join([*KINDS, *VARIANTS])}")
    parser.add_argument(
        "--subscriptions", type=int, default=100_000, metavar="N", help="or a multiple, where they vary"
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of elapsed time, on a busy machine")
    parser.add_argument("--alone", action="store_true", help="kinds one after the other, where memory is short")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the tables go")
    parser.add_argument("--plot", metavar="FILE", help="draw all to a .svg or .png")
    given = parser.parse_args()
    asked = [] if given.experiments == ["all"] else given.experiments
    for name in asked:
        if not any(known.startswith(name) for known in ABOUT):
            parser.error(f"no experiment begins with {name!r}; there are {', '.join(ABOUT)}")
    for kind in given.kinds or []:
        if kind not in (*KINDS, *VARIANTS):
            parser.error(f"{kind!r} is none of {', '.join(dict.fromkeys([*KINDS, *VARIANTS]))}")
    given.experiments = [known for known in ABOUT if not asked or any(map(known.startswith, asked))]
    return given


if __name__ == "__main__":
    main()
