"""Checks of the sections of records, before anything is made of them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of
from colmatch.kernels.layout import FLAG_RUN

# A section of counts, the section of the values counted, and how many values each count stands for.
_COUNTED = (
    ("size", "pred", 3),
    ("bounds", "bound", 1),
    ("literals", "literal_size", 1),
    ("literal_size", "literal_data", 1),
    ("id_size", "id_data", 1),
    ("gone_size", "gone_data", 1),
    ("tree_size", "tree", 1),
    ("tags", "tag_size", 1),
    ("tag_size", "tag_data", 1),
)


class Columns(Protocol):
    """The sections of some records, one behind the other."""

    def __getitem__(self, name: str) -> NDArray[Any]: ...
    def texts(self, name: str) -> list[bytes]: ...


def check_sections(columns: Columns) -> None:
    """Checks that sections have as many values as other sections say.

    Raises
    ------
    ValueError : a section has not
    """
    for counts, values, each in _COUNTED:
        total = int(columns[counts].sum(dtype=np.uint64))
        if total * each != len(columns[values]):
            raise ValueError(f"{values} are not as many as {counts} says")
    for size, data in (("id_size", "id_data"), ("gone_size", "gone_data"), ("tag_size", "tag_data")):
        b"".join(columns.texts(data)).decode()  # all texts together; each is checked below to begin at a character
        starts = ranges_of(columns[size])[:-1]
        if ((columns[data][starts[starts < len(columns[data])]] & 0xC0) == 0x80).any():
            raise ValueError(f"{data} is cut within a character")
    pred = columns["pred"].reshape(-1, 3)
    runs = pred[pred[:, 0] & np.uint32(FLAG_RUN) != 0, 1:].astype(np.int64)
    each_run = runs[:, 1] - runs[:, 0]
    if len(runs) and (each_run.min() < 1 or each_run.sum() > len(columns["run_lo"])):
        raise ValueError("intervals of predicates are not those that there are")
    if len(columns["run_lo"]) != len(columns["run_hi"]):
        raise ValueError("intervals have more lowest than highest codes, or fewer")
