"""colmatch beside engines that anybody can install, on rules as people write them: one table.

    pip install --group peers
    python asv_benchmarks/peers.py
    python asv_benchmarks/peers.py --rules 1000 --peers zen function --repeat 5 --folder matchers

Microseconds an event, in batches of 4,096 and one at a time, of the workload ``orders``. Prepared
once, checked to find the pairs that colmatch finds, then measured on one thread in turns; figures
are medians. Each engine has the quickest form that we found in its documentation; ``--forms``
prints these. A loop over events costs an event the same in a batch as alone, so it is measured
once, on as many events as take a second.

``--folder`` has other matchers, each an executable. It is called with a folder and a number: the
events to be matched at a time. The folder has ``rules.txt``, a text a line, and ``events.csv`` with
a head, or the same as ``events.arrow``, a file of Arrow IPC. Lines and events are counted from 0.
It prints ``event,rule`` in a line for each pair, and last ``seconds 0.123``: the time to match all
events, without that to read, to build and to print. Where it does not match so many at a time, it
ends with code 2.
"""

from __future__ import annotations

import argparse
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from benchmarks.conjunctions import Events
from benchmarks.engines import PEERS, Peer
from benchmarks.measure import machine, medians, one_thread, versions
from benchmarks.rivals import contest
from benchmarks.systems import Match, Pairs, Part
from benchmarks.workloads import Workload, orders

NO_FORM = "no such form"
BATCH, SINGLE = "batches", "single"


class Program:
    """A match by an executable, which tells its own time."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self.seconds: list[float] = []

    def __call__(self) -> Pairs:
        ran = subprocess.run(self._command, stdout=subprocess.PIPE, text=True)
        if ran.returncode == 2:
            raise NotImplementedError(NO_FORM)
        ran.check_returncode()
        *lines, last = ran.stdout.splitlines()
        word, _, told = last.partition(" ")
        if word != "seconds":
            raise SystemExit(f"{self._command[0]} ends with {last!r}, where seconds are needed")
        self.seconds.append(float(told))
        pairs = np.loadtxt(lines, np.int64, delimiter=",", ndmin=2) if lines else np.empty((0, 2), np.int64)
        return Pairs(pairs[:, 0], pairs[:, 1])


def program(path: Path, folder: Path, single: bool) -> Callable[[Workload], Callable[[Events], Match]]:
    """An executable as a system, which gets its files in a folder."""

    def system(workload: Workload) -> Callable[[Events], Match]:
        folder.mkdir(exist_ok=True)
        (folder / "rules.txt").write_text("".join(f"{text}\n" for _, text in workload.subscriptions))

        def ready(events: Events) -> Match:
            pa.csv.write_csv(events.table, folder / "events.csv", pa.csv.WriteOptions(quoting_style="needed"))
            with pa.ipc.new_file(folder / "events.arrow", events.table.schema) as file:
                file.write_table(events.table)
            return Program([str(path.resolve()), str(folder), "1" if single else str(len(events))])

        return ready

    return system


def programs(folder: Path, scratch: Path) -> dict[str, Peer]:
    """A peer for each executable of a folder, by the name of its file."""
    found = sorted(path for path in folder.iterdir() if path.is_file() and os.access(path, os.X_OK))
    return {
        path.name: Peer(path.name, "", *(program(path, scratch / path.name, single) for single in (False, True)))
        for path in found
    }


class Figure(NamedTuple):
    us: float  # an event
    events: int


Cells = dict[tuple[str, int, str], Figure | str]  # by peer, rules and use; a text says why there is none


def measured(peers: Mapping[str, Peer], given: argparse.Namespace) -> Cells:
    clock = time.process_time if given.cpu else time.perf_counter
    cells: Cells = {}
    for size in given.rules:
        workload = orders(size, given.events)
        for use in (SINGLE, BATCH):
            systems = {name: getattr(peer, "single" if use == SINGLE else "batch") for name, peer in peers.items()}
            refused = {name: NO_FORM for name, system in systems.items() if system is None}
            looped = {name for name, peer in peers.items() if use == BATCH and peer.batch is peer.single}
            ran = {name: system for name, system in systems.items() if system and name not in looped}
            ready = contest(workload, ran, refused, given.budget, clock)
            taken = medians(ready, given.repeat, given.budget, clock)
            print(f"{size:,} rules, {use}: {', '.join(ready)}", file=sys.stderr, flush=True)
            for name, match in ready.items():
                events = match.rows if isinstance(match, Part) else given.events
                told = statistics.median(match.seconds[1:]) if isinstance(match, Program) else taken[name]
                cells[name, size, use] = Figure(told / events * 1e6, events)
            cells |= {(name, size, use): reason for name, reason in refused.items()}
            cells |= {(name, size, use): cells[name, size, SINGLE] for name in looped}
    return cells


def shown(figure: Figure | str) -> str:
    if isinstance(figure, Figure):
        return f"{figure.us:,.{0 if figure.us >= 100 else 1 if figure.us >= 10 else 2}f}"
    return figure if figure.startswith("over ") else "-"


def table(peers: Mapping[str, Peer], sizes: list[int], cells: Cells) -> str:
    """A table in Markdown, and below it why figures are missing or of few events."""
    columns = [(size, use) for use in (BATCH, SINGLE) for size in sizes]
    lines = ["| us an event | " + " | ".join(f"{size:,}, {use}" for size, use in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for name, peer in peers.items():
        lines.append("| " + " | ".join([peer.title, *(shown(cells[name, size, use]) for size, use in columns)]) + " |")
    lines.append("")
    whole = max(figure.events for figure in cells.values() if isinstance(figure, Figure))
    missing: dict[str, list[str]] = {}
    for name, peer in peers.items():
        mine = {column: cells[name, *column] for column in columns}
        for reason in sorted({figure for figure in mine.values() if isinstance(figure, str) and shown(figure) == "-"}):
            missing.setdefault(reason, []).append(peer.title)
        events_of = {size: figure.events for (size, _), figure in mine.items() if isinstance(figure, Figure)}
        few = [f"{events:,} events of {size:,} rules" for size, events in events_of.items() if events < whole]
        lines += [f"{peer.title}: {', '.join(few)}"] if few else []
    lines += [f"{reason}: {'; '.join(titles)}" for reason, titles in missing.items()]
    return "\n".join(lines)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", type=int, nargs="+", default=[1000, 10_000, 100_000], metavar="N")
    parser.add_argument("--peers", nargs="+", default=list(PEERS), metavar="PEER", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--events", type=int, default=4096, metavar="N", help="events of a batch")
    parser.add_argument("--repeat", type=int, default=3, metavar="R", help="rounds, each of which runs every peer once")
    parser.add_argument(
        "--budget",
        type=float,
        default=60.0,
        metavar="S",
        help="a peer that needs longer to be prepared and run once is left out; no new round after so long",
    )
    parser.add_argument("--folder", type=Path, metavar="PATH", help="executables that match, too")
    parser.add_argument("--cpu", action="store_true", help="processor time, for a machine that is busy")
    parser.add_argument("--forms", action="store_true", help="print how each peer is used, and no figures")
    known = parser.parse_args(given)
    for name in known.peers:
        if name not in PEERS:
            parser.error(f"{name!r} is none of {', '.join(PEERS)}")
    if min(*known.rules, known.events, known.repeat) < 1 or known.budget <= 0:
        parser.error("numbers start from 1")
    return known


def main(options: list[str] | None = None) -> None:
    one_thread()
    given = arguments(options)
    peers = {name: PEERS[name] for name in dict.fromkeys(["colmatch", *given.peers])}
    if given.forms:
        print(
            "\n".join(f"{peer.title}: {(inspect.getdoc(peer.batch) or '').splitlines()[0]}" for peer in peers.values())
        )
        return
    print(machine())
    print(versions(*dict.fromkeys(peer.package for peer in peers.values() if peer.package)))
    clock = "processor time" if given.cpu else "time"
    load = f"{os.getloadavg()[0]:.1f} programs at work before"
    print(f"{clock}, medians of up to {given.repeat} rounds, batches of {given.events:,}, {load}\n")
    with tempfile.TemporaryDirectory() as scratch:
        peers |= programs(given.folder, Path(scratch)) if given.folder else {}
        print(table(peers, given.rules, measured(peers, given)))


if __name__ == "__main__":
    main()
