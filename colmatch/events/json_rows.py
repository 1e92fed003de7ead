"""A check for lines of JSON that end the process in pyarrow's reader.

pyarrow 26 crashes on a row ``null`` that comes first in a block, and on deep nesting.
"""

from __future__ import annotations

import re

import numpy as np

from colmatch.errors import EventError

DEEPEST = 500  # levels of arrays and objects; pyarrow crashes between 10,000 and 30,000
_NULL = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|\n)[ \t\r]*null")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKETS = np.zeros(256, np.int8)
_BRACKETS[list(b"[{")], _BRACKETS[list(b"]}")] = 1, -1


def check_lines(lines: bytes, before: int = 0, noun: str = "line") -> None:
    """Checks whole lines before pyarrow reads them.

    before : number of earlier lines
    noun : word for a line in errors

    Raises EventError: a line begins with ``null``, or nests too deep.
    """
    if null := _NULL.search(lines):
        number = before + lines.count(b"\n", 0, null.end()) + 1
        raise EventError(f"{noun} {number}: a JSON object is needed, not null")
    if lines.count(b"[") + lines.count(b"{") <= DEEPEST:
        return
    ends = np.append(np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n")), len(lines))
    starts = np.append(0, ends[:-1] + 1)
    for i in np.flatnonzero(ends - starts > 2 * DEEPEST).tolist():
        line = lines[starts[i] : ends[i]]
        if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST:
            raise EventError(f"{noun} {before + i + 1}: it nests deeper than {DEEPEST} levels")


def _depth(line: bytes) -> int:
    bare = np.frombuffer(_STRING.sub(b"", line), np.uint8)
    return int(np.cumsum(_BRACKETS[bare], dtype=np.int64).max(initial=0))
