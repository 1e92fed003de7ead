"""Versions of the subscriptions that batches are matched against.

An update makes a new version; no version ever changes. A batch takes the version that is present
when it begins. So there is no lock between batches and updates, nothing is pinned, and no thread
waits for a build. Writing into the arrays of a large index, as the papers do, needs all three.
Batches then wait for updates and updates for batches. An update that fails half way has spoilt the
arrays that batches read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import distinct
from colmatch.errors import Rejected
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.language import SQL, Language
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.given.session import SessionParts
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN, U8
from colmatch.kinds.base import Built
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import Statistics
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.tags import NO_TAGS, Tags
from colmatch.subscriptions.texts_kept import NO_TEXTS, KeptTexts
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.segments import Segment


@dataclass(frozen=True, kw_only=True)
class Version:
    """Subscriptions in segments, the oldest first.

    Each subscription has a *number*, its place among ``ids``. The numbers of a segment are
    consecutive. A deleted subscription keeps its number until a merge of all segments gives new
    ones.

    Attributes
    ----------
    attributes, literals : for reading events; string literals have labels, which are keys for all
        segments
    segments : the last one takes inserts if ``growing``
    bases : number of the first subscription of each segment
    deleted : numbers that are of no subscription any more
    alive : number of subscriptions in each segment
    stale : number of deleted ones that each segment's index still finds
    gone : number of deleted numbers
    reason : reason for the kind of the oldest segment
    session_parts : parts of the expressions that depend on a session
    rejected : rejected subscriptions, by id
    definitions : texts of conditions that expressions use, by name
    sample : events that are counted whenever a segment is built (``colmatch/events/sample.py``)
    tags, texts : of the numbers; deleted subscriptions keep theirs until numbers are new
    updates, merges : how many have been made
    narrowed : only some of the subscriptions are to be found, and all others count as deleted
    lineage : the same object in all versions that updates made of one another; ``restore`` begins
        another one
    """

    attributes: Attributes
    literals: Vocabulary
    segments: tuple[Segment, ...]
    bases: tuple[int, ...]
    growing: bool
    deleted: DeletedNumbers
    alive: tuple[int, ...]
    stale: tuple[int, ...]
    gone: int
    ids: Ids
    reason: str
    session_parts: SessionParts
    rejected: Mapping[int | str, Rejected]
    sample: U8
    definitions: Mapping[str, str] = field(default_factory=dict)
    tags: Tags = NO_TAGS
    texts: KeptTexts = NO_TEXTS
    updates: int = 0
    merges: int = 0
    narrowed: bool = False
    lineage: object = None

    def __len__(self) -> int:
        return len(self.ids) - self.gone

    @property
    def id_type(self) -> pa.DataType:
        """The type of the ids: int64 or string."""
        return self.ids.type

    @property
    def index(self) -> Built:
        """The index of the oldest segment."""
        return self.segments[0].index

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The schema of matches."""
        return pa.schema([("event", pa.int64()), ("subscription", self.id_type)])

    @cached_property
    def scored_schema(self) -> pa.Schema:
        """The schema of matches with scores."""
        return self.result_schema.append(pa.field("score", pa.float64()))

    @property
    def frozen_count(self) -> int:
        """Returns the number of segments that take no inserts: the first ones."""
        return len(self.segments) - self.growing

    @cached_property
    def reach(self) -> tuple[I64, I64]:
        """Returns the lowest and the highest key of each attribute in predicates' intervals: (A).

        A value of an event outside makes no predicate true or false.
        """
        lowest, highest = np.full(len(self.attributes), KEY_MAX), np.full(len(self.attributes), KEY_MIN)
        for segment in self.segments:
            low, high = segment.reach
            np.minimum(lowest[: len(low)], low, out=lowest[: len(low)])
            np.maximum(highest[: len(low)], high, out=highest[: len(low)])
        return lowest, highest

    @cached_property
    def explained(self) -> dict[Any, Any]:
        """Matchers of single texts that explanations have made, by the texts."""
        return {}

    def live(self) -> NDArray[np.bool_]:
        """Returns whether each number is of a subscription."""
        return ~self.deleted.among(0, len(self.ids))

    def holder(self, number: int) -> int:
        """Returns the place of the segment that has a number."""
        return int(np.searchsorted(np.array(self.bases), number, "right")) - 1

    def numbers_of(self, ids: Ids) -> tuple[NDArray[np.int64], int]:
        """Returns the numbers of ids, -1 where there is no subscription, and the count of others.

        ids : of the type of this version's ids, unless the version has none
        """
        numbers = self.ids.find(ids)
        return numbers, self.deleted.drop(numbers)

    def numbers_with(self, ids: Ids | None, tags: Sequence[frozenset[str]]) -> NDArray[np.int64]:
        """Returns the numbers of subscriptions with any of some ids, and any tag of each set.

        They ascend, once each. At least one of both is given; ids without a subscription are none.
        """
        sets = [self.tags.numbers(each) for each in tags]
        if ids is not None:
            # If the type of ids has changed, all earlier subscriptions are gone
            same = self.id_type == ids.type
            sets.append(distinct(self.ids.find(ids)) if same else np.empty(0, np.int64))
        numbers: NDArray[np.int64] = reduce(partial(np.intersect1d, assume_unique=True), sets).copy()
        self.deleted.drop(numbers)
        return numbers[numbers >= 0]

    def all_texts(self) -> pa.LargeStringArray:
        """Returns the text of each number, NULL where it has none."""
        return self.texts.take(np.arange(len(self.ids)))

    def apart(self) -> Version:
        """Returns the same version for another matcher: their updates share no memory."""
        segments = (*self.segments[:-1], self.segments[-1].apart())
        return self.with_changes(segments=segments, ids=self.ids.apart(), tags=self.tags.apart())

    def find(self, id: int | str) -> int | None:
        """Returns the number of a subscription, None where there is none."""
        number = self.ids.find_one(id)
        return None if number < 0 or self.deleted.has(number) else number

    def statistics(self) -> Statistics:
        """Counts subscriptions, predicates and so on, without the deleted ones."""
        parts = []
        for segment, base in zip(self.segments, self.bases, strict=True):
            deleted_bits = self.deleted.among(base, segment.size)
            parts.append(Statistics.of(segment.size, segment.predicates, segment.codes, np.flatnonzero(deleted_bits)))
        sums = Statistics(*map(sum, zip(*parts, strict=True)))
        return sums._replace(subscriptions=len(self), attributes=self.attributes.used)

    def sizes(self) -> dict[str, int]:
        """Returns the bytes of each array, the sum over the segments where each has one.

        Arrays that an index shares with codes count once.
        """
        sizes: dict[str, int] = {}
        for segment in self.segments:
            shared = {_address(array) for array in segment.codes}
            for part, arrays in named_arrays(segment).items():
                for name, array in zip(arrays._fields, arrays, strict=True):
                    own = 0 if part == "index" and _address(array) in shared else int(array.nbytes)
                    sizes[f"{part}.{name}"] = sizes.get(f"{part}.{name}", 0) + own
        for literals in (self.literals.old.literals, self.literals.recent.literals):
            for name, array in literals._asdict().items():
                sizes[f"literals.{name}"] = sizes.get(f"literals.{name}", 0) + int(array.nbytes)
        tags = self.tags.number.nbytes + self.tags.tag.nbytes
        return sizes | {
            "ids": self.ids.array.nbytes,
            "deleted": self.deleted.bits.nbytes,
            "sample": self.sample.nbytes,
            "tags": tags,
            "texts": self.texts.nbytes,
        }

    def with_changes(self, **changes: Any) -> Version:
        """Returns a version that differs in some fields."""
        other = object.__new__(Version)  # ``dataclasses.replace`` would cost each update 15 us
        values = other.__dict__
        values.update(self.__dict__)
        for name in ("result_schema", "scored_schema", "reach"):  # made on first use
            values.pop(name, None)
        values.update(changes)
        return other


def named_arrays(segment: Segment) -> dict[str, Any]:
    """Returns the NamedTuples of arrays of a segment, by the name of the part."""
    return {"predicates": segment.predicates, "codes": segment.codes, "index": segment.index.arrays}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a matcher, which are saved, pickled and opened.

    ``requested`` has the settings of the build, maybe of ``auto``.
    """

    schema: Schema
    options: Options
    requested: Settings
    version: Version
    language: Language = SQL


def _address(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
