"""Damaged files for the command line. A process reads each, and must end in words.

    python tests/cli/fuzz.py 10000 --seed 7

A case takes a sound file of JSON, CSV, Arrow, parquet or an index, damages it, and gives it to a
command: as events, as subscriptions, as a sample of events, or as the index. The process must end
with status 0, 1 or 2. An error must be one line, and must not leave the output behind.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa

import colmatch as cm
from colmatch.cli import commands
from colmatch.cli.writing import write_all
from colmatch.kinds.pbtree import PbtreeSettings

SECONDS = 30  # of the processor, for one case
MEMORY = 6 << 30  # bytes of addresses, so that a damaged length cannot fill the machine
EVENTS = pa.table(
    {
        "age": pa.array([17, 36, None, 64] * 5, pa.int64()),
        "price": pa.array([1.5, None, -0.0, 1e300] * 5),
        "city": pa.array(["Nice", 'say "no"\\\n', "", None] * 5),
        "seen": pa.array([0, 1_700_000_000_000_000, None, -1] * 5, pa.timestamp("us", "UTC")),
        "flag": pa.array([True, False, None, True] * 5),
    }
)
NESTED = {
    "tags": pa.array([["a"], ["a", "b"], [], None] * 5, pa.list_(pa.string())),
    "attrs": pa.array([[("x", "1")], [], None, [("y", None)]] * 5, pa.map_(pa.string(), pa.string())),
    "who": pa.array([{"n": 1, "s": "é"}, None, {"n": None, "s": ""}, {"n": 7, "s": "b"}] * 5),
}
SUBS = [
    "age >= 18",
    "city = 'Nice' AND (price < 18 OR age IS NULL)",
    "city LIKE 'N%' AND flag",
    "seen > TIMESTAMP '2020-01-01 00:00:00Z'",
    "age IN (17, 36, 64) AND NOT price BETWEEN 1 AND 2",
]
SCHEMA = "age:int64, price:double, city:string, seen:timestamp[us, UTC], flag:bool"
PIECES = [
    b"null", b"\nnull\n", b"NaN", b"-Infinity", b"1e999", b"99999999999999999999", b"1.5", b"true", b"-", b"[", b"]", b"{", b"}",
    b'"', b"'", b",", b"\t", b"\r", b"\r\n", b"\n\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\\",
    b"{}", b"[]", b'{"age": {}}', b'{"age": []}', b'{"tags": [[]]}', b'{"city": 1}\n', b'{"age": "x"}\n', b'{"age": 1, "age": 2}\n',
    b'{"": null}\n', b"[" * 3000, b'{"a":' * 3000, b" " * 70_000, b'"' + b"x" * 70_000, b"2024-13-45", b"\xf0\x9f\x98\x80",
    b"id,expression\n", b"ARROW1", b"PAR1",
]  # fmt: skip


def damaged(data: bytes, rng: Random) -> bytes:
    """Returns bytes with one to four faults in them."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        data = _with_fault(data, rng)
    return data


def _with_fault(data: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice([1, 2, 4, 8, 40, 400]))
    piece, noise = rng.choice(PIECES), rng.randbytes(rng.choice([1, 8, 64]))
    flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in data[start : start + rng.choice([1, 1, 4])])
    lines = data.split(b"\n")
    rng.shuffle(lines)
    faults = [
        data[:start],
        data[start:],
        data[:start] + data[end:],
        data[:end] + data[start:],
        data[:start] + flipped + data[start + len(flipped) :],
        data[:start] + piece + data[start:],
        data[:start] + piece + data[end:],
        data[:start] + noise + data[start:],
        data[:start] + bytes(end - start) + data[end:],
        piece + data,
        b"\n".join(lines),
        data.replace(b"\n", b"\r"),
        data.replace(b":", rng.choice([b"", b"=", b"::"]), 1),
    ]
    return rng.choice(faults)


class Samples:
    """Sound files, by what a command takes them for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = str(folder / "sound.colmatch")
        matcher = cm.Matcher.build(dict(enumerate(SUBS)), EVENTS.schema)
        matcher.save(self.index)
        pages = PbtreeSettings(path=str(folder / "sound.pages"))
        cm.Matcher.build(dict(enumerate(SUBS)), EVENTS.schema, index=pages).close()
        subs = pa.table({"id": range(len(SUBS)), "expression": SUBS, "priority": [1.0] * len(SUBS)})
        wide = EVENTS
        for name, values in NESTED.items():
            wide = wide.append_column(name, values)
        self.files = {
            **{("events", kind): self._write(EVENTS if kind == "csv" else wide, "events", kind) for kind in FORMATS},
            **{("subs", kind): self._write(subs, "subs", kind) for kind in FORMATS},
            ("index", "colmatch"): Path(self.index).read_bytes(),
            ("index", "pages"): (folder / "sound.pages").read_bytes(),
        }
        for role in ("events", "subs"):
            lines = self.files[role, "jsonl"].strip().split(b"\n")
            self.files[role, "json"] = b"[" + b",\n".join(lines) + b"]"
            self.files[role, "tsv"] = self.files[role, "csv"].replace(b'"', b"").replace(b",", b"\t")

    def _write(self, table: pa.Table, role: str, kind: str) -> bytes:
        path = self.folder / f"{role}.{kind}"
        write_all(str(path), table.to_batches(), table.schema, None)
        return path.read_bytes()


FORMATS = ("jsonl", "csv", "arrow", "arrows", "parquet")


def arguments(role: str, file: str, samples: Samples, rng: Random) -> list[str]:
    """Returns a command that reads a file in a role."""
    sound = rng.choice([str(samples.folder / f"{name}") for name in ("events.jsonl", "events.csv", "events.parquet")])
    if role == "subs":
        return ["build", file, rng.choice(["--like", "--schema"]), "", "-o", "out.colmatch"]
    if role == "index":
        return rng.choice([["match", file, sound, "-o", "out.jsonl"], ["stats", file], ["check", file]])
    if rng.random() < 0.2:
        return ["build", str(samples.folder / "subs.csv"), "--like", file, "-o", "out.colmatch"]
    how = rng.choice([[], ["--count"], ["--hits"], ["--keep", "age"], ["--top", "2"], ["--missing-columns", "null"]])
    return ["match", samples.index, file, "-o", rng.choice(["out.jsonl", "out.csv", "out.parquet", "-"]), *how]


def run(words: list[str], folder: Path) -> tuple[int, str]:
    """Runs the command line in a child, and returns its status and its standard error."""
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, name in ((0, os.devnull), (1, "../stdout"), (2, "../stderr")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
        signal.alarm(20 * SECONDS)  # a process that waits for nothing needs no processor
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["colmatch", *words]
        commands.main()
    return os.waitpid(child, 0)[1], (folder.parent / "stderr").read_text(errors="replace")


def fault(status: int, error: str, left: list[str]) -> str:
    """Says in words how a process broke its promise; an empty text if it did not."""
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    code = os.WEXITSTATUS(status)
    if code not in (0, 1, 2):
        return f"status {code}"
    if "Traceback" in error or "fault in colmatch" in error or "/cpp/" in error:
        return "foreign error"
    if code == 1 and sum(line.startswith("colmatch: error: ") for line in error.splitlines()) != 1:
        return "no error said" if "colmatch: " not in error else ""
    return f"left {left}" if code and left else ""


def fuzz(cases: int, seed: int, keep: Path, tell: Callable[[str], None]) -> tuple[int, Counter[str]]:
    """Runs cases; returns how many broke a promise, and how often each end was seen."""
    ends: Counter[str] = Counter()
    wrong = 0
    with TemporaryDirectory() as temporary:
        samples = Samples(Path(temporary))
        work = Path(temporary) / "work"
        for case in range(cases):
            rng = Random(f"{seed} {case}")
            role, kind = rng.choice(sorted(samples.files))
            data, name = damaged(samples.files[role, kind], rng), f"in.{kind}"
            if kind in ("jsonl", "csv", "tsv") and rng.random() < 0.1:
                packed = gzip.compress(data, 1)
                data, name = damaged(packed, rng) if rng.random() < 0.5 else packed, f"{name}.gz"
            work.mkdir()
            (work / name).write_bytes(data)
            words = arguments(role, name, samples, rng)
            if "" in words:
                like = words[words.index("") - 1] == "--like"
                words[words.index("")] = str(samples.folder / "events.parquet") if like else SCHEMA
            status, error = run(words, work)
            problem = fault(status, error, sorted(path.name for path in work.iterdir() if path.name != name))
            ends["refused" if status else "taken"] += 1
            ends[f"{role} {kind}"] += 1
            if problem:
                wrong += 1
                shutil.copytree(work, keep / str(case), dirs_exist_ok=True)
                tell(f"case {case}: {problem}: colmatch {' '.join(words)}\n  {error.strip()[-300:]}")
            shutil.rmtree(work)
    return wrong, ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for files of failed cases")
    given = parser.parse_args()
    began = time.monotonic()
    wrong, ends = fuzz(given.cases, given.seed, given.keep, lambda text: print(text, flush=True))
    print(dict(sorted(ends.items())))
    print(f"{given.cases:,} damaged inputs in {time.monotonic() - began:.0f} s: {wrong} without an end in words")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
