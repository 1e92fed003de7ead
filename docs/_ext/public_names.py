"""The public names, as the reference must have them."""

import inspect
from functools import cache
from importlib import import_module
from types import ModuleType

MODULES = (
    "colmatch",
    "colmatch.betree",
    "colmatch.tables.columns",
    "colmatch.tables.duckdb",
    "colmatch.tables.polars",
    "colmatch.rules",
    "colmatch.spark",
)


@cache
def public_names() -> dict[str, object]:
    """Returns each public name, with dots, and what it names: functions, classes, their members."""
    found: dict[str, object] = {}
    for module in MODULES:
        home = import_module(module)
        for name in home.__all__:
            value = getattr(home, name)
            if isinstance(value, ModuleType):
                continue
            found[f"{module}.{name}"] = value
            if inspect.isclass(value) and not issubclass(value, BaseException):
                found |= {f"{module}.{name}.{member}": getattr(value, member) for member in members(value)}
    return found


def members(value: type) -> list[str]:
    """Returns the public methods and properties of a class that have a docstring of their own."""
    return [
        name
        for name, member in vars(value).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property | classmethod | staticmethod))
    ]
