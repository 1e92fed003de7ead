"""The subscriptions of a matcher, as the matcher and its workers ask for them."""

from __future__ import annotations

from typing import Any, Protocol

from colmatch.events.observed import Observed
from colmatch.given.language import Language
from colmatch.given.options import Options
from colmatch.given.schema import Schema
from colmatch.kinds.settings import Settings
from colmatch.subscriptions.intake import Errors
from colmatch.updates.versions import Parts, Version


class Subscribed(Protocol):
    """A present version, and what events are read by."""

    @property
    def schema(self) -> Schema: ...

    @property
    def options(self) -> Options: ...

    @property
    def now(self) -> Version: ...

    @property
    def observed(self) -> Observed | None:
        """The window of events that were matched last, None where there never is one."""


class SubscriptionSet(Subscribed, Protocol):
    """Subscriptions that take updates: in memory (``MemorySet``), or in a file (``PagedSet``).

    Methods do what those of ``Matcher`` that have their names say.
    """

    options: Options

    @property
    def requested(self) -> Settings:
        """The index settings that the caller asked for."""

    @property
    def language(self) -> Language: ...

    def insert(
        self, subscriptions: Any, errors: Errors, replace: bool, constants: Any = None, tags: Any = None
    ) -> None: ...

    def delete(self, ids: Any) -> None: ...

    def compact(self, sample: Any) -> None: ...

    def close(self) -> None: ...

    def stats(self) -> dict[str, Any]: ...

    def parts(self) -> Parts:
        """Returns what a copy of the present version is made of."""

    def parts_of(self, id: int | str) -> Parts:
        """Returns parts that have a subscription, if there is one."""
