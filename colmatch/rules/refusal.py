"""Faults of rules, and the depth to which rules nest: what every format shares below its operators.

A reader of a format is a generator. It yields the reading of each part and is sent the result, so
it reads like recursion but takes no stack, however deep a rule nests.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Generic, TypeVar

from colmatch.errors import show_value, suggest_names

DEEPEST = 400  # levels of conditions, which is the most that Options(max_depth=...) allows

T = TypeVar("T")
Steps = Generator["Steps[Any]", Any, T]


class Unusable(Exception):
    """The error for a part of a rule that cannot be converted.

    Attributes
    ----------
    place : the path to it, within its rule or named condition
    owner : the named condition around it, else None
    """

    def __init__(self, place: str, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.owner: str | None = None


def run(reading: Steps[T]) -> T:
    """Runs a reading to its end, with all that it yields.

    Raises Unusable: a part cannot be converted, or parts nest too deep.
    """
    stack: list[Steps[Any]] = [reading]
    result: Any = None
    fault: Unusable | None = None
    while stack:
        try:
            part = stack[-1].send(result) if fault is None else stack[-1].throw(fault)
            result, fault = None, None
            if len(stack) > DEEPEST:
                fault = Unusable("", f"conditions nest deeper than {DEEPEST} levels")
            else:
                stack.append(part)
        except StopIteration as end:
            stack.pop()
            result, fault = end.value, None
        except Unusable as error:
            stack.pop()
            result, fault = None, error
    if fault is not None:
        raise fault
    made: T = result
    return made


class Named(Generic[T]):
    """Named conditions that rules refer to. Each is read once.

    Parameters
    ----------
    given : the conditions by name
    what : the word for one of them in errors
    remedy : where a missing one is to be written
    """

    def __init__(self, given: Mapping[Any, Any], what: str, remedy: str) -> None:
        self.given = given
        self._what = what
        self._remedy = remedy
        self._known: dict[str, T] = {}
        self._inside: list[str] = []  # names of those that are being read

    def find(self, name: Any, place: str, read: Callable[[Any], Steps[T]]) -> Steps[T]:
        """Returns what ``read`` makes of a named condition.

        Raises Unusable: there is none, or it refers to itself.
        """
        if not isinstance(name, str):
            raise Unusable(place, f"the name of a {self._what} is needed, not {show_value(name)}")
        if name in self._inside:
            circle = " -> ".join(map(show_value, [*self._inside[self._inside.index(name) :], name]))
            raise Unusable(place, f"{self._what}s refer to one another in a circle: {circle}")
        if name in self._known:
            return self._known[name]
        if name not in self.given:
            known = [str(one) for one in self.given if isinstance(one, str)]
            more = suggest_names(name[:200], known, self._remedy) if known else f"{self._remedy} takes them"
            raise Unusable(place, f"there is no named {self._what} {show_value(name)}: {more}")
        self._inside.append(name)
        try:
            self._known[name] = yield read(self.given[name])
        except Unusable as error:
            error.owner = error.owner or f"{self._what} {show_value(name)}"
            raise
        finally:
            self._inside.pop()
        return self._known[name]
