"""Machine code that came with the package is used where it fits; elsewhere a line says why not."""

from __future__ import annotations

import os
import textwrap
from typing import Any

import pytest
from kernel_copy import MAIN, STEP, Copy

from colmatch.kernels import _bundle

pytestmark = [
    pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"),
    pytest.mark.skipif(_bundle.level_here() is None, reason="there are no bundles for such a machine"),
]

PACK = """
    from colmatch.kernels import _bundle, _disk, _jit

    folder = _disk.cache_dir()
    _bundle.write(
        _bundle.path_of(_bundle.level_here()), _disk.bundle_key(), {path.name: path.read_bytes() for path in folder.glob("*.bin")}
    )
"""


@pytest.fixture
def bundled(tmp_path):
    """A package with a bundle, and an empty folder of compiled kernels."""
    copy = Copy(tmp_path)
    copy.run("get")
    copy.run(program=PACK)
    copy.cache = tmp_path / "other"
    return copy


def with_setup(setup: str = "") -> str:
    """Returns a program that changes something before it calls kernels, of which none is small."""
    names = "from colmatch.kernels import _compiling, _disk, _jit, probe\n"
    never = "from colmatch.kernels import _interpret\n_interpret.SMALL = -1\n"
    return textwrap.dedent(MAIN).replace(names, f"{setup}\n{names}{never}")


def run(copy, *what: str, setup: str = "", **settings: str) -> Any:
    return copy.run(*what, program=with_setup(setup), **{"COLMATCH_KERNELS": "auto", **settings})


def path_of(copy) -> Any:
    return copy.sources / _bundle.path_of(_bundle.level_here()).name


@pytest.mark.parametrize(
    ("machine", "level"), [("x86_64", "x86-64-v3"), ("aarch64", "arm64"), ("arm64", "arm64"), ("riscv64", None)]
)
def test_machines_have_a_level(monkeypatch, machine, level):
    monkeypatch.setattr(_bundle.platform, "machine", lambda: machine)
    assert _bundle.level_here() == level


def test_nothing_is_compiled(bundled):
    said = run(bundled, "get", COLMATCH_KERNELS="ready")
    assert (said["total"], said["one"], said["compiled"], said["loaded"], said["logs"]) == (15, 1, 0, 2, [])
    assert not bundled.cache.exists()


def test_it_serves_who_has_no_folder(bundled):
    said = run(bundled, "get", COLMATCH_KERNELS="ready", COLMATCH_CACHE_DIR=None, HOME="~", XDG_CACHE_HOME=None)
    assert (said["total"], said["loaded"]) == (15, 2)


def test_what_is_not_in_it_is_compiled(bundled):
    said = run(bundled, "get", "float")
    assert (said["float"], said["compiled"], said["loaded"], said["logs"]) == (4.5, 1, 2, [])


def test_what_is_not_in_it_is_an_error_if_nothing_may_be_compiled(bundled):
    process = bundled.start("float", COLMATCH_KERNELS="ready")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert (
        "KernelError: kernel colmatch.kernels.probe.total is not compiled for these arguments, and COLMATCH_KERNELS=ready forbids"
        in err
    )


def test_what_was_compiled_here_goes_before_it(bundled):
    setup = """
from colmatch.kernels import _bundle
asked, read = [], _bundle.Bundle.read
_bundle.Bundle.read = lambda self, name: asked.append(name) or read(self, name)
"""
    program = with_setup(setup).replace('said["logs"] = logs', 'said["asked"] = len(asked)')
    assert bundled.run("get", program=program, COLMATCH_KERNELS="auto")["asked"] == 2
    assert bundled.run(COLMATCH_KERNELS="native")["compiled"] == 1
    assert len(bundled.files()) == 1
    assert bundled.run("get", program=program, COLMATCH_KERNELS="auto")["asked"] == 1


def damaged(copy) -> str:
    path = path_of(copy)
    path.write_bytes(path.read_bytes().replace(b'"key"', b'"kex"', 1))
    return "it is damaged"


def cut(copy) -> str:
    path = path_of(copy)
    path.write_bytes(path.read_bytes()[:-1])
    return "it is damaged"


def empty(copy) -> str:
    path_of(copy).write_bytes(b"")
    return "it is damaged"


@pytest.mark.parametrize("spoil", [damaged, cut, empty])
def test_a_bundle_that_does_not_fit_is_not_used(bundled, spoil):
    why = spoil(bundled)
    said = run(bundled, "get")
    assert (said["total"], said["one"], said["compiled"], said["loaded"]) == (15, 1, 2, 0)
    ((level, text),) = said["logs"]
    assert level == "WARNING" and why in text and str(path_of(bundled)) in text


def test_kernels_whose_sources_were_edited_are_compiled(bundled):
    bundled.write("probe_step", STEP.replace("x + 1", "1 + x"))
    said = run(bundled, "get")
    assert (said["total"], said["one"], said["compiled"], said["loaded"], said["logs"]) == (15, 1, 2, 0, [])


@pytest.mark.parametrize(
    ("setup", "why"),
    [
        ("import numba; numba.__version__ = '0.68.99'", "they are for numba 0.68"),
        ("import llvmlite, numba; llvmlite.__version__ = '0'", "they are for llvmlite"),
        (
            "import llvmlite.binding as b; b.get_process_triple = lambda: 'x86_64-unknown-hurd'",
            "this is x86_64-unknown-hurd",
        ),
        (
            "import llvmlite.binding as b; real = b.get_host_cpu_features().copy(); real.update(avx2=False, neon=False); "
            "b.get_host_cpu_features = lambda: type('Map', (dict,), {'flatten': lambda self: ''})(real)",
            "this processor is below",
        ),
    ],
)
def test_another_machine_compiles(bundled, setup, why):
    said = run(bundled, "get", setup=setup)
    assert (said["total"], said["compiled"], said["loaded"]) == (15, 2, 0)
    ((level, text),) = said["logs"]
    assert level == "WARNING" and why in text


@pytest.mark.parametrize(
    "settings",
    [{"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_OPT": "1"}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}],
)
def test_who_wishes_for_other_code_gets_it(bundled, settings):
    said = run(bundled, "get", **settings)
    assert (said["compiled"], said["loaded"], said["logs"]) == (2, 0, [])


def test_a_damaged_entry_is_compiled(bundled):
    path = path_of(bundled)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    said = run(bundled, "get")
    assert (said["total"], said["one"], said["compiled"], said["loaded"]) == (15, 1, 1, 1)
    ((_, text),) = said["logs"]
    assert "of the bundle is damaged" in text
