"""The version of a matcher that lives in pages, at one moment."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from colmatch.kinds.base import Built
from colmatch.kinds.pbtree import KIND
from colmatch.paged import root_page
from colmatch.paged.store import PageStore
from colmatch.subscriptions.ids import Ids
from colmatch.updates.versions import Version


class PagedVersion(Version):
    """A version with its subscriptions in pages.

    Ids, tags and string literals are read on demand.
    """

    @staticmethod
    def of(paged: Any, base: Version, pages: PageStore) -> PagedVersion:
        """Returns the version of the state that a ``PagedReader`` is reading."""
        version = object.__new__(PagedVersion)
        values = version.__dict__
        values.update({name: value for name, value in base.__dict__.items() if name not in ("ids", "literals", "tags")})
        values["paged"] = paged
        values["updates"] = pages.updates
        values["count"] = pages.root(root_page.SUBSCRIPTIONS)
        values["is_text"] = bool(pages.root(root_page.TEXT_IDS))
        return version

    def __len__(self) -> int:
        count: int = self.__dict__["count"]
        return count

    @property
    def id_type(self) -> pa.DataType:
        return pa.string() if self.__dict__["is_text"] else pa.int64()

    @property
    def ids(self) -> Ids:
        ids: Ids = self.__dict__["paged"].whole().ids
        return ids

    @property
    def literals(self) -> Any:
        paged = self.__dict__["paged"]
        return paged.run_on_state(lambda: paged.version.literals)

    @property
    def tags(self) -> Any:
        return self.__dict__["paged"].whole().tags

    def live(self) -> Any:
        return self.__dict__["paged"].whole().live()

    @property
    def index(self) -> Built:
        return Built(KIND, self.__dict__["paged"].requested, None)
