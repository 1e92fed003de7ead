"""A matcher over a Spark DataFrame: ``match``, ``local_session`` and ``check_java``.

``frames`` is what runs in the session and ``worker`` what runs in Spark's Python workers. Names are
imported when first used: workers import this package and must not need the session's classes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colmatch.spark.frames import check_java as check_java
    from colmatch.spark.frames import local_session as local_session
    from colmatch.spark.frames import match as match

__all__ = ["check_java", "local_session", "match"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'colmatch.spark' has no attribute {name!r}")
    return getattr(import_module("colmatch.spark.frames"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
