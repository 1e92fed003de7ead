"""A workload: subscriptions and events as endless streams, any part of which can be had by itself.

Everything is drawn in chunks of a fixed size from ``numpy.random.SeedSequence((seed, what, number
of the chunk))``, so a part comes out alike however it is cut. Subscriptions do not depend on how
many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pyarrow as pa

from colmatch.errors import OptionError, show_value
from colmatch.given.arguments import check_whole, text
from colmatch.subscriptions.table import PredicateTable
from workload import events as draws_of_events
from workload import subscriptions as draws_of_subscriptions
from workload.parameters import Parameters
from workload.shapes import SHAPES

NAMES = tuple(SHAPES)


class Workload(Parameters):
    """Subscriptions and events that are drawn from parameters.

    Its fields are those of ``workload.parameters.Parameters``.

    Raises
    ------
    OptionError : a field has an invalid value. The message has the field and the allowed values
    """

    # Subscriptions

    def predicate_batches(self, start: int = 0, count: int | None = None) -> Iterator[pa.RecordBatch]:
        """Draws subscriptions ``start`` to ``start + count``, piece by piece, for
        ``PredicateTable``.

        If ``count`` is None, all subscriptions from ``start`` on are drawn.

        Columns id int64, attribute and op dictionaries of strings, operands large list of int64,
        and weight double if predicates have weights.
        """
        for part in draws_of_subscriptions.chunks(self, *self._cut(start, count)):
            yield draws_of_subscriptions.rows(part, self)

    def predicates(self, start: int = 0, count: int | None = None) -> pa.Table:
        """Draws these subscriptions as one table, a row for each predicate."""
        return pa.Table.from_batches(self.predicate_batches(start, count), draws_of_subscriptions.schema(self))

    def predicate_table(self, start: int = 0, count: int | None = None) -> PredicateTable:
        """Draws these subscriptions as a table that ``Matcher.build`` takes."""
        return PredicateTable(self.predicates(start, count))

    def text_batches(self, start: int = 0, count: int | None = None) -> Iterator[pa.RecordBatch]:
        """Draws these subscriptions as SQL text, piece by piece: columns id int64, expression
        string.
        """
        for part in draws_of_subscriptions.chunks(self, *self._cut(start, count)):
            yield draws_of_subscriptions.texts(part, self)

    def texts(self, start: int = 0, count: int | None = None) -> pa.Table:
        """Draws these subscriptions as SQL text: columns id int64, expression string."""
        return pa.Table.from_batches(self.text_batches(start, count), draws_of_subscriptions.TEXTS)

    def _cut(self, start: int, count: int | None) -> tuple[int, int]:
        start = _from_zero(start, "start")
        stop = self.subscriptions if count is None else start + _from_zero(count, "count")
        if stop > self.subscriptions or start > stop:
            raise OptionError(
                f"subscriptions {start:,} to {stop:,} were asked for, but there are {self.subscriptions:,} of them"
            )
        return start, stop

    # Events

    def schema(self) -> pa.Schema:
        """Returns the schema of the events, for ``Matcher.build``."""
        return draws_of_events.schema(self)

    def event_batches(self, rows: int, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Draws events ``start`` to ``start + rows`` of an endless stream, piece by piece.

        Raises
        ------
        OptionError : the workload has fewer different events
        """
        for pairs in draws_of_events.chunks(self, *_rows(rows, start)):
            yield draws_of_events.table(pairs, self)

    def events(self, rows: int, start: int = 0) -> pa.Table:
        """Draws these events as one table of contiguous columns."""
        return pa.Table.from_batches(self.event_batches(rows, start), self.schema()).combine_chunks()

    def pairs(self, rows: int, start: int = 0) -> pa.Table:
        """Draws these events in long form, a row for each pair.

        Columns event int64 (its number in the stream), attribute (``a17``), value int64.
        """
        numbers, batches = _rows(rows, start)[0], []
        for pairs in draws_of_events.chunks(self, *_rows(rows, start)):
            batches.append(draws_of_events.long_form(pairs, numbers, self))
            numbers += len(pairs.first) - 1
        return pa.Table.from_batches(batches, draws_of_events.LONG)


def named(name: str, subscriptions: int | None = None, seed: int = 0, **changed: Any) -> Workload:
    """Makes a workload of ``NAMES``.

    ``workload/shapes.py`` has the parameters with their sources, and our choices where the
    sources are silent.

    Parameters
    ----------
    name : ``dense``, ``dense-planted``, ``dense-equal``: 1M x 100 attributes; ``pstree-dense`` and
        ``pstree-sparse``: 100 and 30,000 attributes, of the PS-Tree paper; ``opindex`` and
        ``bestar``: of the papers on OpIndex and BE*-Tree; ``ads`` and ``querylog``: like data sets
        of the PS-Tree paper
    subscriptions : number of subscriptions; None for that of the paper
    changed : values for other fields of ``Workload``

    Raises
    ------
    OptionError : the name is not a workload, or a field cannot be used
    """
    shape = text(name)
    if shape not in SHAPES:
        raise OptionError(f"no workload is called {show_value(name)}; there are {', '.join(NAMES)}")
    unknown = sorted(set(changed) - {field.name for field in fields(Parameters)})
    if unknown:
        raise OptionError(f"a workload has no field {unknown[0]!r}")
    given = {"name": shape, **SHAPES[shape], "seed": seed, **changed}
    return Workload(**given if subscriptions is None else {**given, "subscriptions": subscriptions})


def _from_zero(value: int, what: str) -> int:
    return check_whole(f"{what}={{}}", value, 0, 2**63 - 1, most="2**63 - 1")


def _rows(rows: int, start: int) -> tuple[int, int]:
    begin = _from_zero(start, "start")
    return begin, begin + _from_zero(rows, "rows")
