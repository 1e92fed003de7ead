"""The findings of ``Matcher.check``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from colmatch.errors import OptionError, show_value
from colmatch.events.gather import batches
from colmatch.events.rows import events_of
from colmatch.given.arguments import check_choice, members
from colmatch.matching.checks.alone import Always, Never
from colmatch.matching.checks.contained import Contained
from colmatch.matching.checks.overlaps import Overlaps
from colmatch.matching.checks.sampled import SampledStates
from colmatch.matching.checks.scope import Check, Scope
from colmatch.matching.subset import Subset, subset_of
from colmatch.subscriptions.ids import check_known
from colmatch.updates.versions import Parts
from colmatch.updates.written_out import written_out

Checks = Check | Sequence[Check] | None
OF_SAMPLE = ("dead column", "odd literal")


def find(parts: Parts, checks: Any, ids: Any, tags: Any, sample: Any) -> pa.Table:
    """Returns the table of ``Matcher.check``."""
    parts = written_out(parts)
    version = parts.version
    among = subset_of(ids, tags, version)
    chosen = _read_checks(checks, among is not None, sample)
    numbers = np.flatnonzero(version.live()) if among is None else version.numbers_with(*among.criteria)
    if among is not None and not isinstance(ids, Subset) and (given := among.criteria[0]) is not None:
        check_known(given, version.numbers_of(given)[0], "nothing was checked")
    sample = events_of(sample, parts.schema)
    rows = [] if sample is None else [b for b in batches(sample, parts.options.batch_rows) if b.num_rows]
    if sample is not None and not rows and not set(OF_SAMPLE).isdisjoint(chosen):
        raise OptionError("sample: it has no event, and would say that no rule has a value: give some events")
    scope = Scope(parts, numbers, among is not None, rows)
    _run(scope, chosen, parts.options.missing_columns == "null")
    return scope.rows.table(version.ids.array)


def _run(scope: Scope, chosen: list[str], is_lenient: bool) -> None:
    """Runs checks, which add their rows to the scope."""
    always, beside = Always(scope), Contained(scope)
    sampled = SampledStates(scope.states, scope.sample, is_lenient) if not set(OF_SAMPLE).isdisjoint(chosen) else None
    for check in chosen:
        match check:
            case "never":
                Never(scope).add_rows()
            case "always":
                always.add_rows()
            case "duplicate":
                beside.add_duplicates()
            case "contained":
                beside.add_rows(always.found[0])
            case "overlaps":
                Overlaps(scope).add_rows()
            case _:
                assert sampled is not None
                number, reasons = sampled.dead_columns() if check == "dead column" else sampled.odd_literals()
                asked = np.isin(number, scope.numbers)
                scope.rows.add(check, number[asked], reason=reasons.filter(pa.array(asked)))


def _read_checks(checks: Any, is_asked: bool, sample: Any) -> list[str]:
    names = get_args(Check)
    if checks is None:
        return [
            name for name in ("never", "always", "duplicate", *OF_SAMPLE) if sample is not None or name not in OF_SAMPLE
        ]
    listed = [checks] if isinstance(checks, str) else members(checks)
    if listed is None:
        raise OptionError(f"checks={show_value(checks)}: give names of checks: {', '.join(names)}")
    chosen = [check_choice("checks: {}", name, names) for name in listed]
    for name in chosen:
        if name == "overlaps" and not is_asked:
            raise OptionError("checks: overlaps is for some subscriptions: give ids or tags, too")
        if name in OF_SAMPLE and sample is None:
            raise OptionError(f"checks: {name} compares with events: give a sample, too")
    return [name for name in names if name in chosen]
