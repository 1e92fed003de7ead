"""Half of the kernels are interpreted, and half are compiled, within each matcher."""

from __future__ import annotations

import zlib
from typing import Any

from colmatch.kernels import _interpret, _jit


def mix(seed: int) -> None:
    """Lets chance say of each kernel whether this process interprets it."""

    def code_or_twin(kernel: Any, arguments: tuple[Any, ...]) -> Any:
        chosen = zlib.crc32(f"{seed} {kernel._cache.name}".encode()) & 1
        return _interpret.interpret_kernel(kernel) if chosen else None

    _jit.MODE = "auto"
    _jit._code_or_twin = code_or_twin
