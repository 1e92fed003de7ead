"""A cache of pages: frames in one array, which kernels read, and the frame of each page."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from colmatch.errors import StoreError
from colmatch.kernels.kinds.pbtree.arrays import CHECKSUM, STAMP, STAMP_HIGH, WORDS
from colmatch.kernels.layout import I32, I64, U8, U32

PAGE = 4 * WORDS  # bytes
LEAST_FRAMES = 8  # frames
NONE: NDArray[np.int64] = np.empty(0, np.int64)
ROOM_LEAST = 1024  # frames with room from the start, if the budget has as many


class StaleError(Exception):
    """A signal to begin again: another process has changed a page since this one began to read.

    page : its number. If the state turns out the same again, the page is damaged
    """

    def __init__(self, page: int) -> None:
        super().__init__(page)
        self.page = page


def checksum(page: memoryview | bytes, number: int) -> int:
    """Returns the checksum of a page, which belongs in its first four bytes."""
    return zlib.crc32(page[4:], number)


class Cache:
    """Frames of pages, evicted by a clock: pages used since the hand last passed may stay.

    Frame 0 holds no page (``editing.py``). Frames that an update has changed stay until it ends.
    If these exceed the budget, there are more frames until then. A budget larger than the file
    costs nothing.

    Attributes
    ----------
    mem, frame, used, dirty : as in the kernels' ``PageCache``
    page (frames) : the page of each frame, -1 for none
    holds : an update is in progress, and the pages that it has read stay, too
    reads, hits : pages read from the file; requests for pages in memory, except by kernels that
        change them
    """

    def __init__(self, budget: int, read: Callable[[int, list[memoryview]], None]) -> None:
        self.frames = max(budget // PAGE, LEAST_FRAMES)
        self._read = read
        self.reads = self.hits = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forgets all pages and any unfinished change."""
        self.holds = False
        self.frame: I32 = np.full(1, -1, np.int32)
        self._begin(self._room())

    def _room(self) -> int:
        """Returns the initial number of frames: no more than all pages of the file fill."""
        return min(self.frames, max(2 * len(self.frame), ROOM_LEAST)) + 1

    def _begin(self, frames: int) -> None:
        self.mem: U32 = np.zeros(frames * WORDS, np.uint32)
        self.page: I64 = np.full(frames, -1, np.int64)
        self.used: U8 = np.zeros(frames, np.uint8)
        self.dirty: U8 = np.zeros(frames, np.uint8)
        self._kept: U8 = np.zeros(frames, np.uint8)
        self._bytes = self.mem.view(np.uint8).data
        self._hand = 1
        self._top = 1  # frames from here on have never held a page
        self._free: list[int] = []  # other frames without a page

    def set_budget(self, size: int) -> None:
        """Sets the budget in bytes. A different budget forgets all pages."""
        frames = max(size // PAGE, LEAST_FRAMES)
        if frames != self.frames:
            self.frames = frames
            self.frame[:] = -1
            self._begin(self._room())

    def resize(self, pages: int) -> None:
        """Makes room for page numbers below ``pages``. An empty cache may get more frames."""
        if pages > len(self.frame):
            more = np.full(max(pages, len(self.frame) * 5 // 4), -1, np.int32)
            more[: len(self.frame)] = self.frame
            self.frame = more
        if self._top == 1 and len(self.page) < self._room():
            self._begin(self._room())

    def begin_update(self) -> None:
        """Begins an update: pages that it reads stay until ``end_update``."""
        self.used[:] = 0
        self.holds = True

    def clear(self) -> None:
        """Forgets all pages."""
        self.frame[:] = -1
        self.page[:] = -1
        self.used[:] = 0
        self.dirty[:] = 0
        self._top, self._free = 1, []

    def forget(self, pages: NDArray[np.int64]) -> None:
        frames = self.frame[pages]
        frames = frames[frames >= 0]
        self.page[frames] = -1
        self.dirty[frames] = 0
        self.used[frames] = 0
        self.frame[pages] = -1
        self._free += frames.tolist()

    def dirty_frames(self) -> NDArray[np.int64]:
        """Returns the frames that the update has changed."""
        return np.flatnonzero(self.dirty[: self._top].view(bool))

    def end_update(self) -> None:
        """Ends an update, and returns to the budget if the update needed more frames."""
        self.holds = False
        if len(self.page) > self.frames + 1:
            self.frame[:] = -1
            self._begin(self._room())

    def view(self, frame: int) -> memoryview:
        """Returns the bytes of a frame."""
        return self._bytes[frame * PAGE : (frame + 1) * PAGE]

    def seal_pages(self, frames: NDArray[np.int64], pages: NDArray[np.int64], update_number: int) -> list[memoryview]:
        """Gives pages their update number and checksums. Returns the bytes of each."""
        words = self.mem.reshape(-1, WORDS)
        words[frames, STAMP], words[frames, STAMP_HIGH] = update_number & 0xFFFFFFFF, update_number >> 32
        views = [self.view(frame) for frame in frames.tolist()]
        words[frames, CHECKSUM] = [checksum(view, page) for view, page in zip(views, pages.tolist(), strict=True)]
        return views

    def words(self, frame: int) -> U32:
        """Returns a view of the 1,024 words of the page in a frame."""
        return self.mem[frame * WORDS : (frame + 1) * WORDS]

    def take_frames(self, count: int, keep: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns ``count`` frames: free ones, or frames not used recently.

        keep : frames that must stay
        """
        if count == 1 and self._top < len(self.page) and not self._free:
            self._top += 1
            return np.array([self._top - 1])
        # Take free frames, then frames that were never used
        spare = [self._free.pop() for _ in range(min(count, len(self._free)))]
        never = min(count - len(spare), len(self.page) - self._top)
        free = np.array([*spare, *range(self._top, self._top + never)], np.int64)
        self._top += never
        # Add frames within the budget
        if len(free) < count and len(self.page) <= self.frames:  # the file has grown
            most = self.frames + 1 - len(self.page)
            free = np.concatenate([free, self._add_frames(min(count - len(free), most), most)])
        # Evict pages, some of them in advance
        if len(free) < count:
            free = np.concatenate([free, *self._evict(max(count - len(free), self.frames // 128), keep)])
            self._free += free[count:].tolist()
            free = free[:count]
        # Exceed the budget if all frames must stay
        if len(free) < count:
            free = np.concatenate([free, self._add_frames(count - len(free))])
        return free

    def _evict(self, count: int, keep: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Advances the hand of the clock until ``count`` frames are free, or none can be.

        An update marks the frames that it changes as used, so they stay like all that it uses.
        """
        frames, victims = len(self.page) - 1, []
        self._kept[keep] = 1
        turns = frames if self.holds else 2 * frames
        while count > 0 and turns > 0:
            # Choose unused frames in a window from the hand on
            window = (self._hand - 1 + np.arange(min(2 * count + 64, frames))) % frames + 1
            can = (self.page[window] >= 0) & (self._kept[window] == 0)
            places = np.flatnonzero(can & (self.used[window] == 0))[:count]
            if len(places) == count:
                window = window[: places[-1] + 1]
            # Free them, and give used frames a second chance
            old = window[places]
            if not self.holds:
                self.used[window] = 0
            self.frame[self.page[old]] = -1
            self.page[old] = -1
            self._hand = int(window[-1]) % frames + 1
            turns -= len(window)
            count -= len(old)
            victims.append(old)
        self._kept[keep] = 0
        return victims

    def _add_frames(self, wanted: int, most: int | None = None) -> NDArray[np.int64]:
        """Adds at least ``wanted`` frames, and returns exactly that many of them."""
        frames = len(self.page)
        count = max(wanted, frames // 2)
        count = count if most is None else min(count, most)
        mem, page, used, dirty, hand = self.mem, self.page, self.used, self.dirty, self._hand
        self._begin(frames + count)
        self.mem[: len(mem)], self.page[:frames], self.used[:frames], self.dirty[:frames] = mem, page, used, dirty
        self._hand, self._top = hand, frames
        more = count - wanted
        self._free = list(range(frames + wanted, frames + count)) if more else []
        self._top = frames + count
        return np.arange(frames, frames + wanted)

    def load(self, pages: NDArray[np.int64]) -> None:
        """Brings pages into memory, in the order of the file.

        Pages in memory stay. If there are more pages than frames, only the first ones are read.
        """
        numbers = np.unique(pages)
        there = self.frame[numbers]
        self.hits += int(np.count_nonzero(there >= 0))
        keep = there[there >= 0].astype(np.int64)
        numbers = numbers[there < 0][: max(self.frames - len(keep), 1)]
        if not len(numbers):
            return
        frames = self.take_frames(len(numbers), keep)[: len(numbers)]
        self._read_into(numbers.tolist(), frames.tolist())
        self.page[frames] = numbers
        self.frame[numbers] = frames
        self.used[frames] = 1

    def _read_into(self, pages: list[int], frames: list[int]) -> None:
        """Reads pages, in ascending order, into free frames."""
        self.reads += len(pages)
        begin = 0
        try:
            for i in range(1, len(pages) + 1):
                if i == len(pages) or pages[i] != pages[i - 1] + 1 or i - begin == 256:
                    self._read(pages[begin], [self.view(frame) for frame in frames[begin:i]])
                    begin = i
        except BaseException:
            self._free += [frame for frame in frames if frame < self._top and self.page[frame] < 0]
            raise

    def at(self, page: int) -> int:
        """Returns the frame of a page, which is read if it is not in memory."""
        frame = int(self.frame[page])
        if frame < 0:
            frame = int(self.take_frames(1, NONE)[0])
            self._read_into([page], [frame])
            self.page[frame], self.frame[page] = page, frame
        else:
            self.hits += 1
        self.used[frame] = 1
        return frame

    def fresh(self, page: int) -> int:
        """Returns an empty frame for a page that has no contents yet."""
        frame = int(self.frame[page])
        if frame < 0:
            frame = int(self.take_frames(1, NONE)[0])
            self.page[frame], self.frame[page] = page, frame
        self.words(frame)[:] = 0
        self.dirty[frame] = 1
        self.used[frame] = 1
        return frame

    def is_whole(self, page: int, view: memoryview) -> bool:
        """Checks whether a page has the right checksum."""
        return int.from_bytes(view[:4], "little") == checksum(view, page)


def update_number_of(view: memoryview | bytes) -> int:
    """Returns the number of the update that wrote a page."""
    return int.from_bytes(view[4 * STAMP : 4 * STAMP_HIGH + 4], "little")


def make_damage_error(path: str, page: int) -> StoreError:
    """Returns the error for a page that differs from the written one."""
    return StoreError(
        f"{path} is damaged: page {page} (from byte {page * PAGE} on) is not what was written: take a copy, or build it again"
    )


def write_error(path: str, error: OSError) -> StoreError:
    """Returns the error for a file that cannot be written."""
    return StoreError(f"{path} cannot be written: {os.strerror(error.errno or 0)}: nothing was changed")


def read_error(path: str, error: OSError) -> StoreError:
    """Returns the error for a file that cannot be read."""
    return StoreError(f"{path} cannot be read: {os.strerror(error.errno or 0)}: nothing was changed")
