"""Regular expressions that Hyperscan runs together over each string.

Compiling takes up to 3 ms an expression. So a background thread compiles, and RE2 runs the
expressions until then. The result, up to 2 KB an expression, is kept in the cache folder for other
processes. It loads in less than a millisecond.

The package ``hyperscan`` contains Vectorscan. It is called for each string, and calls Python for
each match: 0.2 of the 13 us that 1,269 expressions over user agents take. ``pyperscan`` does the
same, and neither lets kernels call the library.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.ranges import sizes_of
from colmatch.errors import OptionError
from colmatch.kernels import _folders, _forks
from colmatch.text.hyperscan_syntax import HyperscanPattern

SIZE = 4096  # expressions of one database
FILES_KEPT = 64
SETS_KEPT = 64  # of this process
DIGEST = 32  # bytes at the head of a file
FORMAT = 1  # of files, and of the flags that expressions are compiled with
SUFFIX = ".hyperscan"
TAKEN = "taken"  # name in a file; databases have the number of their first expression
SETTING = "COLMATCH_REGEX"

_log = logging.getLogger("colmatch")
_recent: list[HyperscanSet] = []

Matches = tuple[NDArray[np.int64], NDArray[np.int64]]


def is_available() -> bool:
    """Returns whether Hyperscan is installed and wanted.

    Raises
    ------
    OptionError
        ``COLMATCH_REGEX`` is neither empty nor ``re2``
    """
    engine = os.environ.get(SETTING, "")
    if engine not in ("", "re2"):
        raise OptionError(f"{SETTING}={engine}: write {SETTING}=re2, or leave it empty to use Hyperscan if it is there")
    return not engine and _is_installed()


@lru_cache(1)
def _is_installed() -> bool:
    try:
        _hyperscan()
    except ModuleNotFoundError:
        return False
    except ImportError as error:
        _log.warning("RE2 runs all regular expressions, since the package hyperscan cannot be imported: %s", error)
        return False
    return True


def folder() -> Path | None:
    """Returns the folder of compiled expressions, next to compiled kernels; it need not exist."""
    base = _folders.base()
    return None if base is None else Path(base) / "regex"


def sets_for(expressions: Sequence[HyperscanPattern]) -> list[HyperscanSet]:
    """Returns the set to use for some expressions, and one that may be used until it is compiled.

    A set that has nearly these expressions will do: an update changes few of them. So another set
    is compiled when a quarter of them have changed.
    """
    distinct = set(expressions)

    def change(known: HyperscanSet) -> int:
        """Returns the number of new expressions, or of missing ones if these are more."""
        same = len(distinct.intersection(known.expressions))
        return max(len(distinct), len(known.expressions)) - same

    near = sorted((known for known in _recent if change(known) < len(distinct)), key=change)[:1]
    if near and change(near[0]) < max(1, len(distinct) // 4):
        return near
    fresh = HyperscanSet(expressions)
    _recent.append(fresh)
    del _recent[:-SETS_KEPT]
    return [fresh, *near]


def _scratch(database: Any, idle: list[Any]) -> Any:
    """Returns working memory that no other thread has."""
    try:
        return idle.pop()
    except IndexError:
        return _hyperscan().Scratch(database)


def _digest(path: Path, data: bytes) -> bytes:
    """Returns a file's hash, which ties its data to the expressions that its name is made of."""
    return hashlib.sha256(path.name.encode() + data).digest()


class HyperscanSet:
    """Expressions that are compiled in the background, and then run by any number of threads.

    Attributes
    ----------
    expressions : n, translated
    taken : (n) bool, the expressions that Hyperscan could compile; None before they are compiled
    """

    def __init__(self, expressions: Sequence[HyperscanPattern]) -> None:
        self.expressions = tuple(expressions)
        self.taken: NDArray[np.bool_] | None = None
        self._databases: list[tuple[int, Any, list[Any]]] = []  # first expression, database, idle memory of scans
        self._failed = False
        self._thread: Thread | None = None
        self._starting = _forks.lock()
        _forks.renew_in_child(self)
        if not self._load():
            self.start()

    def in_child(self) -> None:
        self._thread = None  # threads are not copied

    def start(self) -> None:
        """Compiles the expressions in the background, unless that is done or being done."""
        with self._starting:
            if self.taken is None and not self._failed and self._thread is None:
                thread = Thread(target=self._compile_all, name="colmatch-regex", daemon=True)
                thread.start()
                self._thread = thread

    def wait(self) -> bool:
        """Waits for the expressions to be compiled; returns whether they could be."""
        self.start()
        thread = self._thread
        if thread is not None:
            thread.join()
        return self.taken is not None

    def scan(self, strings: Sequence[bytes]) -> Matches:
        """Returns the numbers of strings and of expressions that match, pair by pair.

        ``strings`` are plain, and the expressions are compiled.
        """
        values, matches = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first, database, idle in self._databases:
            numbers: list[int] = []
            ends: list[int] = []
            add, scan = numbers.append, database.scan
            scratch = _scratch(database, idle)
            for string in strings:
                scan(string, _note, 0, add, scratch)
                ends.append(len(numbers))
            idle.append(scratch)
            values.append(np.repeat(np.arange(len(ends)), sizes_of(np.array([0, *ends], np.int64))))
            matches.append(np.array(numbers, np.int64) + first)
        return np.concatenate(values), np.concatenate(matches)

    def scan_one(self, string: bytes) -> list[int]:
        """Returns the numbers of the expressions that match one string, as ``scan`` does."""
        matches: list[int] = []
        for first, database, idle in self._databases:
            numbers: list[int] = []
            scratch = _scratch(database, idle)
            database.scan(string, _note, 0, numbers.append, scratch)
            idle.append(scratch)
            matches += [first + number for number in numbers]
        return matches

    def _compile_all(self) -> None:
        began = time.perf_counter()
        try:
            taken: list[int] = []
            databases: dict[int, Any] = {}
            for first in range(0, len(self.expressions), SIZE):
                database, places = _compile(self.expressions[first : first + SIZE])
                if places:
                    databases[first] = database
                    taken += [first + place for place in places]
            self._save(databases, taken)
            self._use(databases, taken)
        except Exception as error:
            self._failed = True
            why = f"{type(error).__name__}: {error}"
            _log.warning("RE2 runs %d regular expressions, since Hyperscan fails: %s", len(self.expressions), why)
            return
        seconds = time.perf_counter() - began
        _log.info("Hyperscan compiled %d of %d expressions in %.1f s", len(taken), len(self.expressions), seconds)

    def _use(self, databases: dict[int, Any], taken: Sequence[int]) -> None:
        mask = np.zeros(len(self.expressions), np.bool_)
        mask[taken] = True
        self._databases = [(first, database, []) for first, database in databases.items()]
        self.taken = mask  # the last step: threads look at it

    def _file(self) -> Path | None:
        place = folder()
        if place is None or _folders.distrust(place) is not None:
            return None
        digest = hashlib.sha256(repr((_hyperscan().__version__, FORMAT, self.expressions)).encode())
        return place / f"{digest.hexdigest()[:40]}{SUFFIX}"

    def _load(self) -> bool:
        hs = _hyperscan()
        path = self._file()
        try:
            if path is None or not path.exists():
                return False
            data = path.read_bytes()
            if _digest(path, data[DIGEST:]) != data[:DIGEST]:
                raise ValueError("the file is spoilt, or of other expressions")
            os.utime(path)  # files unused for long are dropped
            with np.load(io.BytesIO(data[DIGEST:]), allow_pickle=False) as file:
                parts = {int(name): file[name].tobytes() for name in file.files if name != TAKEN}
                taken = file[TAKEN].tolist()
            self._use({first: hs.loadb(part, hs.HS_MODE_BLOCK) for first, part in parts.items()}, taken)
        except (OSError, ValueError, hs.error) as error:  # or it was made for another processor
            _log.info("%s is not used, and made again: %s", path, error)
            return False
        return True

    def _save(self, databases: dict[int, Any], taken: list[int]) -> None:
        path = self._file()
        if path is None:
            return
        hs = _hyperscan()
        data = io.BytesIO()
        parts = {str(first): np.frombuffer(hs.dumpb(database), np.uint8) for first, database in databases.items()}
        np.savez(data, allow_pickle=False, **{TAKEN: np.array(taken, np.int64)}, **parts)
        try:
            _folders.make(path.parent)
            _folders.write(path, _digest(path, data.getvalue()) + data.getvalue())
            for old in sorted(path.parent.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime)[:-FILES_KEPT]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _log.info("compiled expressions are not kept in %s: %s", path.parent, error)


def _note(number: int, begin: int, end: int, flags: int, add: Callable[[int], None]) -> None:
    add(number)


def _hyperscan() -> Any:
    import hyperscan

    return hyperscan


def _compile(expressions: Sequence[HyperscanPattern]) -> tuple[Any, list[int]]:
    """Returns a database and the places of its expressions, which are their ids in it.

    If all are refused, there is no database.

    Hyperscan does not say which one it refuses, so halves are tried.
    """
    places = list(range(len(expressions)))
    database = _try_compile(expressions, places)
    if database is None:
        places = _find_accepted(expressions, places)
        database = _try_compile(expressions, places)
    return database, places


def _find_accepted(expressions: Sequence[HyperscanPattern], places: list[int]) -> list[int]:
    """Returns the places of the accepted expressions; at least one of all is refused."""
    if len(places) == 1:
        return []
    halves = places[: len(places) // 2], places[len(places) // 2 :]
    return [
        place
        for half in halves
        for place in (half if _try_compile(expressions, half) is not None else _find_accepted(expressions, half))
    ]


def _try_compile(expressions: Sequence[HyperscanPattern], places: list[int]) -> Any:
    hs = _hyperscan()
    database = hs.Database(mode=hs.HS_MODE_BLOCK)
    flags = [hs.HS_FLAG_SINGLEMATCH | hs.HS_FLAG_ALLOWEMPTY] * len(places)
    chosen = [expressions[place].expression for place in places]
    try:
        database.compile(expressions=chosen, ids=places, elements=len(places), flags=flags)
    except hs.error as error:
        _log.debug("Hyperscan refuses one of %d expressions: %s", len(places), error)
        return None
    return database
