"""Reports about rules, counted over a sample of events: silent, noisy and dear ones, and columns.

The cost of one rule cannot be measured, since an index shares its work among all rules. So it is
estimated. The events are counted by the code of their values. From these counts follows how many
events each predicate lets through. An index finds a conjunction by one predicate, at best by the
one that lets the fewest through, and tests the other predicates for these events. A program, an AND
of ORs that is not multiplied out, is tested for every event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import OptionError, show_value
from colmatch.given.arguments import most_of, number
from colmatch.given.schema import Attribute, Role
from colmatch.kernels._jit import entry
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, FLAG_RUN, I64, Batch, Codes, Predicates
from colmatch.kernels.sink import add_hits
from colmatch.kernels.transpose import count_codes
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Version

NOISY = 0.5  # share of the events above which a rule is noisy
_SHOWN = 5  # rules of each list in the text of a report
_KINDS = {
    Role.VALUE: "column", Role.ELEMENT: "elements", Role.SIZE: "size", Role.HAS_NULL: "elements", Role.ENTRY: "entry",
    Role.CALL: "special function", Role.COMPUTED: "computed value",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """A report about the rules of a matcher over some events. It prints as a summary.

    ``events`` is the number of events, and ``share`` the share of them above which a rule is noisy.
    ``rules`` is a table with a row for each subscription, whose own ``share`` is that of the events
    that it matches, NULL without events. ``attributes`` is a table with a row for each thing that
    is asked about events. ``unused`` lists columns of the schema that no
    kept condition of the matcher reads, also if the report is about some rules alone. A condition
    that the build folds away, such as ``a > 5 AND a < 3``, is not kept. A column that is declared
    not nullable is used by every rule. ``absent`` lists used columns that no event has.
    """

    events: int
    share: float
    rules: pa.Table
    attributes: pa.Table
    unused: list[str]
    absent: list[str]

    @property
    def silent(self) -> pa.Table:
        """The rules that match none of the events, in the order of ``rules``."""
        return self.rules.filter(pc.equal(self.rules["matches"], 0))

    @property
    def noisy(self) -> pa.Table:
        """The rules that match more than the share of the events, the most matches first."""
        most = self.rules.filter(pc.greater(self.rules["matches"], most_of(self.share, self.events)))
        return most.sort_by([("matches", "descending")])

    @property
    def dear(self) -> pa.Table:
        """All rules, those with the most work first."""
        return self.rules.sort_by([("tests", "descending")])

    def __str__(self) -> str:
        silent, noisy, dear = self.silent, self.noisy, self.dear.filter(pc.greater(self.dear["tests"], 0))
        tests = pc.sum(dear["tests"]).as_py() or 1

        def shown(rules: pa.Table, column: str = "", all: int = 1) -> str:
            rows = rules.slice(0, _SHOWN).to_pylist()
            names = [f"{row['subscription']!r}" + (f" {_percent(row[column] / all)}" if column else "") for row in rows]
            return ", ".join(names) + (", ..." if rules.num_rows > _SHOWN else "")

        parts = {
            "rules that match no event": f"{silent.num_rows:,}: {shown(silent)}" if silent.num_rows else "",
            f"rules that match more than {self.share:.0%}": f"{noisy.num_rows:,}: {shown(noisy, 'share')}"
            if noisy.num_rows
            else "",
            "rules with the most work": shown(dear, "tests", tests),
            "columns that no rule uses": ", ".join(self.unused),
            "columns that rules use and no event has": ", ".join(self.absent),
        }
        head = f"events: {self.events:,}, rules: {self.rules.num_rows:,}"
        return "\n".join([head, *(f"{name}: {text}" for name, text in parts.items() if text)])


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "<1%"


def check_share(share: object) -> float:
    """Checks the share of events above which a rule is noisy, and returns it.

    Raises OptionError: it is no number from 0 to 1.
    """
    value = number(share)
    if value is None or not 0 <= value <= 1:
        raise OptionError(f"noisy={show_value(share)}: a share of the events is needed, from 0 to 1")
    return value


class Counts:
    """Counts over batches of events: values by code, matches, and columns that have values.

    Parameters
    ----------
    version : version that all batches are matched with
    whole : the version with all subscriptions, maybe the same one
    """

    def __init__(self, version: Version, whole: Version) -> None:
        self._version = version
        self._whole = whole
        self._by_code = [np.zeros(len(one.codes.bound) + len(one.codes.multi), np.int64) for one in version.segments]
        self._present = [np.zeros(len(one.codes.multi), np.int64) for one in version.segments]
        self._matches = np.zeros(len(version.ids), np.int64)
        self._seen = set[str]()
        self._events = 0

    def look(self, batch: pa.RecordBatch, entries: Batch) -> None:
        """Counts the values of a batch, which has been read as ``entries``."""
        self._events += batch.num_rows
        names = zip(batch.schema.names, batch.columns, strict=True)
        self._seen |= {name.lower() for name, column in names if column.null_count < batch.num_rows}
        for segment, hits, present in zip(self._version.segments, self._by_code, self._present, strict=True):
            own = entries._replace(col=entries.col[: len(present) + 1])
            entry(count_codes)(own, segment.codes, segment.hints, hits, present)

    def add(self, numbers: NDArray[np.uint32]) -> None:
        """Counts matches by the number of their subscriptions."""
        entry(add_hits)(numbers, self._matches)

    def report(self, share: float, columns: list[str], required: list[str], names: Mapping[Attribute, str]) -> Report:
        """Returns the report.

        share : of the events above which a rule is noisy
        columns, required : those of the schema, and those that no event may lack
        names : of definitions, by the attribute of each
        """
        version, live = self._version, self._version.live()
        found = np.zeros((4, len(live)), np.int64)  # conjunctions, predicates, events and tests of each number
        uses, present = np.zeros((2, len(version.attributes)), np.int64)
        for i, (segment, base) in enumerate(zip(version.segments, version.bases, strict=True)):
            own = slice(base, base + segment.size)
            found[:, own] = self._work(i, segment)
            count = len(self._present[i])
            uses[:count] += _uses(segment, live[own], count)
            np.maximum(present[:count], self._present[i], out=present[:count])
        numbers = np.flatnonzero(live)
        counts = self._matches[numbers]
        titles = ["conjunctions", "predicates", "checked", "tests"]
        rules = pa.table(
            {
                "subscription": version.ids.take(numbers),
                "matches": counts,
                "share": pa.array(counts / (self._events or 1), mask=np.full(len(counts), not self._events)),
                **dict(zip(titles, found[:, numbers], strict=True)),
            }
        )
        needed = [*_columns(version, uses), *required]
        all_uses = uses
        if self._whole is not version:
            all_uses, live = np.zeros(len(self._whole.attributes), np.int64), self._whole.live()
            for segment, base in zip(self._whole.segments, self._whole.bases, strict=True):
                all_uses += _uses(segment, live[base : base + segment.size], len(all_uses))
        lower = {name.lower() for name in [*needed, *_columns(self._whole, all_uses)]}
        return Report(
            self._events,
            share,
            rules,
            _attributes(version.attributes.members, names, uses, present),
            [name for name in columns if name.lower() not in lower],
            [name for name in dict.fromkeys(needed) if name.lower() not in self._seen],
        )

    def _work(self, place: int, segment: Segment) -> NDArray[np.int64]:
        """Returns the conjunctions, predicates, checked events and tests: (4, S)."""
        preds, size = segment.predicates, segment.size
        let_through = passing(preds, segment.codes, self._by_code[place], self._present[place], self._events)
        count = np.diff(preds.first)
        checked = np.full(len(count), self._events, np.int64)
        some = np.flatnonzero(count)
        if len(some):
            checked[some] = np.minimum.reduceat(let_through, preds.first[some])
        if len(preds.jump_first):
            checked[preds.jump_first >= 0] = self._events
        weights = (None, count, checked, checked * np.maximum(count, 1))
        return np.stack([np.bincount(preds.owner, weight, size).astype(np.int64) for weight in weights])


def passing(preds: Predicates, codes: Codes, hits: I64, present: I64, events: int) -> NDArray[np.int64]:
    """Returns how many events each predicate lets through: (P).

    The result is exact, except for an attribute with several values in an event. There, a predicate
    that two values of an event make true counts twice, up to the number of events with a value.

    hits, present : values by code, and events with each attribute, as ``count_codes`` has them
    """
    attr, is_run = (preds.pred[:, 0] & ATTR_MASK).astype(np.int64), preds.pred[:, 0] & FLAG_RUN > 0
    found: I64 = np.zeros(len(attr), np.int64)
    plain = ~is_run
    found[plain] = _between(codes, hits, attr[plain], preds.pred[plain, 1], preds.pred[plain, 2])
    begin = preds.pred[is_run, 1].astype(np.int64)
    first = ranges_of(preds.pred[is_run, 2].astype(np.int64) - begin)
    runs = members(begin, first)
    each = _between(codes, hits, np.repeat(attr[is_run], np.diff(first)), preds.run_lo[runs], preds.run_hi[runs])
    sums = ranges_of(each)
    found[is_run] = sums[first[1:]] - sums[first[:-1]]
    found = np.minimum(found, present[attr])
    none = preds.pred[:, 0] & FLAG_NONE > 0
    found[none] = events - found[none]
    return found


def _between(codes: Codes, hits: I64, attr: I64, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> I64:
    """Returns the number of values from one code to another, of an attribute each."""
    size = np.diff(codes.first) + 1
    base, below = ranges_of(size), ranges_of(hits)

    def place(code: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Returns codes from 1 on, which labels stand for in a growing segment."""
        dense = code.astype(np.int64)
        if len(codes.label):
            owner = np.repeat(np.arange(len(size)), size - 1) << 32
            marks = owner + codes.label[: len(owner)]
            dense = 1 + np.searchsorted(marks, (attr << 32) + dense, "right") - codes.first[attr]
        within: I64 = np.minimum(dense, size[attr])
        return within

    found: I64 = below[base[attr] + place(high)] - below[base[attr] + place(low) - 1]
    return found


def _uses(segment: Segment, live: NDArray[np.bool_], attributes: int) -> NDArray[np.int64]:
    """Returns how many predicates of present subscriptions ask about each attribute: (A)."""
    preds = segment.predicates
    is_live = np.repeat(live[preds.owner], np.diff(preds.first))
    uses: I64 = np.bincount(preds.pred[is_live, 0] & ATTR_MASK, minlength=attributes)
    return uses


def _columns(version: Version, uses: I64) -> list[str]:
    """Returns the columns of the attributes that predicates ask about."""
    used = [attribute for attribute, count in zip(version.attributes.members, uses, strict=True) if count]
    return list(dict.fromkeys(path[0] for attribute in used for path in attribute.paths))


def _attributes(attributes: list[Attribute], names: Mapping[Attribute, str], uses: I64, present: I64) -> pa.Table:
    """Returns the table of attributes, those of one name and kind in one row.

    A special function or a text pattern has a value only where it is true, so that there is no
    count of events for it.
    """
    places: dict[tuple[str, str], int] = {}
    of = np.flatnonzero(uses)
    group = np.array(
        [places.setdefault(_name_and_kind(attributes[a], names), len(places)) for a in of.tolist()], np.int64
    )
    events = np.zeros(len(places), np.int64)
    np.maximum.at(events, group, present[of])
    hidden = np.array([kind in ("text pattern", "special function") for _, kind in places], np.bool_)
    columns = {
        "attribute": pa.array([name for name, _ in places], pa.string()),
        "kind": pa.array([kind for _, kind in places], pa.string()),
        "predicates": np.bincount(group, uses[of], len(places)).astype(np.int64),
        "events": pa.array(events, mask=hidden),
    }
    return pa.table(columns).sort_by([("predicates", "descending"), ("attribute", "ascending")])


def _name_and_kind(attribute: Attribute, names: Mapping[Attribute, str]) -> tuple[str, str]:
    if attribute in names:
        return names[attribute], "definition"
    return attribute.name, "text pattern" if attribute.pattern is not None else _KINDS[attribute.role]
