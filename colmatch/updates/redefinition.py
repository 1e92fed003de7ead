"""Updates that change definitions: the subscriptions that use them are read again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import OptionError
from colmatch.given.language import Language
from colmatch.given.schema import Schema
from colmatch.subscriptions.change import Change
from colmatch.subscriptions.definitions import change_definitions
from colmatch.subscriptions.given import GivenSubscriptions, read
from colmatch.updates.read_back import Sync, find_targets, table_of_numbers
from colmatch.updates.versions import Version


class Redefinition:
    """An update with changes of definitions.

    Parameters
    ----------
    request : the other changes
    changes : texts of definitions by name; None for one that is to go
    is_whole : whether all other definitions are to go
    collects : whether bad expressions are to be left out
    """

    def __init__(
        self,
        request: Change | Sync,
        changes: Mapping[str, str | None],
        schema: Schema,
        language: Language,
        is_whole: bool,
        collects: bool,
    ) -> None:
        self._request, self._changes, self._is_whole = request, changes, is_whole
        self._schema, self._language, self._collects = schema, language, collects

    def on(self, version: Version) -> Change:
        """Returns the update for a version.

        Raises
        ------
        SchemaError : a definition has the name of a column
        OptionError : texts of subscriptions that may use a changed definition were not kept
        """
        change, before, changes = self._request.on(version), version.definitions, self._changes
        if self._is_whole:
            changes = {**dict.fromkeys(before), **changes}
        after = change_definitions(before, changes, self._schema, self._language)
        if after is before:
            return change
        changed = [name for name, text in before.items() if after.get(name) != text]
        users = self._find_users(version, changed, change)
        if users is not None:
            if self._collects:
                raise OptionError(
                    "errors='collect': subscriptions use a definition that changes, so use errors='raise'"
                )
            change = change.with_upserts(users)
        return change._replace(definitions=after)

    def _find_users(self, version: Version, changed: list[str], change: Change) -> GivenSubscriptions | None:
        """Returns subscriptions that may use definitions, without those that the update changes."""
        left = version.live()
        if not changed or not left.any():
            return None
        numbers = np.flatnonzero(left)
        if change.deletion is not None:
            numbers = np.setdiff1d(numbers, find_targets(version, change.deletion)[1], assume_unique=True)
        new = change.ids
        if new is not None and new.type == version.id_type:
            numbers = np.setdiff1d(numbers, version.numbers_of(new)[0])
        texts = version.texts.take(numbers)
        if texts.null_count:
            raise OptionError(
                "subscriptions that use a changed definition are read again, and some have no text (PredicateTable, "
                "keep_texts=False): build the matcher again"
            )
        numbers = numbers[_mention(texts, _users_among(version.definitions, changed))]
        if not len(numbers):
            return None
        users = read(table_of_numbers(version, numbers), self._language)
        assert isinstance(users, GivenSubscriptions)
        return users


def _users_among(definitions: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Returns names of definitions, and of all definitions that use them."""
    found = list(names)
    texts = pa.array(list(definitions.values()), pa.large_string())
    while True:
        users = [name for name, uses in zip(definitions, _mention(texts, found).tolist(), strict=True) if uses]
        more = [name for name in users if name not in found]
        if not more:
            return found
        found += more


def _mention(texts: pa.LargeStringArray, names: Iterable[str]) -> NDArray[np.bool_]:
    """Returns whether each text has one of some names, in any case."""
    words = [rf"\b{name}\b" if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else re.escape(name) for name in names]
    found = pc.match_substring_regex(texts, "|".join(words), ignore_case=True)
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)
