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
from colmatch.given.incoming import columns_of, refusing
from colmatch.subscriptions.definitions import COLUMN as DEFINE

OF_FEED = KIND, VERSION = "_change_type", "_commit_version"  # columns of a feed
DELETED, BEFORE, AFTER = "delete", "update_preimage", ("insert", "update_postimage")
REMEDY = f"the subscriptions are a change feed, with a column {KIND!r}: sync() takes it, and build() the table itself"


def split_feed(table: pa.Table, where: str, id: str) -> tuple[pa.Table, pa.Array, list[str]]:
    """Returns the rows of a feed that are there in the end, in their order.

    The other results are the deleted ids, and the names of deleted definitions.

    where : name of the table in errors
    id : name of the column of ids

    Raises SubscriptionError: a row has no kind or version that Delta Lake writes.
    """
    columns = columns_of(table, table.column_names, (), SubscriptionError, where)
    ids, names = columns[id], columns.get(DEFINE, pa.nulls(table.num_rows))
    nameless = pc.and_(ids.is_null(), names.is_null())
    if nameless.true_count:
        raise SubscriptionError(f"{where}: column {id!r} is NULL in row {nameless.index(True).as_py()}")
    with refusing(SubscriptionError, f"{where}: the columns {KIND!r} and {VERSION!r} cannot be read"):
        kind, version = columns.pop(KIND).cast(pa.string()), columns.pop(VERSION).cast(pa.int64())
    known = pc.is_in(kind, pa.array([DELETED, BEFORE, *AFTER]))
    if known.false_count:
        row = known.index(False).as_py()
        raise SubscriptionError(
            f"{where}: column {KIND!r} is {show_value(kind[row].as_py())} in row {row}: Delta Lake writes {DELETED!r}, {BEFORE!r}, "
            f"{AFTER[0]!r} and {AFTER[1]!r}"
        )
    # Find the last change of each id or name; the deletion of a row that is overwritten comes first
    is_new = pc.is_in(kind, pa.array(AFTER)).to_numpy(zero_copy_only=False)
    order = 2 * pc.fill_null(version, 0).to_numpy() + is_new
    code, named = (column.dictionary_encode(null_encoding="encode").indices.to_numpy() for column in (ids, names))
    is_rule = names.is_null().to_numpy(zero_copy_only=False)
    code = np.where(is_rule, code, named + len(code))
    last = np.zeros(code.max(initial=-1) + 1, np.int64)
    np.maximum.at(last, code, order)
    # Two new rows of one id stay, so that they are an error as in any table
    is_last = order == last[code]
    is_gone = is_last & ~is_new
    return (
        pa.table(columns).filter(pa.array(is_last & is_new)),
        ids.filter(pa.array(is_gone & is_rule)).unique(),
        names.filter(pa.array(is_gone & ~is_rule)).unique().to_pylist(),
    )
