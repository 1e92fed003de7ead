"""colmatch finds the stored Boolean expressions that are true for each row of a batch.

There may be millions of expressions.

>>> import colmatch as cm
>>> import pyarrow as pa
>>> schema = {"age": "int64", "city": "string"}
>>> matcher = cm.Matcher.build({1: "age >= 18 AND city = 'Nice'", 2: "age < 18"}, schema)
>>> matcher.match(pa.table({"age": [36, 7], "city": ["Nice", None]})).to_pylist()
[{'event': 0, 'subscription': 1}, {'event': 1, 'subscription': 2}]

Names are imported when first used, so that ``import colmatch`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from colmatch.kernels import _forks  # noqa: F401  # before slow imports, which a fork waits for
from colmatch.show.names import listed_names
from colmatch.version import __version__ as __version__

if TYPE_CHECKING:
    from colmatch import betree as betree
    from colmatch import functions as functions
    from colmatch import rules as rules
    from colmatch.errors import ColmatchError as ColmatchError
    from colmatch.errors import DependencyError as DependencyError
    from colmatch.errors import EventError as EventError
    from colmatch.errors import ExpressionError as ExpressionError
    from colmatch.errors import KernelError as KernelError
    from colmatch.errors import OptionError as OptionError
    from colmatch.errors import SchemaError as SchemaError
    from colmatch.errors import StoreError as StoreError
    from colmatch.errors import SubscriptionError as SubscriptionError
    from colmatch.events.long_form import from_pairs as from_pairs
    from colmatch.explain import Explanation as Explanation
    from colmatch.expr.build import col as col
    from colmatch.expr.build import function as function
    from colmatch.expr.build_special import at_least as at_least
    from colmatch.expr.build_special import geo_within_radius as geo_within_radius
    from colmatch.expr.build_special import segment_before as segment_before
    from colmatch.expr.build_special import segment_within as segment_within
    from colmatch.expr.build_special import within_frequency_cap as within_frequency_cap
    from colmatch.given.options import Options as Options
    from colmatch.given.schema import Schema as Schema
    from colmatch.kinds.plan import index as index
    from colmatch.matcher import Changes as Changes
    from colmatch.matcher import Matcher as Matcher
    from colmatch.matcher import Rejected as Rejected
    from colmatch.matcher import Subscription as Subscription
    from colmatch.matcher import index_kinds as index_kinds
    from colmatch.matching.report import Report as Report
    from colmatch.subscriptions.table import PredicateTable as PredicateTable
    from colmatch.warming import warm as warm

_NAMES = {
    "betree": ("betree",),
    "errors": (
        "ColmatchError", "DependencyError", "EventError", "ExpressionError", "KernelError", "OptionError", "SchemaError", "StoreError",
        "SubscriptionError",
    ),
    "events.long_form": ("from_pairs",),
    "explain": ("Explanation",),
    "functions": ("functions",),
    "expr.build": ("col", "function"),
    "expr.build_special": ("at_least", "geo_within_radius", "segment_before", "segment_within", "within_frequency_cap"),
    "kinds.plan": ("index",),
    "matcher": ("Changes", "Matcher", "Rejected", "Subscription", "index_kinds"),
    "matching.report": ("Report",),
    "given.options": ("Options",),
    "rules": ("rules",),
    "given.schema": ("Schema",),
    "subscriptions.table": ("PredicateTable",),
    "warming": ("warm",),
}  # fmt: skip
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'colmatch' has no attribute {name!r}")
    module = import_module(f"colmatch.{home}")
    value = globals()[name] = module if home == name else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return listed_names(__all__, globals())
