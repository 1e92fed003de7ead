"""What the folder of compiled kernels is named by."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import llvmlite
import numba
import numpy as np
import pytest

from colmatch.kernels import _code, _disk

pytestmark = pytest.mark.skipif(not _code.IS_KNOWN, reason="nothing is kept with this numba")
SETTINGS = {
    "BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DISABLE_INTEL_SVML", "USING_SVML", "DEBUGINFO_DEFAULT",
    "ENABLE_PROFILING", "DEBUG_NRT", "NRT_STATS", "LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS",
}  # fmt: skip


@pytest.mark.parametrize(
    ("where", "name", "other"),
    [
        (numba, "__version__", "0.0"),
        (llvmlite, "__version__", "0.0"),
        (np, "__version__", "0.0"),
        (sys, "version_info", (3, 99)),
        (
            _code.cpu_target.target_context,
            "codegen",
            lambda: SimpleNamespace(magic_tuple=lambda: ("another processor",)),
        ),
    ],
    ids=["numba", "llvmlite", "numpy", "Python", "processor"],
)
def test_versions_and_the_processor_are_in_the_name(
    where: Any, name: str, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _disk.cache_dir()
    assert before is not None and before == _disk.cache_dir()
    monkeypatch.setattr(where, name, other)
    assert _disk.cache_dir() != before


def test_settings_that_change_machine_code_are_in_the_name() -> None:
    assert set(_disk.SETTINGS) >= SETTINGS
