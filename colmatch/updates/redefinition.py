"""Updates that change definitions: the subscriptions that use them are read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

MOST_NAMES = 500  # of one regular expression


class Redefinition:
    """An update with changes of definitions.

    Parameters
    ----------
    request : the other changes
    changes : texts of definitions by name; None for one that is to go
    collects : whether bad expressions are to be left out
    keeps_texts : whether the matcher keeps the texts of subscriptions
    """

    def __init__(
        self,
        request: Change | Sync,
        changes: Mapping[str, str | None],
        schema: Schema,
        language: Language,
        collects: bool,
        keeps_texts: bool,
    ) -> None:
        self._request, self._changes = request, changes
        self._schema, self._language, self._collects = schema, language, collects
        self._keeps_texts = keeps_texts

    def on(self, version: Version) -> Change:
        """Returns the update for a version.

        Raises
        ------
        SchemaError : a definition has the name of a column
        OptionError : texts of subscriptions that may use a changed definition were not kept
        """
        change, before, changes = self._request.on(version), version.definitions, self._changes
        if isinstance(self._request, Sync):
            changes = self._request.redefine(changes, before)
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
            if isinstance(self._request, Sync):
                self._request.add_changed(users.ids)
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
        if texts.null_count and not self._keeps_texts:
            raise OptionError(
                "subscriptions that use a changed definition are read again, and Options(keep_texts=False) keeps no texts: "
                "build the matcher again"
            )
        # A subscription of a PredicateTable has no text, and uses no definition
        known = texts.is_valid()
        numbers, texts = numbers[known.to_numpy(zero_copy_only=False)], texts.filter(known)
        numbers = numbers[_mention(texts, _users_among(version.definitions, changed))]
        if not len(numbers):
            return None
        users = read(table_of_numbers(version, numbers), self._language)
        assert isinstance(users, GivenSubscriptions)
        return users


def _users_among(definitions: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Returns names of definitions, and of all definitions that use them."""
    found = list(names)
    texts = pa.array(list(definitions.values()), pa.large_string())
    while True:
        users = [name for name, uses in zip(definitions, _mention(texts, found).tolist(), strict=True) if uses]
        more = [name for name in users if name not in found]
        if not more:
            return found
        found += more


def _mention(texts: pa.LargeStringArray, names: Sequence[str]) -> NDArray[np.bool_]:
    """Returns whether each text has one of some names as a word, in any case."""
    found = np.zeros(len(texts), bool)
    for begin in range(0, len(names), MOST_NAMES):
        pattern = rf"\b({'|'.join(names[begin : begin + MOST_NAMES])})\b"
        some = pc.match_substring_regex(texts, pattern, ignore_case=True)
        found |= np.asarray(some.to_numpy(zero_copy_only=False), bool)
    return found
