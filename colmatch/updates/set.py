"""Protocols of a matcher's subscriptions, for the matcher and its workers."""

from __future__ import annotations

from typing import Any, Protocol

from colmatch.errors import Rejected
from colmatch.events.observed import EventWindow
from colmatch.given.language import Language
from colmatch.given.options import Options
from colmatch.given.schema import Schema
from colmatch.kinds.settings import Settings
from colmatch.subscriptions.change import Change
from colmatch.subscriptions.intake import Collecting, Errors
from colmatch.updates.read_back import Sync
from colmatch.updates.redefinition import Redefinition
from colmatch.updates.versions import Parts, Version


class MatchableSet(Protocol):
    """A present version, and the settings for reading events."""

    @property
    def schema(self) -> Schema: ...

    @property
    def options(self) -> Options: ...

    @property
    def now(self) -> Version: ...

    @property
    def observed(self) -> EventWindow | None:
        """The window of the last matched events, None where there never is one."""


class SubscriptionSet(MatchableSet, Protocol):
    """Subscriptions that take updates: in memory (``MemorySet``), or in a file (``PagedSet``).

    Its methods work as the methods of ``Matcher`` with the same names.
    """

    options: Options

    @property
    def requested(self) -> Settings:
        """The index settings that the caller requested."""

    @property
    def language(self) -> Language: ...

    def update(self, requested: Change | Sync | Redefinition, errors: Errors | Collecting) -> list[Rejected]: ...

    def compact(self, sample: Any) -> None: ...

    def close(self) -> None: ...

    def stats(self) -> dict[str, Any]: ...

    def parts(self) -> Parts:
        """Returns the parts of a copy of the present version."""

    def has(self, id: int | str) -> bool:
        """Returns whether an id has a subscription."""

    def parts_of(self, id: int | str) -> Parts:
        """Returns parts that contain the subscription of an id, if there is one."""
