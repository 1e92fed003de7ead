"""A matcher over a Spark DataFrame: ``match``, ``match_topk``, ``local_session``, ``check_java``.

``frames`` is what runs in the session, which ``session`` makes, and ``worker`` what runs in Spark's
Python workers. Names are imported when first used: workers import this package and must not need
the session's classes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colmatch.spark.frames import match as match
    from colmatch.spark.frames import match_topk as match_topk
    from colmatch.spark.session import check_java as check_java
    from colmatch.spark.session import local_session as local_session
    from colmatch.spark.source import register_source as register_source

__all__ = ["check_java", "local_session", "match", "match_topk", "register_source"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'colmatch.spark' has no attribute {name!r}")
    module = "source" if name == "register_source" else "frames" if name.startswith("match") else "session"
    return getattr(import_module(f"colmatch.spark.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
