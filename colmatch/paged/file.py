"""A file of pages with a log, a lock and a cache. Each update is there completely or not at all.

Pages 0 and 1 are headers, and the header with the higher generation counts. An update appends its
changed pages to the log, in one system call if possible. Now and then, a checkpoint copies these
pages to their places in the file. A header of the next generation records it, and the log starts
over. A log of an older generation than the header has nothing that is not in the file.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakMethod

import numpy as np
from numpy.typing import NDArray

from colmatch.errors import OptionError, StoreError
from colmatch.kernels.kinds.pbtree.arrays import KIND, NEXT
from colmatch.kernels.layout import U32
from colmatch.paged.cache import PAGE, Cache, StaleError, make_damage_error, read_error, update_number_of, write_error
from colmatch.paged.header import FIRST_PAGE, header_bytes, read_header
from colmatch.paged.log import PAGES, base_of, first_part, generation_of, open_log
from colmatch.store import locks
from colmatch.store.beside import open_beside
from colmatch.store.log import HEAD, HEADER, Damage, Log
from colmatch.store.replacing import is_there

ROOT = FIRST_PAGE  # the page that leads to all others
LOG_MOST = 1 << 25  # bytes of a log; a longer one causes a checkpoint
TRIES = 20  # attempts to read a page, or the header of the log, that another process may be writing


class PageFile:
    """An open file of pages. One process at a time may change it, others read.

    Attributes
    ----------
    generation, update_number, pages : checkpoint, last update and number of pages of the state read
    opened : how often the file was opened; each time, it may be another one
    in_log (pages) : offset of each page in the log, 0 if the file has it
    """

    handle = -1

    def __init__(self, path: str, cache_bytes: int, fsync: bool = False) -> None:
        self.path, self.log = path, Log(PAGES, path)
        self.fsync = fsync
        self.is_writer = False
        self._pid = os.getpid()
        self.generation = self.update_number = self.pages = 0
        self.in_log: NDArray[np.int64] = np.zeros(0, np.int64)
        self.log_end = 0
        self.writes = 0
        self.opened = 1
        fill = WeakMethod(self._fill)  # weak, so that the cache does not keep an abandoned file open
        self.cache = Cache(cache_bytes, lambda first, views: fill()(first, views))  # type: ignore[misc]
        self.handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the file, and gives up the right to change it."""
        handle, self.handle = self.handle, -1
        with suppress(OSError):
            locks.close(handle)
        with suppress(OSError):
            self.log.close()
        self.is_writer = False

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # modules are gone then, and the system closes open files
            self.close()

    @property
    def state(self) -> tuple[int, int]:
        """Returns the generation and the update number, which identify the state that is read."""
        return self.generation, self.update_number

    def begin_anew(self) -> None:
        """Forgets the state, and the right to change the file, in a forked child."""
        self.log.close()
        self.is_writer = False
        self.generation = self.update_number = self.pages = self.log_end = 0
        self.cache.begin_anew()

    # Choosing the state

    def refresh(self) -> bool:
        """Advances to the last finished update. Returns whether anything has changed.

        Raises StoreError: the file is damaged, or cannot be read.
        """
        if self.is_writer:
            return False
        try:
            return self._refresh()
        except OSError as error:
            raise read_error(self.path, error) from error

    def _refresh(self) -> bool:
        if self.generation and os.stat(self.path).st_ino != os.fstat(self.handle).st_ino:
            handle, self.handle = self.handle, os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            os.close(handle)
            self.generation = 0
            self.opened += 1
        self._refresh_log()
        before = self.state
        for _ in range(TRIES):
            generation, update_number, pages = read_header(self.handle, self.path)
            own = generation_of(self.log) if self.log.handle >= 0 and self._read_log_header() else -1
            if own != generation + 1:  # the next one: the header may have been written since
                break
        else:
            raise StoreError(
                f"{self.path} is damaged: its newer header is not what was written, and its log has updates behind that "
                f"one: `colmatch recover {self.path}` writes it again, or copy both again"
            )
        if generation != self.generation:
            self.cache.clear()
            self.generation, self.update_number, self.pages, self.log_end = generation, update_number, pages, HEADER
            self.in_log = np.zeros(pages, np.int64)
            self.cache.resize(pages)
        if own == generation:
            self._follow_log()
        return before != self.state

    def _refresh_log(self) -> None:
        """Opens the log, again if another file has its name now."""
        if self.log.handle >= 0 and not is_there(self.log.path, self.log.handle):
            self.log.close()
            self.generation = 0
        if self.log.handle < 0:
            with suppress(FileNotFoundError):
                self.log.handle = open_beside(self.log.path, self.path, PAGES.noun, to_write=False)

    def _read_log_header(self) -> bool:
        """Reads the header of the log, again where another process may be writing it."""
        for _ in range(TRIES - 1):
            try:
                return self.log.read_header()
            except Damage:
                time.sleep(0.001)
        return self.log.read_header()

    def _follow_log(self) -> None:
        size, base = self.log.size, self.log.base
        while self.log_end < size:
            try:
                record = self.log.record(self.log_end, self.update_number, size)
            except Damage:
                if self.log.size == size and self._read_log_header() and self.log.base == base:
                    raise
                break  # a writer is busy with it
            if record is None:
                break
            total, pages, begin = record.content
            if total > self.pages + len(pages) or (pages < FIRST_PAGE).any() or (pages >= total).any():
                raise StoreError(
                    f"{self.log.path} is damaged: the update at byte {self.log_end} has pages that the file cannot have: copy "
                    "both again"
                )
            self._take(total, pages, begin)
            self.cache.forget(pages)
            self.update_number, self.log_end = record.number, record.end

    def _take(self, total: int, pages: NDArray[np.int64], offset: int) -> None:
        self.pages = total
        if total > len(self.in_log):
            self.in_log = np.concatenate([self.in_log, np.zeros(total + total // 4 - len(self.in_log), np.int64)])
        self.cache.resize(total)
        self.in_log[pages] = offset + PAGE * np.arange(len(pages))

    # Reading

    def _fill(self, first: int, views: list[memoryview]) -> None:
        """Reads neighbouring pages into memory."""
        begin = 0
        for i in range(len(views) + 1):
            if i < len(views) and self.in_log[first + i] == 0:
                continue
            if begin < i:
                self._read_run(self.handle, (first + begin) * PAGE, first + begin, views[begin:i])
            if i < len(views):
                self._read_run(self.log.handle, int(self.in_log[first + i]), first + i, views[i : i + 1])
            begin = i + 1

    def _read_run(self, handle: int, offset: int, first: int, views: list[memoryview]) -> None:
        try:
            size = os.preadv(handle, views, offset)
        except OSError as error:
            raise read_error(self.path, error) from error
        if size < PAGE * len(views):
            page = first + size // PAGE
            raise make_damage_error(self.path, page) if self.is_writer else StaleError(page)
        for i, view in enumerate(views):
            if not self.cache.is_whole(first + i, view):
                self._read_again(handle, offset + i * PAGE, first + i, view)
            if update_number_of(view) > self.update_number:
                raise StaleError(first + i)

    def _read_again(self, handle: int, offset: int, page: int, view: memoryview) -> None:
        """Rereads a page that another process may have been writing."""
        for _ in range(TRIES if not self.is_writer else 1):
            os.preadv(handle, [view], offset)
            if self.cache.is_whole(page, view):
                return
            if self._refresh():
                raise StaleError(page)
        raise make_damage_error(self.path, page)

    def read(self, page: int) -> U32:
        """Returns the words of a page, valid until other pages are read."""
        if not 0 < page < self.pages:
            raise make_damage_error(self.path, page)
        return self.cache.words(self.cache.at(page))

    def read_all(self, pages: NDArray[np.int64]) -> U32:
        """Returns a copy of the words of pages: (pages, WORDS)."""
        out = np.empty((len(pages), PAGE // 4), np.uint32)
        if len(pages) and (int(pages.min()) < 1 or int(pages.max()) >= self.pages):
            raise make_damage_error(self.path, int(pages.max()))
        step = max(self.cache.frames // 2, 1)
        order = np.argsort(pages, kind="stable")
        for begin in range(0, len(pages), step):
            part = order[begin : begin + step]
            self.cache.load(pages[part])
            out[part] = self.cache.mem.reshape(-1, PAGE // 4)[self.cache.frame[pages[part]]]
        return out

    # Changing

    def begin_writing(self) -> None:
        """Takes the right to change the file.

        Raises StoreError: another writer has it, the file cannot be written, or it was replaced.
        """
        if self._pid != os.getpid():
            raise OptionError(f"{self.path} was opened before this process was forked: open it again to update it")
        if self.is_writer:
            self._go_on_writing()
            return
        new_log = open_log(self.path)
        try:
            main = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            new_log.close()
            raise write_error(self.path, error) from error
        log, handle, self.log, self.handle = self.log, self.handle, new_log, main
        log.close()
        os.close(handle)
        self.generation = 0  # read everything again, since the file may be another one
        self.opened += 1
        try:
            self.refresh()
            if generation_of(self.log) != self.generation:
                self._begin_log()
            self.is_writer = True
        except OSError as error:
            raise write_error(self.path, error) from error
        finally:
            if not self.is_writer:
                self.close_writing()

    def _go_on_writing(self) -> None:
        """Checks that the file is still in place. A removed log is started again."""
        if is_there(self.path, self.handle):
            if is_there(self.log.path, self.log.handle):
                return
            log = open_log(self.path)
            try:
                is_ours = is_there(self.path, self.handle) and not log.size
                if is_ours and read_header(self.handle, self.path)[0] == self.generation:
                    self.checkpoint()
                    self.log, log = log, self.log
                    self._begin_log()
                    return
            except OSError as error:
                raise write_error(self.path, error) from error
            finally:
                log.close()
        raise StoreError(
            f"{self.path} was removed, or replaced, since it was opened: nothing was changed; save() writes what this "
            "matcher has to another file"
        )

    def close_writing(self) -> None:
        """Gives up the right to change the file."""
        if self.log.handle >= 0:
            locks.unlock(self.log.handle)
        self.is_writer = False

    def edit(self, page: int) -> U32:
        """Marks a page as changed. Returns its words."""
        if not 0 < page < self.pages:
            raise make_damage_error(self.path, page)
        frame = self.cache.at(page)
        self.cache.dirty[frame] = 1
        return self.cache.words(frame)

    def allocate(self, head: int) -> tuple[int, int]:
        """Returns an unused page, emptied, and the first free page behind it.

        head : the first free page, 0 for none
        """
        if head:
            following = int(self.read(head)[NEXT])
            self.cache.fresh(head)
            return head, following
        page = self.pages
        if page >= 1 << 31:
            raise StoreError(f"{self.path} has as many pages as it can have: build it again in two parts")
        self.pages += 1
        self.cache.resize(self.pages)
        if self.pages > len(self.in_log):
            self.in_log = np.concatenate([self.in_log, np.zeros(self.pages // 4 + 64, np.int64)])
        self.cache.fresh(page)
        return page, 0

    def release(self, page: int, head: int) -> None:
        """Frees a page, and links it to the first free page."""
        words = self.edit(page)
        words[:] = 0
        words[KIND], words[NEXT] = 0, head

    def commit(self) -> None:
        """Commits all changes as one update, which is in the log when the call returns.

        Raises StoreError: the log cannot be written, and the file is as before the update. Or the
        update is in the log, but may not be on the disk, and the message says so.
        """
        frames = self.cache.dirty_frames()
        pages = self.cache.page[frames]
        order = np.argsort(pages)
        frames, pages = frames[order], pages[order]
        update_number = self.update_number + 1
        views = self.cache.seal_pages(frames, pages, update_number)
        sums = b"".join([view[:4] for view in views])
        first, checksum = first_part(self.generation, self.pages, pages, sums)
        try:
            end = self.log.append(self.log_end, update_number, [first, *views], checksum)
        except OSError as error:
            raise write_error(self.path, error) from error
        self.writes += len(pages)
        self.update_number = update_number
        self._take(self.pages, pages, end - HEAD - PAGE * len(pages))
        self.log_end = end
        self.cache.dirty[frames] = 0
        self.cache.end_update()
        if self.fsync:  # readers may have seen the update, so it is not taken back
            try:
                os.fsync(self.log.handle)
            except OSError as error:
                message = (
                    f"the update is in {self.path}, and may not outlast a power cut: {os.strerror(error.errno or 0)}"
                )
                raise StoreError(message) from error
        if self.log_end > LOG_MOST:
            with suppress(OSError):  # all is in the log: it grows until there is room for a copy
                self.checkpoint()

    def roll_back(self, pages: int) -> None:
        """Discards all changes since the last commit, when there were ``pages`` pages."""
        dirty = self.cache.dirty_frames()
        self.cache.forget(self.cache.page[dirty])
        self.cache.dirty[:] = 0
        self.cache.end_update()
        self.pages = pages

    def checkpoint(self) -> None:
        """Copies the pages of the log to the file, and empties the log.

        Raises OSError: the file cannot be written. Nothing is lost, since the log has everything.
        """
        pages = np.flatnonzero(self.in_log[: self.pages])
        if not len(pages) and self.log_end == HEADER:
            return
        os.fsync(self.log.handle)
        for page, offset in zip(pages.tolist(), self.in_log[pages].tolist(), strict=True):
            self._put(os.pread(self.log.handle, PAGE, offset), page)
        os.fsync(self.handle)
        generation = self.generation + 1
        try:
            self._put(header_bytes(generation, self.update_number, self.pages), generation % 2)
            os.fsync(self.handle)
            self.generation = generation
            self.in_log[:] = 0
            self._begin_log()
        except BaseException:  # opening the file again finds out which header counts
            self.close_writing()
            raise

    def _put(self, data: bytes, page: int) -> None:
        if os.pwrite(self.handle, data, page * PAGE) < PAGE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _begin_log(self) -> None:
        """Empties the log, which is of an older generation now. The next update begins another."""
        self.log_end = HEADER
        self.log.base, self.log.start = base_of(self.generation, self.update_number)
        os.ftruncate(self.log.handle, 0)
