"""Settings of a kind of index: a value, checked once, with a description of each setting.

Each kind has a dataclass in its own file. Only this has the meaning of a setting, its default and
its allowed values: errors, the command line and ``colmatch kinds`` read them there.

One dataclass of all kinds' settings in ``Options`` was the other design: each kind would then check
settings that it does not know.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

from colmatch.errors import OptionError, show_value
from colmatch.given.arguments import file_name, python_value
from colmatch.given.options import value_of_text


class Budget(NamedTuple):
    """Limits of the conjunctions that a part of an expression is multiplied out into.

    The parts are those of the outermost OR, or the expression itself. A part of more is kept whole,
    as a program. Parts that are conjunctions need no budget, in any number. All others together
    take 16 budgets at most (``expr/assemble.py``).
    """

    dnf: int  # of any part
    cnf: int  # of a part that is an AND of at most ``clauses`` predicates and ORs of predicates
    clauses: int = 0
    # Most programs that one program is divided into, each with a predicate that it needs. Kinds
    # that find no program by a predicate have 0, and keep each in one piece.
    programs: int = 0


PROGRAMS_MOST = 64  # ``Budget.programs`` of kinds that find programs by a predicate


def setting(default: Any, meaning: str, allowed: Container[Any]) -> Any:
    """Declares a field of ``Settings``: bool, int or str, as its default is.

    allowed : ``(True, False)``, a ``range`` or a tuple of texts
    """
    return dataclasses.field(default=default, metadata={"meaning": meaning, "allowed": allowed})


def dnf_budget(default: int) -> Any:
    """Declares the setting that every kind has."""
    meaning = (
        "most conjunctions that an AND of ORs is multiplied out into; of more, it is kept whole, as a program. "
        "The parts of an OR at the top are counted one by one, and take 16 budgets together at most"
    )
    return setting(default, meaning, range(1, 4097))


class FileNames(tuple[str, ...]):
    """All possible names of files, besides the listed texts."""

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, str) or super().__contains__(value):
            return isinstance(value, str)
        with suppress(ValueError):
            return b"\0" not in os.fsencode(value) and not value.endswith(os.sep)
        return False


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """A kind of index and its settings, made by ``colmatch.index``. Kinds extend this class.

    Attributes
    ----------
    kind : name of the kind
    about : description of the kind in one line
    by_predicate : whether the kind finds conjunctions and programs by a predicate that they need
    """

    kind: ClassVar[str]
    about: ClassVar[str]
    by_predicate: ClassVar[bool] = False

    dnf_budget: int = dnf_budget(64)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = python_value(argument := getattr(self, field.name))
            if isinstance(value, (str, bytes, os.PathLike)) and isinstance(field.metadata["allowed"], FileNames):
                value = file_name(value)
            object.__setattr__(self, field.name, value)
            if type(value) is not type(field.default) or value not in field.metadata["allowed"]:
                needed = describe_allowed(field)
                raise OptionError(f"index({self.kind!r}, {field.name}={show_value(argument)}): {needed} is needed")

    def __repr__(self) -> str:
        changed = [f", {name}={value!r}" for name, value in self._find_changes().items()]
        return f"index({self.kind!r}{''.join(changed)})"

    def __str__(self) -> str:
        changed = [f"{name}={value}" for name, value in self._find_changes().items()]
        return f"{self.kind} ({', '.join(changed)})" if changed else self.kind

    @property
    def is_default(self) -> bool:
        return not self._find_changes()

    def _find_changes(self) -> dict[str, Any]:
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}

    @property
    def budget(self) -> Budget:
        return Budget(self.dnf_budget, self.dnf_budget, programs=PROGRAMS_MOST if self.by_predicate else 0)

    @classmethod
    def under(cls, dnf_budget: int) -> Self:
        """Returns the settings of an index with this one budget for all expressions."""
        return cls(dnf_budget=dnf_budget)

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def parse(cls, name: str, text: str) -> Any:
        """Reads the value of a setting from a text, or returns the text if it cannot be read."""
        return value_of_text(text, {field.name: field.default for field in fields(cls)}.get(name))


def describe_allowed(field: dataclasses.Field[Any]) -> str:
    """Describes the values that a setting may have."""
    values = field.metadata["allowed"]
    if isinstance(values, range):
        return f"a whole number from {values.start} to {values.stop - 1}"
    if isinstance(values, FileNames):
        return "the name of a file"
    return " or ".join(map(repr, values))
