"""The container file: what goes in comes out, and no damage goes unnoticed or says less than
which file and what to do.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colmatch.errors import StoreError
from colmatch.matcher import Matcher
from colmatch.store import file as store

HEADER = {"kind": "scan", "größe": [1, 2.5, None, True], "nested": {"a": "b"}}
ARRAYS = {
    "first": np.arange(9, dtype=np.int64),
    "pred": np.arange(30, dtype=np.uint32).reshape(10, 3),
    "none": np.zeros((0, 3), np.uint8),
    "weight": np.array(0.5),
    "flags": np.array([True, False]),
}


def assert_same(found, header, arrays):
    assert found[0] == header
    assert list(found[1]) == list(arrays)
    for name, array in arrays.items():
        got = found[1][name]
        assert got.dtype == array.dtype.newbyteorder("<") and got.shape == array.shape, name
        assert got.tobytes() == np.asarray(array, got.dtype, order="C").tobytes(), name
        assert not got.flags.writeable and got.flags.c_contiguous and got.flags.aligned, name


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "index.colmatch"
    store.write_arrays(path, HEADER, ARRAYS)
    return path


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("verify", [True, False])
def test_reads_what_was_written(saved, mmap, verify):
    assert_same(store.read_arrays(saved, mmap=mmap, verify=verify), HEADER, ARRAYS)
    assert os.listdir(saved.parent) == [saved.name]


def test_arrays_are_views_of_one_mapping_at_lines_of_64_bytes(saved):
    _, arrays = store.read_arrays(saved)
    address = {name: array.ctypes.data for name, array in arrays.items()}
    assert all(place % 64 == 0 for place in address.values())
    assert address["pred"] - address["first"] == 128
    with pytest.raises(ValueError, match="read-only"):
        arrays["first"][0] = 1


DTYPES = st.sampled_from(
    [np.dtype(code) for code in ("?", "i1", "u1", "<i2", ">i4", "<u4", "<i8", ">u8", "<f4", ">f8")]
)
LAYOUTS = st.sampled_from(
    [
        lambda a: a,
        np.transpose,
        np.asfortranarray,
        lambda a: a[::2] if a.ndim else a,
        lambda a: a[..., ::-1] if a.ndim else a,
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    header=st.dictionaries(st.text(), JSON, max_size=4),
    arrays=st.dictionaries(
        st.text(), hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, min_side=0, max_side=5)), max_size=4
    ),
    layout=LAYOUTS,
)
def test_any_header_and_arrays_survive(header, arrays, layout):
    arrays = {name: layout(array) for name, array in arrays.items()}
    data = store.pack(header, arrays)
    assert_same(store.unpack(data), header, arrays)
    assert data == store.pack(header, arrays)


def test_pickled_form_is_the_file(saved):
    assert store.pack(HEADER, ARRAYS) == saved.read_bytes()
    assert_same(store.unpack(saved.read_bytes()), HEADER, ARRAYS)
    shifted = b"x" + saved.read_bytes()
    assert_same(store.unpack(memoryview(shifted)[1:]), HEADER, ARRAYS)


def test_thousands_of_attributes(tmp_path):
    header = {"attributes": [{"path": [f"attrs.{i}"], "type": "int64"} for i in range(30_000)]}
    arrays = {f"a{i}": np.full(i % 7, i) for i in range(2_000)}
    store.write_arrays(tmp_path / "wide", header, arrays)
    assert_same(store.read_arrays(tmp_path / "wide"), header, arrays)


def test_every_flipped_byte_is_found(saved):
    data = saved.read_bytes()
    hash = store.content_hash(saved)
    for at in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= mask
            with pytest.raises(StoreError, match=r"pickled matcher (is|has) "):
                store.unpack(bytes(damaged))
    assert store.content_hash(saved) == hash


def test_every_length_is_found(saved):
    data = saved.read_bytes()
    for length in range(len(data)):
        with pytest.raises(StoreError):
            store.unpack(data[:length])
        saved.write_bytes(data[:length])
        for call in (
            lambda: store.read_arrays(saved),
            lambda: store.read_arrays(saved, mmap=False, verify=False),
            lambda: store.content_hash(saved),
        ):
            with pytest.raises(StoreError, match=r"index\.colmatch (is|has) .*: "):
                call()
    with pytest.raises(StoreError, match="should have"):
        store.unpack(data + b"\0")


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_give_a_store_error(data, magic):
    with pytest.raises(StoreError):
        store.unpack((b"colmatch" if magic else b"") + data)


def forged(header, version=store.VERSION, total=None, length=None, tail=b""):
    """A file whose checksums are right and whose header is not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text = text.ljust(-(-len(text) // 64) * 64)
    total = 64 + len(text) + len(tail) if total is None else total
    prefix = store._PREFIX.pack(b"colmatch", version, zlib.crc32(text), len(text) if length is None else length, total)
    return prefix + store._CHECKSUM.pack(zlib.crc32(prefix)) + text + tail


def entry(**changes):
    return {"name": "a", "dtype": "<i8", "shape": [8], "crc32": zlib.crc32(bytes(64))} | changes


NONSENSE = {
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe\xff",
    "too deep": b"[" * 200_000,
    "long number": b'{"header": ' + b"9" * 5_000,
    "a list": [],
    "a number": 7,
    "no header": {"arrays": []},
    "a header of another type": {"header": 1, "arrays": [entry()]},
    "no arrays": {"header": {}},
    "arrays that are none": {"header": {}, "arrays": [1]},
    "objects": {"header": {}, "arrays": [entry(dtype="|O")]},
    "big-endian": {"header": {}, "arrays": [entry(dtype=">i8")]},
    "a type that is a list": {"header": {}, "arrays": [entry(dtype=["<i8"])]},
    "a type of none": {"header": {}, "arrays": [entry(dtype="<x9")]},
    "negative": {"header": {}, "arrays": [entry(shape=[-8])]},
    "twice negative": {"header": {}, "arrays": [entry(shape=[-2, -4])]},
    "minus one": {"header": {}, "arrays": [entry(name="b", shape=[-1], crc32=0), entry()]},
    "a fraction": {"header": {}, "arrays": [entry(shape=[8.0])]},
    "a truth": {"header": {}, "arrays": [entry(shape=[True, 8])]},
    "no shape": {"header": {}, "arrays": [entry(shape=None)]},
    "a huge shape": {"header": {}, "arrays": [entry(shape=[2**62, 2**62])]},
    "a huge empty shape": {"header": {}, "arrays": [entry(shape=[0, 2**62, 2**62])]},
    "too many dimensions": {"header": {}, "arrays": [entry(shape=[1] * 100 + [8])]},
    "too long": {"header": {}, "arrays": [entry(shape=[9])]},
    "too short": {"header": {}, "arrays": [entry(shape=[])] * 0},
    "two of one name": {"header": {}, "arrays": [entry(), entry()]},
    "a number for a name": {"header": {}, "arrays": [entry(name=3)]},
    "no checksum": {"header": {}, "arrays": [{"name": "a", "dtype": "<i8", "shape": [8]}]},
    "another checksum": {"header": {}, "arrays": [entry(crc32=1)]},
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_under_a_good_checksum(case, tmp_path):
    assert store.unpack(forged({"header": {}, "arrays": [entry()]}, tail=bytes(64)))[1]["a"].tolist() == [0] * 8
    data = forged(NONSENSE[case], tail=bytes(64))
    (tmp_path / "x").write_bytes(data)
    for call in (lambda: store.unpack(data), lambda: store.read_arrays(tmp_path / "x")):
        with pytest.raises(StoreError, match="is damaged .*: copy it again"):
            call()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"PAR1" + bytes(200), "not a saved matcher"),
        (b"col", "cut short"),
        (
            forged({}, version=store.VERSION + 1),
            f"version {store.VERSION + 1}.*version {store.VERSION}: install a newer",
        ),
        (forged({}, version=1), "version 1.*: build and save it again"),
        (forged({}, total=2**63), "should have"),
        (forged({}, length=2**63), "header would end"),
    ],
)
def test_says_what_is_wrong_and_what_to_do(tmp_path, data, message):
    path = tmp_path / "x"
    path.write_bytes(data)
    for call in (store.read_arrays, store.content_hash):
        with pytest.raises(StoreError, match=message) as caught:
            call(path)
        assert str(path) in str(caught.value)


def test_what_is_no_file(tmp_path):
    for call in (store.read_arrays, store.content_hash):
        with pytest.raises(FileNotFoundError):
            call(tmp_path / "none")
        with pytest.raises(StoreError, match="is a folder"):
            call(tmp_path)
        with pytest.raises(StoreError, match="not a regular file"):
            call(os.devnull)
    with pytest.raises(StoreError, match="is a folder"):
        store.write_arrays(tmp_path, {}, {})
    with pytest.raises(FileNotFoundError):
        store.write_arrays(tmp_path / "none" / "x", {}, {})


def test_content_hash_follows_the_content(saved, tmp_path):
    other = tmp_path / "other"
    store.write_arrays(other, HEADER, ARRAYS)
    assert store.content_hash(other) == store.content_hash(saved)
    store.write_arrays(other, HEADER | {"kind": "betree"}, ARRAYS)
    assert store.content_hash(other) != store.content_hash(saved)
    store.write_arrays(other, HEADER, ARRAYS | {"weight": np.array(0.25)})
    assert store.content_hash(other) != store.content_hash(saved)


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.array(["a"]), np.array([1j]), np.zeros(2, [("a", "i4")]), np.zeros(1, "M8[s]")]
)
def test_other_types_are_refused_and_the_old_file_stays(saved, array):
    before = saved.read_bytes()
    with pytest.raises(StoreError, match="array 'odd' is of type .* cannot be saved"):
        store.write_arrays(saved, {}, ARRAYS | {"odd": array})
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_nothing_is_left_when_writing_fails(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(os, name, fail)
            store.write_arrays(saved, {}, {})
        assert saved.read_bytes() == before
        assert os.listdir(saved.parent) == [saved.name]
    with pytest.raises(TypeError):
        store.write_arrays(saved, {"a": object()}, ARRAYS)
    assert os.listdir(saved.parent) == [saved.name]


def test_writes_through_a_link(saved, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(saved)
    store.write_arrays(link, {"new": 1}, {})
    assert link.is_symlink()
    assert store.read_arrays(saved) == ({"new": 1}, {})


def test_a_mapped_file_may_be_replaced(tmp_path):
    path = tmp_path / "x"
    store.write_arrays(path, {"n": 0}, {"a": np.zeros(100_000)})
    _, old = store.read_arrays(path)
    for n in range(1, 4):
        store.write_arrays(path, {"n": n}, {"a": np.full(10 * n, float(n))})
    assert not old["a"].any()
    assert store.read_arrays(path)[1]["a"].tolist() == [3.0] * 30


def test_readers_see_whole_files_while_it_is_replaced(tmp_path):
    path = tmp_path / "x"
    store.write_arrays(path, {"n": 0}, {"a": np.zeros(1_000)})
    stop = threading.Event()

    def replace(seed):
        n = seed
        while not stop.is_set():
            store.write_arrays(path, {"n": n}, {"a": np.full(1_000 + n % 7, float(n))})
            n += 2

    writers = [threading.Thread(target=replace, args=(seed,)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    try:
        seen = set()
        until = time.monotonic() + 20
        while len(seen) < 20 and time.monotonic() < until:
            header, arrays = store.read_arrays(path, mmap=len(seen) % 2 == 0)
            assert set(arrays["a"].tolist()) == {float(header["n"])}
            seen.add(header["n"])
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert len(seen) >= 20
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_while_writing(saved):
    program = """
        import sys, numpy as np
        from colmatch.store import file as store
        print("ready", flush=True)
        while True:
            store.write_arrays(sys.argv[1], {"n": 1}, {"a": np.arange(200_000)})
    """
    for pause in (0.001, 0.004, 0.01):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), str(saved)], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL  # until then it was at work
        process.stdout.close()
        header, arrays = store.read_arrays(saved)
        assert header in (HEADER, {"n": 1})
        assert "first" in arrays or arrays["a"].size == 200_000


@pytest.mark.parametrize(("version", "said"), [(None, "colmatch before 0.2 wrote"), ("7.0", "colmatch 7.0 wrote")])
def test_the_version_that_wrote_a_file_is_named(tmp_path, version, said):
    """Arrays of another version may mean something else, so that nothing is guessed about what
    is not there.
    """
    Matcher.build({1: "a = 1"}, {"a": "int64"}).save(tmp_path / "i")
    header, arrays = store.read_arrays(tmp_path / "i", False, True)
    header = {name: value for name, value in header.items() if name not in ("version", "segments")} | (
        {"version": version} if version else {}
    )
    store.write_arrays(tmp_path / "i", header, arrays)
    with pytest.raises(StoreError, match=rf"cannot read \S+/i, which {said} .*: build it again"):
        Matcher.open(tmp_path / "i")


def test_arrays_that_were_read_go_one_by_one(tmp_path: pathlib.Path) -> None:
    """Nothing that is small holds what is large: memory of the file goes with each array."""
    path = tmp_path / "saved"
    store.write_arrays(path, {}, {"large": np.zeros(10**6), "small": np.arange(3)})
    _, arrays = store.read_arrays(path, mmap=False)
    memory = weakref.ref(arrays["large"].base)
    assert arrays["small"].tolist() == [0, 1, 2] and not arrays["small"].flags.writeable
    del arrays["large"]
    assert memory() is None
