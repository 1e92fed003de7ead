"""Lines of JSON that pyarrow must not read: each way in says the line, and no process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import colmatch as cm
from colmatch.events.json_rows import DEEPEST, check_lines

ROW = b'{"a": 1}\n'
DEEP = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
OBJECTS = b'{"a": ' * 100_000 + b"1" + b"}" * 100_000 + b"\n"
CRASHES = {
    b"null\n" + ROW: "line 1: a JSON object is needed, not null", ROW + b"  null \r\n" + ROW: "line 2: a JSON object",
    b"\n\nnull": "line 3: a JSON object", b"[null, {}]": "element 1: a JSON object", b"[{}, null]": "element 2: a JSON object",
    b"null": "line 1: a JSON object", ROW + DEEP: "line 2: it nests deeper than 500 levels", OBJECTS: "line 1: it nests deeper",
    b"[" + OBJECTS + b"]": "nests too deep", b"\xef\xbb\xbfnull\n": "line 1: a JSON object",
    b"nullable\n": "line 1: a JSON object", b' null{"a": 1}\n': "line 1: a JSON object", b"null,\n": "line 1: a JSON object",
}  # fmt: skip
FINE = [
    b'{"a": null}\n', b'{"a": "null"}\nnul\n', b'{"a": "' + b"[" * 5000 + b'"}\n', b'{"a": "\\"' + b"{" * 5000 + b'"}\n',
    b'{"a": [' + b"{}, " * 2000 + b"{}]}\n", b'{"null": 1}\n', b'{"a": ' + b"[" * 400 + b"]" * 400 + b"}\n", b"",
]  # fmt: skip


@pytest.mark.parametrize("lines", FINE, ids=range(len(FINE)))
def test_other_lines_are_left_to_the_reader(lines: bytes) -> None:
    check_lines(lines)


def test_the_deepest() -> None:
    def nested(levels: int) -> bytes:
        return ROW + b"[" * levels + b"]" * levels

    check_lines(nested(DEEPEST))
    with pytest.raises(cm.EventError, match=f"row 9: it nests deeper than {DEEPEST}"):
        check_lines(nested(DEEPEST + 1), 7, "row")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    cm.Matcher.build({1: "a = 1"}, {"a": "int64"}).save(folder / "m.cm")
    (folder / "subs.jsonl").write_text('{"id": 1, "expression": "a = 1"}\n')
    return folder


def run(folder: Path, *arguments: str, given: bytes = b"") -> str:
    """Runs the command line in a process of its own. Returns its error."""
    command = [sys.executable, "-m", "colmatch", *arguments]
    found = subprocess.run(command, cwd=folder, input=given, capture_output=True, check=False)
    assert found.returncode == 1, found
    assert b"fault in colmatch" not in found.stderr
    return found.stderr.decode()


@pytest.mark.parametrize("lines", CRASHES, ids=range(len(CRASHES)))
def test_every_way_in_says_the_line(lines: bytes, folder: Path) -> None:
    (folder / "bad.jsonl").write_bytes(lines)
    assert CRASHES[lines] in run(folder, "match", "m.cm", "bad.jsonl")
    if lines in list(CRASHES)[:2]:  # a process takes a second
        assert CRASHES[lines] in run(folder, "match", "m.cm", "-", "--format", "jsonl", given=lines)
        assert CRASHES[lines] in run(folder, "build", "subs.jsonl", "-o", "x.cm", "--like", "bad.jsonl")
        assert CRASHES[lines] in run(folder, "build", "bad.jsonl", "-o", "x.cm", "--schema", "a bigint")
