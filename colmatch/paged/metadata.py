"""The descriptions of a file's subscriptions: schema, options, attributes, string literals.

They are in two chains of pages. The first is a saved matcher without subscriptions and with only
the recent string literals (``events/vocabulary.py``). It is written whenever something in it is
new. The second has the old literals, which may be millions. It is read when they are first needed,
and written when recent literals join them.

Keys in trees are labels, which follow the order of all literals. So literals are read together.
With one chain, each insert with a new literal among 300,000 took 115 ms; with two, it takes 2 ms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from colmatch.arrays.frozen import freeze
from colmatch.events.vocabulary import Vocabulary, WordList
from colmatch.paged.root_page import OLD_LITERALS, OTHERS, Chains
from colmatch.store import saved
from colmatch.store.file import pack
from colmatch.updates.versions import Parts, Version


class Metadata(NamedTuple):
    """The descriptions of the subscriptions, as far as they were read.

    ``parts`` has only the recent literals, and ``old`` has the old ones. ``version`` is the version
    of ``parts`` with all literals. Both are None until they are needed. ``others`` and ``literals``
    are the states of the chains that were read.
    """

    parts: Parts
    others: tuple[int, ...]
    literals: tuple[int, ...]
    old: WordList | None = None
    version: Version | None = None


def chains_of(parts: Parts) -> dict[int, bytes]:
    """Returns the contents of both chains, by their names in ``root_page.CHAINS``."""
    return {OTHERS: saved.to_bytes(_with_recent(parts)), OLD_LITERALS: _old_literals(parts.version)}


def read(store: Chains, known: Metadata | None) -> Metadata:
    """Reads the descriptions if they have changed. Outdated old literals are dropped, not read."""
    others, literals = store.state_of(OTHERS), store.state_of(OLD_LITERALS)
    old = known.old if known is not None and known.literals == literals else None
    if known is None or known.others != others:
        return Metadata(saved.read_description(store.read_named(OTHERS)), others, literals, old)
    return known if known.literals == literals else known._replace(literals=literals, old=None, version=None)


def read_literals(store: Chains, known: Metadata) -> Metadata:
    """Returns the same descriptions with all string literals."""
    if known.version is not None:
        return known
    old = known.old
    if old is None:
        old = WordList(freeze(saved.literals_of(store.read_named(OLD_LITERALS))))
    version = known.parts.version
    literals = Vocabulary(old, version.literals.old).of(len(version.attributes))
    return known._replace(version=version.with_changes(literals=literals), old=old)


def write(store: Chains, known: Metadata, parts: Parts) -> Metadata:
    """Writes ``parts``, and the old literals if they have changed.

    The versions of ``parts`` and ``known`` have all literals.
    """
    assert known.version is not None
    recent = _with_recent(parts)
    literals, others = known.literals, store.write_named(OTHERS, saved.to_bytes(recent))
    old = parts.version.literals.old
    if old.literals.offset is not known.version.literals.old.literals.offset:
        literals = store.write_named(OLD_LITERALS, _old_literals(parts.version))
    return Metadata(recent, others, literals, old, parts.version)


def _with_recent(parts: Parts) -> Parts:
    recent = Vocabulary.among(parts.version.literals.recent.literals)
    return replace(parts, version=parts.version.with_changes(literals=recent))


def _old_literals(version: Version) -> bytes:
    return pack({}, version.literals.old.literals._asdict())
