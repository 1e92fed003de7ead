"""Functions of SQL for the builder: ``cm.functions.lower(cm.col("s")) == "x"``.

Each function of the language is a name here, made when it is first used.

>>> import colmatch as cm
>>> from colmatch import functions as F
>>> str(F.lower(cm.col("city")) == "nice")
"lower(city) = 'nice'"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from colmatch.expr.build import ColumnHandle, function, maker_of
from colmatch.expr.functions import NAMES, VALUE

if TYPE_CHECKING:  # functions that make no values but conditions
    from colmatch.expr.ast import Expr
    from colmatch.expr.build_special import at_least as at_least
    from colmatch.expr.build_special import geo_within_radius as geo_within_radius
    from colmatch.expr.build_special import segment_before as segment_before
    from colmatch.expr.build_special import segment_within as segment_within
    from colmatch.expr.build_special import within_frequency_cap as within_frequency_cap

    Condition = Callable[..., Expr]
    array_contains: Condition
    arrays_overlap: Condition
    contains: Condition
    contains_all: Condition
    endswith: Condition
    exists: Condition
    forall: Condition
    isnotnull: Condition
    isnull: Condition
    regexp_like: Condition
    startswith: Condition

# Conditions have one name each, so that their types can be declared above
_NAMES = frozenset(
    name for name, row in NAMES.items() if maker_of(row) is not None and (row.kind == VALUE or row.name == name)
)


def __getattr__(name: str) -> Callable[..., ColumnHandle]:
    """Returns a function of SQL by its name. Names that Python keeps for itself end with ``_``."""
    plain = name.removesuffix("_")
    if plain not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _make(plain)


def __dir__() -> list[str]:
    return sorted(name + "_" * iskeyword(name) for name in _NAMES)


@cache  # not in the names of this module, where functions such as len have Python's meaning
def _make(name: str) -> Callable[..., ColumnHandle]:
    """Makes the function of a name, with its signature and documentation."""

    def call(*arguments: Any) -> ColumnHandle:
        made: ColumnHandle = function(name, *arguments)
        return made

    row = NAMES[name]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{row.about}\n\n{row.signature}\n"
    least = len(row.arguments) - row.optional
    parameters = [
        Parameter(f"argument{i + 1}", Parameter.POSITIONAL_ONLY, default=None if i >= least else Parameter.empty)
        for i in range(len(row.arguments))
    ]
    if row.repeats:
        parameters.append(Parameter("more", Parameter.VAR_POSITIONAL))
    call.__signature__ = Signature(parameters, return_annotation=ColumnHandle)  # type: ignore[attr-defined]
    return call
