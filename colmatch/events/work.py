"""Working memory of one thread that reads batches; it grows when it is full."""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import freeze_view
from colmatch.errors import EventError
from colmatch.events.binding import Binding
from colmatch.events.needs import Needs
from colmatch.kernels._jit import entry
from colmatch.kernels.arrow import read, select
from colmatch.kernels.arrow.maps import BLOCK
from colmatch.kernels.arrow.words import Distinct
from colmatch.kernels.layout import ENTRIES_MOST, I32, I64, Batch

_SAID = {
    select.OVERFLOW: "the value is too large for the schema's unit or scale: cast it",
    select.NULL_KEY: "a key of the map is NULL: mend the source",
    select.BAD_INDEX: "its dictionary has no such value: mend the source",
}


class WorkingMemory:
    """The arrays that the kernels of ``kernels/arrow/read.py`` write. They grow when needed.

    One thread at a time.

    Parameters
    ----------
    groups : number of groups of distinct strings; 0 if strings are looked up among literals
    """

    def __init__(self, needs: Needs, groups: int) -> None:
        self._needs = needs
        entries = len(needs.entry_set)
        patterns, members = (
            sum(end - attr for attr, end, _ in runs) for runs in (needs.pattern_runs, needs.member_runs)
        )
        self._width = len(needs.plain)
        self._rows = np.zeros(1, np.int64)
        self._frozen_rows = freeze_view(self._rows)
        self._work = read.ReadBuffers(
            state=np.zeros(8, np.int64),
            struct=np.zeros(3, np.int64),
            valid=np.zeros(0, np.uint8),
            col=np.zeros(needs.total + 1, np.int64),
            row=np.zeros(0, np.int32),
            key=np.zeros(0, np.int64),
            slot=np.zeros(0, np.int64),
            entry_first=np.zeros(entries + 1, np.int64),
            entry_row=np.zeros(0, np.int32),
            entry_key=np.zeros(0, np.int64),
            pattern_first=np.zeros(patterns + 1, np.int64),
            pattern_row=np.zeros(0, np.int32),
            member_first=np.zeros(members + 1, np.int64),
            member_row=np.zeros(0, np.int32),
            member_key=np.zeros(0, np.int64),
        )
        scratch = np.zeros(0, np.int64)
        self._maps = read.MapWork(scratch, np.zeros(2 * entries, np.int32), np.zeros(entries // BLOCK, np.uint8))
        distinct = Distinct(
            table=np.zeros(16, np.int32),
            offset=np.zeros(1, np.int64),
            data=np.zeros(0, np.uint8),
            range=np.zeros((groups, 2), np.int64),
            total=np.zeros(4, np.int64),
        )
        self._texts = read.TextWork(scratch, np.zeros(int(needs.literals.hint[-1]), np.int32), distinct)
        self._col = freeze_view(self._work.col)
        self._freeze_entries()

    @property
    def results(self) -> tuple[read.ReadBuffers, Distinct]:
        """Returns the working arrays with the results, and the distinct strings."""
        return self._work, self._texts.distinct

    def read(self, binding: Binding, address: int, rows: int) -> None:
        """Runs the kernels on an exported batch until everything has room.

        Raises EventError: the batch has a value that its column should not have.
        """
        # Make room for the structs and the rows
        structs = len(binding.columns.struct)
        work = self._work
        if len(work.struct) < 3 * structs or len(work.valid) < structs * rows:
            valid = np.empty(structs * rows, np.uint8)
            work.state[select.VALID] = valid.ctypes.data
            self._work = work._replace(struct=np.zeros(3 * structs, np.int64), valid=valid)
        if len(work.slot) < rows:
            self._grow(select.FULL_STREAM, rows)
            self._grow(select.FULL_OUT, rows * self._width)
        # Run until no array is too short
        while True:
            code = self._run(binding, address, rows)
            if code == select.OK:
                return
            if code in _SAID:
                raise self._error(binding, code)
            self._grow(code, int(self._work.state[select.NEEDED]))

    def _run(self, binding: Binding, address: int, rows: int) -> int:
        work, texts = self._work, self._texts
        code = select.OK
        if binding.maps:
            entry(read.read_maps)(binding.columns, self._needs.keys, work, self._maps, address, rows)
            code = int(work.state[select.CODE])
        if code == select.OK:
            entry(read.read)(binding.columns, work, address, rows)
            code = int(work.state[select.CODE])
        if binding.texts and code == select.OK:
            distinct = texts.distinct
            distinct.range[:] = 0
            distinct.total[0] = distinct.offset[0] = 0
            entry(read.read_texts)(binding.columns, self._needs.literals, self._needs.entry_set, work, texts)
            code = int(work.state[select.CODE])
        return code

    def batch(self, rows: int) -> Batch:
        """Returns the entries that were read, as read-only views.

        Raises EventError: there are too many entries.
        """
        work = self._work
        self._rows[0] = rows
        entries = int(work.col[-1])
        if entries > ENTRIES_MOST:
            raise EventError(
                f"{rows:,} rows of events have {entries:,} values, of which {ENTRIES_MOST:,} are taken at a time: "
                "match fewer rows at a time with a lower Options(batch_rows=...), or shorten their lists and maps"
            )
        return Batch(self._frozen_rows, self._col, self._frozen_row[:entries], self._frozen_key[:entries])

    def _freeze_entries(self) -> None:
        self._frozen_row, self._frozen_key = freeze_view(self._work.row), freeze_view(self._work.key)

    def take_patterns(self, first: I64, row: I32) -> None:
        """Takes the rows where each pattern is true, as ranges, for the next ``read``."""
        self._work = self._work._replace(pattern_first=first, pattern_row=row)

    def take_members(self, first: I64, row: I32, key: I64) -> None:
        """Takes rows and keys of each member of a template, as ranges, for the next ``read``."""
        self._work = self._work._replace(member_first=first, member_row=row, member_key=key)

    def _grow(self, code: int, needed: int) -> None:
        work, distinct = self._work, self._texts.distinct
        n = max(needed, 64)
        if code == select.FULL_OUT:
            n = max(n, len(work.row) * 3 // 2)
            self._work = work._replace(row=np.empty(n, np.int32), key=np.empty(n, np.int64))
            self._freeze_entries()
        elif code == select.FULL_ENTRIES:
            n = max(n, len(work.entry_row) * 3 // 2)
            self._work = work._replace(entry_row=np.empty(n, np.int32), entry_key=np.empty(n, np.int64))
        elif code == select.FULL_STREAM:
            n = max(n, len(work.slot) * 3 // 2)
            if len(distinct.range):  # at most half full, and a power of two
                distinct = distinct._replace(table=np.empty(4 * 2 ** (n - 1).bit_length(), np.int32))
            scratch = np.empty(n, np.int64)
            self._work = work._replace(slot=np.empty(n, np.int64))
            self._maps = self._maps._replace(known=scratch)
            self._texts = self._texts._replace(known=scratch, distinct=distinct)
        elif code == select.FULL_STRINGS:
            n = max(n, len(distinct.offset) * 3 // 2)
            self._texts = self._texts._replace(distinct=distinct._replace(offset=np.empty(n, np.int64)))
        else:
            data = np.empty(max(n, len(distinct.data) * 3 // 2), np.uint8)
            distinct.total[3] = data.ctypes.data
            self._texts = self._texts._replace(distinct=distinct._replace(data=data))

    def _error(self, binding: Binding, code: int) -> EventError:
        where, row = (int(self._work.state[place]) for place in (select.WHERE, select.ROW))
        return EventError(_SAID[code], column=f"column {binding.items[where]!r}", event=row)
