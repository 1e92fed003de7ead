"""The compile policy: one signature a kernel, and a cache on disk that is never stale, never in the
way and never needed.

Most tests run a small kernel in processes of their own (``kernel_copy.py``).
"""

import os
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_copy import MAIN, PROBE, STEP, Copy
from numba.core import config

from colmatch.kernels import _disk, _jit, bits


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def test_compiled_once_and_read_afterwards(copy):
    first = copy.run("get")
    assert (first["total"], first["one"], first["compiled"], first["loaded"]) == (15, 1, 2, 0)
    assert {"total", "get"} <= set(first["kernels"])
    assert "step" not in first["kernels"]
    assert Path(first["folder"]).parent == copy.cache
    files = copy.files()
    assert len(files) == 2
    second = copy.run("get")
    assert (second["total"], second["one"], second["compiled"], second["loaded"]) == (15, 1, 0, 2)
    assert second["folder"] == first["folder"]
    assert copy.files() == files
    assert not first["logs"]
    assert not second["logs"]


def test_nothing_is_made_before_a_kernel_is_called(copy):
    copy.run(program="from colmatch.kernels import _disk, _jit, probe; _disk.cache_dir()")
    assert not copy.cache.exists()


def test_an_edit_in_another_file_is_noticed(copy):
    before = copy.run()
    copy.write("probe_step", STEP.replace("x + 1", "x + 2"))
    after = copy.run()
    assert (before["total"], after["total"]) == (15, 20)
    assert before["folder"] == after["folder"]
    assert (after["compiled"], after["loaded"]) == (1, 0)


def test_an_edit_in_a_sub_folder_is_noticed(copy):
    """And only sources count: what Python or an editor leaves beside them does not."""
    (copy.sources / "deep" / "er").mkdir(parents=True)
    copy.write("probe", PROBE.replace("kernels.probe_step", "kernels.deep.er.step"))
    copy.write("deep/er/step", STEP)
    before = copy.run()
    (copy.sources / "deep" / "er" / "notes.txt").write_text("x")
    assert copy.run()["loaded"] == 1
    copy.write("deep/er/step", STEP.replace("x + 1", "x + 2"))
    after = copy.run()
    assert (before["total"], after["total"]) == (15, 20)
    assert (after["compiled"], after["loaded"]) == (1, 0)


def test_modules_of_one_name_in_two_folders(copy):
    """Their kernels have the same names and signatures, and neither gets the other's machine
    code.
    """
    one = """
        from colmatch.kernels._jit import kernel


        @kernel
        def match(x):
            return x + 1
    """
    for folder, text in (("opindex", one), ("kindex", one.replace("x + 1", "x * 10"))):
        (copy.sources / f"folder_{folder}").mkdir()
        copy.write(f"folder_{folder}/match", text)
    program = """
        import json, sys
        from colmatch.kernels import _disk, _jit
        from colmatch.kernels.folder_kindex import match as second
        from colmatch.kernels.folder_opindex import match as first

        print(json.dumps([first.match(7), second.match(7), sum(sum(k.stats.cache_hits.values()) for k in _jit.kernels())]))
    """
    assert copy.run(program=program) == [8, 70, 0]
    assert [Path(name).name.rpartition("-")[0] for name in copy.files()] == [
        "folder_kindex.match.match",
        "folder_opindex.match.match",
    ]
    assert copy.run(program=program) == [8, 70, 2]


def test_a_python_without_the_global_lock_has_kernels_of_its_own(copy):
    """It has the version and the name of the other one, but objects of another form."""
    pretended = """
        import sysconfig

        asked = sysconfig.get_config_var
        sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else asked(name)
    """
    first = copy.run("get")
    second = copy.run("get", program=textwrap.dedent(pretended) + textwrap.dedent(MAIN))
    assert (second["compiled"], second["loaded"]) == (2, 0) and first["folder"] != second["folder"]


def test_a_linked_kernel_is_compiled_for_one_that_calls_it(copy):
    """Of its machine code, another kernel knows nothing: neither its types nor its bitcode."""
    copy.write(
        "pair",
        """
        from colmatch.kernels._jit import kernel


        @kernel
        def inner(x):
            return x + 1


        @kernel
        def outer(x):
            return 10 * inner(x)
        """,
    )
    program = """
        import json, sys
        from colmatch.kernels import _disk, _jit, pair

        found = [pair.inner(1), *(pair.outer(1) for _ in sys.argv[1:]), pair.inner(2), pair.inner(2.5)]
        print(json.dumps([*found, *(sum(k.stats.cache_hits.values()) for k in (pair.inner, pair.outer))]))
    """
    assert copy.run(program=program) == [2, 3, 3.5, 0, 0]
    assert copy.run("outer", program=program) == [2, 20, 3, 3.5, 2, 0]
    assert copy.run("outer", program=program) == [2, 20, 3, 3.5, 2, 1]


def test_sources_edited_after_their_import_keep_nothing(copy):
    """What is in memory is not what the folder would be named by, so neither reads nor writes."""
    edit = (
        "p = _disk.Path(probe.__file__).with_name('probe_step.py'); p.write_text(p.read_text().replace('+ 1', '+ 22'))"
    )
    before, values, after = textwrap.dedent(MAIN).partition("values = np.arange(5)")
    assert copy.run(program=f"{before}{edit}\n{values}{after}")["total"] == 15
    assert not copy.cache.exists()
    assert copy.run()["total"] == 10 + 5 * 22


def test_bounds_are_checked_however_warm_the_cache(copy):
    copy.run("get")
    assert copy.run("get", "outside", NUMBA_BOUNDSCHECK="1")["outside"] == "found"
    assert copy.run("get", NUMBA_BOUNDSCHECK="1")["loaded"] == 2


@pytest.mark.parametrize("setting", _disk.SETTINGS)
def test_settings_of_numba_are_in_the_name(setting, monkeypatch):
    before = _disk.cache_dir()
    monkeypatch.setattr(config, setting, "another", raising=False)
    assert _disk.cache_dir() != before


def test_several_signatures_are_kept_apart(copy):
    """The policy is one signature a kernel, but should there be two, neither gets the other's
    code.
    """
    assert copy.run("float")["float"] == 4.5
    said = copy.run("float")
    assert (said["total"], said["float"], said["compiled"], said["loaded"]) == (15, 4.5, 0, 2)


def test_two_processes_at_once(copy):
    processes = [copy.start("get"), copy.start("float")]
    said = [copy.finish(process) for process in processes]
    assert (said[0]["total"], said[0]["one"]) == (15, 1)
    assert (said[1]["total"], said[1]["float"]) == (15, 4.5)
    again = copy.run("get", "float")
    assert (again["total"], again["one"], again["float"], again["compiled"]) == (15, 1, 4.5, 0)
    assert not any(name.endswith(".tmp") for name in copy.files())


def test_with_the_jit_off_decorators_return_the_function(copy):
    program = """
        import types
        import numpy as np
        from colmatch.kernels import _disk, _jit, probe, probe_step

        assert type(probe.total) is type(probe_step.step) is types.FunctionType
        assert probe.total(probe.State(np.arange(5)), 0) == 15
        assert _jit.kernels() == []
    """
    copy.run(program=program, NUMBA_DISABLE_JIT="1")
    assert not copy.cache.exists()


def test_settings_of_the_process_are_left_alone(copy):
    program = """
        import os
        import numpy as np
        from numba.core import config

        def settings():
            return dict(os.environ), {name: getattr(config, name) for name in dir(config) if name.isupper()}

        before = settings()
        from colmatch.kernels import probe
        probe.total(probe.State(np.arange(5)), 0)
        assert settings() == before
    """
    copy.run(program=program)


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_arrays_are_not_counted():
    @_jit.device
    def either(a, b, i):
        if i > 1:
            return a[i]
        return b[i]

    @_jit.kernel
    def total(a, b):
        n = 0.0
        for i in range(len(a)):
            n += either(a, b, i) / a[i]
        return n

    assert total(np.ones(4), np.full(4, 2.0)) == 6.0
    (code,) = total.inspect_llvm().values()
    assert "NRT_incref" not in code and "NRT_decref" not in code


@_jit.kernel
def compiled_bits(words, out):
    for i in range(words.size):
        out[i, 0] = bits.ctz(words[i])
        out[i, 1] = bits.popcount(words[i])


WORDS = st.integers(0, 2**64 - 1) | st.integers(0, 64).map(lambda n: (1 << n) & (2**64 - 1))


@given(st.lists(WORDS, min_size=1, max_size=20))
def test_bits_are_those_of_python(words):
    array = np.array(words, np.uint64)
    out = np.zeros((len(words), 2), np.uint64)
    compiled_bits(array, out)
    binary = [format(word, "064b") for word in words]
    assert out[:, 0].tolist() == [64 if "1" not in text else len(text) - 1 - text.rindex("1") for text in binary]
    assert out[:, 1].tolist() == [text.count("1") for text in binary]
    assert [[bits.ctz(word), bits.popcount(word)] for word in array] == out.tolist()
    assert all(type(bits.ctz(word)) is np.uint64 for word in array)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="Python has one kind of integer")
def test_bits_of_other_words_are_refused():
    from numba.core.errors import TypingError

    with pytest.raises(TypingError):
        compiled_bits(np.zeros(1, np.int64), np.zeros((1, 2), np.uint64))


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_a_brief_kernel_is_kept_apart_from_the_one_that_lets_go_of_the_lock():
    from colmatch.kernels.kinds.scan.match import enter, enter_few

    assert enter.py_func is enter_few.py_func and enter._cache.name != enter_few._cache.name
    assert enter.targetoptions["nogil"] and not enter_few.targetoptions["nogil"]


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_the_entry_of_a_kernel_is_its_machine_code_once_it_is_compiled(monkeypatch):
    def double(x):
        return 2 * x

    for bounds, straight in ((1, False), (0, True)):
        monkeypatch.setattr(config, "BOUNDSCHECK", bounds)
        one = _jit.kernel(double)
        assert _jit.entry(one) is one  # compiled when it is called
        assert one(1) == 2
        assert (_jit.entry(one) is not one) == straight
        assert _jit.entry(one) is _jit.entry(one) and _jit.entry(one)(4) == 8
