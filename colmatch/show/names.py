"""Names that completion lists: those of the public interface, and of Python itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


def listed_names(public: Iterable[str], names: Iterable[str]) -> list[str]:
    """Returns the ``__dir__`` of a module: its public names, and of all its names Python's own."""
    return sorted({*public, *(name for name in names if _is_of_python(name))})


class Listed:
    """A class whose objects list public names alone, in ``dir`` and completion."""

    __slots__ = ()
    _inner: ClassVar[frozenset[str]] = frozenset()  # names without an underscore that are not public

    def __dir__(self) -> list[str]:
        names = (name for name in object.__dir__(self) if name[0] != "_" or _is_of_python(name))
        return sorted(set(names) - self._inner)


def _is_of_python(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
