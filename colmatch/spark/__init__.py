"""A matcher over a Spark DataFrame: ``build``, ``match``, ``match_topk``, ``totals``.

``matchers`` and ``frames`` run in the session, which ``session`` can make. ``worker`` runs in
Spark's Python workers. Names are imported when first used: workers import this package and must not
need the session's classes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from colmatch.show.names import listed_names

if TYPE_CHECKING:
    from colmatch.spark.frames import match as match
    from colmatch.spark.frames import match_topk as match_topk
    from colmatch.spark.frames import totals as totals
    from colmatch.spark.functions import hits as hits
    from colmatch.spark.functions import register as register
    from colmatch.spark.matchers import build as build
    from colmatch.spark.session import check_java as check_java
    from colmatch.spark.session import local_session as local_session
    from colmatch.spark.shards import ShardSet as ShardSet
    from colmatch.spark.shards import build_shards as build_shards
    from colmatch.spark.shards import describe_shards as describe_shards
    from colmatch.spark.shards import update_shards as update_shards
    from colmatch.spark.source import register_source as register_source
    from colmatch.spark.streams import match_stream as match_stream

_HOMES = {
    "ShardSet": "shards",
    "build": "matchers",
    "build_shards": "shards",
    "check_java": "session",
    "describe_shards": "shards",
    "hits": "functions",
    "local_session": "session",
    "match": "frames",
    "match_stream": "streams",
    "match_topk": "frames",
    "register": "functions",
    "register_source": "source",
    "totals": "frames",
    "update_shards": "shards",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'colmatch.spark' has no attribute {name!r}")
    return getattr(import_module(f"colmatch.spark.{home}"), name)


def __dir__() -> list[str]:
    return listed_names(__all__, globals())
