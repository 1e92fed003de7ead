"""A walk over the pages of a file, which checks their kinds."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from colmatch.errors import StoreError
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.layout import U32
from colmatch.paged.file import ROOT as ROOT_PAGE
from colmatch.paged.paged_set import PagedSet

NAMES = {
    pb.FREE: "free", pb.LEAF: "leaf", pb.INNER: "inner", pb.LIST: "list", pb.TABLE: "table", pb.RECORDS: "records", pb.BLOB: "blob",
    pb.ROOT: "root", pb.BLOCKS: "blocks",
}  # fmt: skip


class Walk:
    """A walk over all pages of a file. It reaches each page once.

    Attributes
    ----------
    pages : the words of all pages
    kinds : the kind of each page
    seen : whether each page was reached
    """

    def __init__(self, paged: PagedSet) -> None:
        file = paged.file
        self.paged, self.path = paged, paged.path
        self.pages: U32 = np.zeros((file.pages, pb.WORDS), np.uint32)
        self.pages[ROOT_PAGE:] = file.read_all(np.arange(ROOT_PAGE, file.pages))
        self.kinds = self.pages[:, pb.KIND]
        self.seen = np.zeros(file.pages, bool)
        self.seen[:ROOT_PAGE] = True

    def wrong(self, page: int, said: str) -> NoReturn:
        raise StoreError(f"{self.path} is damaged: page {page} {said}: take a copy, or build it again")

    def reach(self, page: int, kind: int) -> U32:
        """Checks that a page has the right kind and is reached once. Returns its words."""
        if not 0 < page < len(self.pages) or self.kinds[page] != kind:
            self.wrong(page, f"is not a page of the kind {NAMES[kind]!r}, which another page takes it for")
        if self.seen[page]:
            self.wrong(page, "is used twice")
        self.seen[page] = True
        words: U32 = self.pages[page]
        return words

    def table(self, top: int) -> list[tuple[int, int]]:
        """Walks over a table. Returns the place and number of each of its pages."""
        pages = []
        for i, middle in enumerate(self.reach(top, pb.TABLE)[pb.HEAD :].tolist()):
            if middle:
                for j, page in enumerate(self.reach(middle, pb.TABLE)[pb.HEAD :].tolist()):
                    if page:
                        self.reach(page, pb.TABLE)
                        pages.append((i * pb.CHILDREN + j, page))
        return pages

    def chain(self, page: int, kind: int) -> int:
        """Walks over a chain of pages. Returns the number of pages."""
        count = 0
        while page:
            page, count = int(self.reach(page, kind)[pb.NEXT]), count + 1
        return count
