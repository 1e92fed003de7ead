"""The root page, free pages and chains of pages of a file.

The root page leads to everything else::

    TREES    table of trees: of ids, of tags, of conjunctions always verified, of each attribute
    SLOTS    table of slots: id (a hash for strings), page and word of the record
    NEEDED   table of bytes: the needed count of each slot
    ...      counts of everything, and the first free page and slot

Each conjunction has a number, its slot. A chain has contents that may not fit in one page: a
record, or one of two texts with names.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colmatch.errors import StoreError
from colmatch.kernels.kinds.pbtree.arrays import BLOB, CHILDREN, HEAD, KIND, NEXT, SIDS
from colmatch.kernels.layout import U32
from colmatch.paged.cache import make_damage_error
from colmatch.paged.file import ROOT, PageFile

# Words of the root page, behind its header.
(TREES_TOP, SLOTS_TOP, NEEDED_TOP, SLOT_COUNT, FREE_SLOT, FREE_PAGE, SUBSCRIPTIONS, UPDATES, UPDATES_HIGH, RECORD_PAGE,
 TEXT_IDS, FREE_SLOTS, TREE_COUNT) = range(HEAD, HEAD + 13)  # fmt: skip
# Chains with names: first page, bytes, number of writes (``metadata.py``).
OTHERS, OLD_LITERALS = HEAD + 13, HEAD + 16
CHAINS = {OTHERS: "descriptions", OLD_LITERALS: "string literals"}
PAGES_AHEAD = 256  # neighbouring pages of a chain that are read together


def words_of(data: bytes, chain: int) -> tuple[U32, int]:
    """Returns the contents of one of ``CHAINS`` as words, and their size in bytes.

    Raises StoreError: the contents are too large.
    """
    if len(data) >> 32:
        raise StoreError(f"the {CHAINS[chain]} have {len(data):,} bytes, a file of pages has room for 4 GiB of them")
    return np.frombuffer(data.ljust(-(-len(data) // 4) * 4, b"\0"), np.uint32), len(data)


class Chains:
    """The root page and chains of pages, to read and change. ``file.commit`` ends an update."""

    def __init__(self, file: PageFile) -> None:
        self.file = file

    def root(self, word: int) -> int:
        """Returns a word of the root page."""
        return int(self.file.read(ROOT)[word])

    def set_root(self, word: int, value: int) -> None:
        self.file.edit(ROOT)[word] = value

    @property
    def updates(self) -> int:
        words = self.file.read(ROOT)
        return int(words[UPDATES]) | int(words[UPDATES_HIGH]) << 32

    def allocate(self, kind: int) -> int:
        page, following = self.file.allocate(self.root(FREE_PAGE))
        self.set_root(FREE_PAGE, following)
        self.file.edit(page)[KIND] = kind
        return page

    def release(self, page: int) -> None:
        self.file.release(page, self.root(FREE_PAGE))
        self.set_root(FREE_PAGE, page)

    def write_chain(self, words: U32) -> int:
        """Writes words to a chain of pages. Returns the first page."""
        first = before = 0
        for begin in range(0, max(len(words), 1), CHILDREN):
            part = words[begin : begin + CHILDREN]
            page = self.allocate(BLOB)
            into = self.file.edit(page)
            into[HEAD : HEAD + len(part)] = part
            into[SIDS] = len(part)
            if before:
                self.file.edit(before)[NEXT] = page
            first, before = first or page, page
        return first

    def remove_chain(self, page: int) -> None:
        """Frees a chain of pages."""
        while page:
            following = int(self.file.read(page)[NEXT])
            self.release(page)
            page = following

    def read_chain(self, page: int, pages: int = 1) -> U32:
        """Returns the words of a chain of at least ``pages`` pages."""
        parts: list[NDArray[np.uint32]] = []
        while page:
            if len(parts) > self.file.pages:
                raise make_damage_error(self.file.path, page)
            ahead = max(min(pages - len(parts), PAGES_AHEAD, self.file.pages - page), 1)
            for words in self.file.read_all(np.arange(page, page + ahead)):
                if words[KIND] != BLOB:
                    raise make_damage_error(self.file.path, page)
                parts.append(words[HEAD : HEAD + int(words[SIDS])])
                page, before = int(words[NEXT]), page
                if page != before + 1:
                    break
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)

    def state_of(self, chain: int) -> tuple[int, ...]:
        """Returns the state of one of ``CHAINS``, which differs whenever the contents do."""
        return self.file.opened, self.root(chain), self.root(chain + 2)

    def read_named(self, chain: int) -> bytes:
        """Returns the contents of one of ``CHAINS``."""
        size = self.root(chain + 1)
        return self.read_chain(self.root(chain), -(-size // (4 * CHILDREN))).tobytes()[:size]

    def write_named(self, chain: int, data: bytes) -> tuple[int, ...]:
        """Writes the contents of one of ``CHAINS``. Returns the new state."""
        words, size = words_of(data, chain)
        self.remove_chain(self.root(chain))
        self.set_root(chain, self.write_chain(words))
        self.set_root(chain + 1, size)
        self.set_root(chain + 2, (self.root(chain + 2) + 1) & 0xFFFFFFFF)
        return self.state_of(chain)
