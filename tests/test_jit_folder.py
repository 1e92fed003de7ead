"""The folder of compiled kernels: where it is, what is done when it cannot be used, and what of it is kept."""

import os
import sys
import textwrap
from pathlib import Path

import pytest
from kernel_copy import MAIN, Copy

from colmatch.kernels import _jit


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def test_read_only_folder_is_read_in_silence(copy):
    copy.run("get")
    # Root may write everywhere, so the calls that write are made to fail. A warm run makes none of them.
    guard = """
        import os, pathlib
        def refuse(*_, **__):
            raise OSError(30, "Read-only file system")
        os.replace = os.mkdir = pathlib.Path.write_bytes = refuse
    """
    program = textwrap.dedent(guard) + textwrap.dedent(MAIN)
    said = copy.run("get", program=program)
    assert (said["compiled"], said["loaded"], said["logs"]) == (0, 2, [])
    said = copy.run("float", program=program)
    assert (said["float"], said["compiled"]) == (4.5, 1)
    assert [level for level, _ in said["logs"]] == ["INFO"]


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc/none"])
def test_without_a_folder_it_compiles_and_says_so_once(copy, place, tmp_path):
    (tmp_path / "file").write_text("x")
    folder = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "a" / "b"}.get(place, place)
    said = copy.run("get", COLMATCH_CACHE_DIR=str(folder))
    assert (said["total"], said["one"], said["compiled"]) == (15, 1, 2)
    [(level, message)] = said["logs"]
    assert level == "INFO"
    assert "set COLMATCH_CACHE_DIR to a folder" in message
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.skipif(sys.platform != "linux", reason="the rule for Linux")
def test_where_the_folder_is(monkeypatch, tmp_path):
    name = _jit.cache_dir().name
    monkeypatch.delenv("COLMATCH_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for xdg, base in (("", ".cache/colmatch"), ("relative", ".cache/colmatch"), (str(tmp_path / "xdg"), "xdg/colmatch")):
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
        assert _jit.cache_dir() == tmp_path / base / name
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "own"))
    assert _jit.cache_dir() == tmp_path / "own" / name


def test_without_a_home_nothing_is_kept(copy, tmp_path):
    said = copy.finish(copy.start(cwd=tmp_path, HOME="nowhere", COLMATCH_CACHE_DIR=None, XDG_CACHE_HOME=None))
    assert (said["total"], said["folder"], said["logs"]) == (15, "None", [])
    assert [entry.name for entry in tmp_path.iterdir()] == ["src"]


def test_damaged_files_are_made_anew(copy):
    copy.run()
    [name] = copy.files()
    whole = (copy.cache / name).read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (whole[:1000], flipped, b""):
        (copy.cache / name).write_bytes(damaged)
        said = copy.run()
        assert (said["total"], said["compiled"]) == (15, 1)
        assert "damaged" in said["logs"][0][1]
    assert copy.run()["loaded"] == 1


def test_old_folders_are_dropped(copy):
    copy.cache.mkdir()
    (copy.cache / "mine").mkdir()
    for n in range(_jit.FOLDERS_KEPT + 5):
        folder = copy.cache / f"kernels-{n:020x}"
        folder.mkdir()
        os.utime(folder, (n, n))
    said = copy.run()
    left = {folder.name for folder in copy.cache.iterdir()}
    assert len(left) == _jit.FOLDERS_KEPT + 1
    assert {"mine", Path(said["folder"]).name, f"kernels-{_jit.FOLDERS_KEPT + 4:020x}"} <= left
    assert "kernels-" + "0" * 20 not in left


def test_a_copied_cache_is_used(copy, tmp_path):
    program = "import sys; from colmatch.kernels import _jit; print('\"', _jit.copy_cache(sys.argv[1]), '\"')"
    assert copy.run(str(tmp_path / "other"), program=program) == " None "
    folder = Path(copy.run("get")["folder"])
    copy.run(str(tmp_path / "other"), program=program)
    copy.cache = tmp_path / "other"
    said = copy.run("get")
    assert (said["compiled"], said["loaded"]) == (0, 2)
    assert Path(said["folder"]) == tmp_path / "other" / folder.name
