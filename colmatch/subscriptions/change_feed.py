"""Change feeds of Delta Lake: the rows of subscriptions that were inserted, updated or deleted.

Each row has the kind of its change and the version of the table that made it. The last change of an
id, or of the name of a definition, counts. An update has the row before it, which is a deletion:
the new row may have another id. Within one version, a new row counts and not the deleted one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import SubscriptionError, show_value
from colmatch.given.incoming import refusing
from colmatch.subscriptions.definitions import COLUMN as DEFINE
from colmatch.subscriptions.definitions import Columns
from colmatch.subscriptions.ids import ids_of_column

OF_FEED = KIND, VERSION = "_change_type", "_commit_version"  # columns of a feed
DELETED, BEFORE, AFTER = "delete", "update_preimage", ("insert", "update_postimage")
REMEDY = f"the subscriptions are a change feed, with a column {KIND!r}: sync() takes it, and build() the table itself"


def split_feed(columns: Columns, where: str, id: str) -> tuple[Columns, pa.Array, list[str]]:
    """Returns the rows of a feed that are there in the end, in their order.

    The other results are the deleted ids, and the names of deleted definitions.

    where : name of the feed in errors
    id : name of the column of ids

    Raises SubscriptionError: a row has no kind or version that Delta Lake writes.
    """
    ids = ids_of_column(columns[id], where, id)
    names = columns.get(DEFINE, pa.nulls(len(ids)))
    nameless = pc.and_(ids.is_null(), names.is_null())
    if nameless.true_count:
        raise SubscriptionError(f"{where}: column {id!r} is NULL in row {nameless.index(True).as_py()}")
    with refusing(SubscriptionError, f"{where}: the columns {KIND!r} and {VERSION!r} cannot be read"):
        kind, version = columns[KIND].cast(pa.string()), columns[VERSION].cast(pa.int64())
    with refusing(SubscriptionError, f"{where}: the column {DEFINE!r} cannot be read"):
        names = names.cast(pa.string())
    if version.null_count:
        raise SubscriptionError(f"{where}: column {VERSION!r} is NULL in row {version.is_null().index(True).as_py()}")
    known = pc.is_in(kind, pa.array([DELETED, BEFORE, *AFTER]))
    if known.false_count:
        row = known.index(False).as_py()
        raise SubscriptionError(
            f"{where}: column {KIND!r} is {show_value(kind[row].as_py())} in row {row}: Delta Lake writes {DELETED!r}, {BEFORE!r}, "
            f"{AFTER[0]!r} and {AFTER[1]!r}"
        )
    # Find the last change of each id or name; the deletion of a row that is overwritten comes first
    is_new = pc.is_in(kind, pa.array(AFTER)).to_numpy(zero_copy_only=False)
    order = 2 * np.unique(version.to_numpy(), return_inverse=True)[1] + is_new
    code, named = (column.dictionary_encode(null_encoding="encode").indices.to_numpy() for column in (ids, names))
    is_rule = names.is_null().to_numpy(zero_copy_only=False)
    code = np.where(is_rule, code, named + len(code))
    last = np.zeros(code.max(initial=-1) + 1, np.int64)
    np.maximum.at(last, code, order)
    # Two new rows of one id stay, so that they are an error as in any table
    is_last = order == last[code]
    is_left, is_gone = pa.array(is_last & is_new), is_last & ~is_new
    return (
        {name: column.filter(is_left) for name, column in columns.items()},
        ids.filter(pa.array(is_gone & is_rule)).unique(),
        names.filter(pa.array(is_gone & ~is_rule)).to_pylist(),
    )
