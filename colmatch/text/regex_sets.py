"""Many regular expressions are run together, where that is faster than one by one.

``RE2::Set`` of google-re2 runs them.

Other libraries that run many at once mean other things by ``$``, ``\\b`` or ``\\d`` than Arrow's
RE2: Hyperscan, Vectorscan, Rust's regex.

A set makes its states as it meets strings. With 256 expressions to a set, a pair of an expression
and a string took 0.003 to 0.12 us once it had, where Arrow takes 0.08 to 0.25; sets of thousands
meet new states with nearly every string. For some expressions, such as ``[ab]c\\w+[de]$``, any set
does, and takes 4 us a pair. So each set has to show on the first strings that it is faster, else
its expressions go one by one for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.kernels import _forks

try:
    import re2
except ImportError:
    re2 = None

SIZE = 256
STATE_BYTES = 16 << 20  # of one set
TRIAL = 256  # strings that a set is judged by: three quarters to make states, the rest for time
SAMPLE = 8  # expressions that it is compared with

Matches = tuple[NDArray[np.int64], NDArray[np.int64]]
OneByOne = Callable[[pa.Array, str], NDArray[np.int64]]  # numbers of the strings that an expression matches in


def available() -> bool:
    """Returns whether google-re2 is installed; another package has a module ``re2`` too, without
    sets.
    """
    return hasattr(re2, "Set") and hasattr(re2, "Options")


class RegexSet:
    """Up to ``SIZE`` expressions.

    Parameters
    ----------
    regexes : known to be sound
    characters : strings are UTF-8, else bytes
    one_by_one : what is done where a set is no gain
    """

    def __init__(self, regexes: Sequence[str], characters: bool, one_by_one: OneByOne) -> None:
        self._regexes = regexes
        self._characters = characters
        self._one_by_one = one_by_one
        self.faster: bool | None = None  # than one by one; not known yet
        self._inside: list[int] = []  # ids of threads that match now, once for each call
        self._sets: list[Any] = []  # sets that were made; the last one is used
        try:
            self._sets.append(self._new_set())
        except re2.error:  # too large together
            self.faster = False
        _forks.renewed(self)

    def in_child(self) -> None:
        inside, self._inside = self._inside, []
        if inside and self._sets:  # other threads may have held a lock inside the set
            self._sets.append(None)  # the set is kept, since one that is locked cannot be freed

    def _new_set(self) -> Any:
        options = re2.Options()
        options.max_mem = STATE_BYTES
        options.log_errors = False
        if not self._characters:
            options.encoding = re2.Options.Encoding.LATIN1
        made = re2.Set.SearchSet(options)
        for regex in self._regexes:
            made.Add(regex)
        made.Add("")  # matches always: where it does not, the set ran out of memory and says nothing
        made.Compile()
        return made

    def matches(self, strings: pa.Array, raw: Sequence[bytes]) -> Matches:
        """Returns the numbers of strings and expressions that match, pair by pair.

        ``raw`` are the bytes of the strings.
        """
        if self.faster is None and len(raw) >= TRIAL:
            self.faster = self._faster(strings, raw)
        return self._together(strings, raw) if self.faster else self._apart(strings)

    @contextmanager
    def _matching(self) -> Iterator[Callable[[bytes], list[int] | None]]:
        if self._sets[-1] is None:
            self._sets[-1] = self._new_set()
        self._inside.append(get_ident())
        try:
            yield self._sets[-1].Match
        finally:
            with suppress(ValueError):  # this is a child, forked while the thread matched
                self._inside.remove(get_ident())

    def _together(self, strings: pa.Array, raw: Sequence[bytes]) -> Matches:
        always = len(self._regexes)
        values: list[int] = []
        regexes: list[int] = []
        failed: list[int] = []
        with self._matching() as match:
            for v, string in enumerate(raw):
                found = match(string)
                if found is None:
                    failed.append(v)
                elif len(found) > 1:
                    values += [v] * len(found)
                    regexes += found
        value, regex = np.array(values, np.int64), np.array(regexes, np.int64)
        kept = regex != always
        value, regex = value[kept], regex[kept]
        if failed:
            again = np.array(failed, np.int64)
            some, which = self._apart(strings.take(pa.array(again)))
            value, regex = np.concatenate([value, again[some]]), np.concatenate([regex, which])
        return value, regex

    def _apart(self, strings: pa.Array) -> Matches:
        values = [self._one_by_one(strings, regex) for regex in self._regexes]
        return np.concatenate(values), np.repeat(np.arange(len(values)), list(map(len, values)))

    def _faster(self, strings: pa.Array, raw: Sequence[bytes]) -> bool:
        sample = self._regexes[:SAMPLE]
        taken = _seconds(lambda: [self._one_by_one(strings, regex) for regex in sample])
        apart = taken / len(sample) / len(strings) * len(self._regexes)  # seconds a string

        def together(start: int, end: int) -> float:
            some, their_bytes = strings.slice(start, end - start), raw[start:end]
            return _seconds(lambda: self._together(some, their_bytes)) / (end - start)

        warm = TRIAL * 3 // 4
        if any(together(start, start + 32) > 16 * apart for start in range(0, warm, 32)):
            return False
        return together(warm, TRIAL) < apart


def _seconds(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
