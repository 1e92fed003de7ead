"""Members of templates (``computed/templates.py``) as values of single events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from colmatch.arrays.frozen import freeze_view
from colmatch.events.computed.templates import MemberRows, Reach, Templates
from colmatch.events.single.computed import Evaluate, Event, evaluator


class EventMembers:
    """The members of templates, computed of single events. One thread at a time.

    Parameters
    ----------
    templates : at least one
    reach : as of ``Version.reach``
    column : returns the function that reads a column's value, None for a column that needs Arrow
    """

    def __init__(
        self, templates: Templates, reach: Reach, column: Callable[[tuple[str, ...]], Evaluate | None]
    ) -> None:
        self._rows = MemberRows(templates)
        self._attributes = templates.attributes
        self._reach = reach
        self._parts = [
            [(evaluator(part, column), part.type == "double") for part in group.parts] for group in templates.groups
        ]
        self._value = [np.zeros((len(parts), 1), np.int64) for parts in self._parts]
        self._valid = [np.zeros(1, np.uint8) for _ in self._parts]
        self._given = [
            (freeze_view(value), freeze_view(valid)) for value, valid in zip(self._value, self._valid, strict=True)
        ]

    def add(self, event: Event, attrs: list[int], values: list[int | float], forms: str) -> str:
        """Adds the keys of members that predicates can reach. Returns the forms of all values.

        Raises NeedsBatch: a part needs Arrow.
        """
        for parts, into, valid in zip(self._parts, self._value, self._valid, strict=True):
            computed = [compute(event) for compute, _ in parts]
            valid[0] = is_there = None not in computed
            if is_there:
                for i, (value, (_, is_double)) in enumerate(zip(computed, parts, strict=True)):
                    (into.view(np.float64) if is_double else into)[i, 0] = value
        number, _, key = self._rows.find(self._given, self._reach)
        if not len(number):
            return forms
        attrs += [self._attributes[i] for i in number.tolist()]
        values += key.tolist()
        return order_values(attrs, values, forms + "q" * len(number))


def order_values(attrs: list[int], values: list[int | float], forms: Sequence[str]) -> str:
    """Orders values by their attributes, and returns their forms."""
    order = sorted(range(len(attrs)), key=attrs.__getitem__)
    attrs[:], values[:] = [attrs[i] for i in order], [values[i] for i in order]
    return "".join([forms[i] for i in order])
