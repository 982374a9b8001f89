"""Layout A: one segmented log of group blocks for every topic; extents indexed in memory, written when sealed.

The index keeps two words per extent, in one array per topic: segment << 40 | offset, and count << 32 | size.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from array import array
from collections.abc import Iterator

from benchmarks.layouts import blocks
from benchmarks.layouts.gauge import MIB, Disk, drop_cache

SEGMENT = 128 * MIB
WINDOW = MIB  # bytes a reader asks for at a time
HOLE = 32 << 10  # foreign bytes worth reading through to save a system call
RUN = struct.Struct("<QII")


class Interleaved:
    def __init__(self, folder: str, topics: int, disk: Disk, spares: int = 0) -> None:
        """`spares`: that many segments exist already, full of old bytes, as after trimming."""
        self.name = "A recycled" if spares else "A interleaved"
        for segment in range(spares):
            self.prefill(self.path_in(folder, segment))
        self.folder, self.disk = folder, disk
        self.next_entry = [0] * topics
        self.index: list[dict[int, array[int]]] = []
        self.fds: list[int] = []
        self.size = 0
        self.begin()

    @staticmethod
    def path_in(folder: str, segment: int, kind: str = "log") -> str:
        return os.path.join(folder, f"{segment:06d}.{kind}")

    def path(self, segment: int, kind: str = "log") -> str:
        return self.path_in(self.folder, segment, kind)

    @staticmethod
    def prefill(path: str) -> None:
        noise = os.urandom(4 * MIB)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
        for _ in range(SEGMENT // len(noise) + 2):
            os.write(fd, noise)
        os.close(fd)
        drop_cache(path)  # an old segment's pages are long gone when it comes back; keeping them would flatter it

    def begin(self) -> None:
        self.fds.append(os.open(self.path(len(self.fds)), os.O_RDWR | os.O_CREAT))
        self.index.append({})
        self.size = 0

    def commit(self, group: blocks.Group) -> None:
        parts, size, extents = blocks.build(group, self.next_entry)
        self.disk.writev(self.fds[-1], parts)
        self.disk.sync(self.fds[-1])
        index = self.index[-1]
        for topic, _, count, offset, length in extents:
            known = index.get(topic)
            if known is None:
                known = index[topic] = array("Q")
            known.append(self.size + offset)
            known.append(count << 32 | length)
        self.size += size
        if self.size >= SEGMENT:
            self.seal()
            self.begin()

    def seal(self) -> None:
        """The index of a full segment as a file: topic and length of each array, then the arrays."""
        index = self.index[-1]
        heads = b"".join(RUN.pack(topic, len(words), 0) for topic, words in index.items())
        fd = os.open(self.path(len(self.fds) - 1, "index"), os.O_WRONLY | os.O_CREAT)
        self.disk.writev(fd, [heads, b"".join([words.tobytes() for words in index.values()])])
        self.disk.sync(fd)
        os.close(fd)

    def finish(self) -> None:
        self.seal()

    def index_bytes(self) -> int:
        return sum(sys.getsizeof(index) + sum(map(sys.getsizeof, index.values())) for index in self.index)

    def forget_cache(self) -> None:
        for segment in range(len(self.fds)):
            drop_cache(self.path(segment))
            if os.path.exists(self.path(segment, "tidy")):
                drop_cache(self.path(segment, "tidy"))

    def read(self, topic: int, prefetch: bool = False) -> Iterator[bytes]:
        """Every entry of the topic; neighbouring extents share one pread of at most WINDOW."""
        for segment, index in enumerate(self.index):
            words = index.get(topic)
            if words is not None:
                yield from self.read_segment(self.fds[segment], words, prefetch)

    def read_segment(self, fd: int, words: array[int], prefetch: bool) -> Iterator[bytes]:
        at, end = 0, len(words)
        asked = 0
        while at < end:
            if prefetch and at >= asked:  # let the kernel fetch the next 64 extents side by side
                asked = min(at + 128, end)
                for ahead in range(at, asked, 2):
                    os.posix_fadvise(fd, words[ahead], words[ahead + 1] & 0xFFFFFFFF, os.POSIX_FADV_WILLNEED)
            start = words[at]
            stop = start + (words[at + 1] & 0xFFFFFFFF)
            last = at + 2
            while last < end and words[last] - stop <= HOLE:
                reach = words[last] + (words[last + 1] & 0xFFFFFFFF)
                if reach - start > WINDOW:
                    break
                stop, last = reach, last + 2
            window = os.pread(fd, stop - start, start)
            for one in range(at, last, 2):
                begin = words[one] - start
                yield from blocks.payloads(window[begin : begin + (words[one + 1] & 0xFFFFFFFF)])
            at = last

    def tidy(self) -> int:
        """Rewrites every segment sorted by topic; the old one could now be deleted. Bytes moved."""
        moved = 0
        for segment, index in enumerate(self.index):
            fd = os.open(self.path(segment, "tidy"), os.O_RDWR | os.O_CREAT)
            moved += self.tidy_segment(self.fds[segment], fd, index)
            os.close(self.fds[segment])
            self.fds[segment] = fd
        return moved

    def tidy_segment(self, old: int, new: int, index: dict[int, array[int]]) -> int:
        size = os.fstat(old).st_size
        if not size:
            return 0
        parts: list[memoryview] = []
        waiting = offset = 0
        with mmap.mmap(old, size, prot=mmap.PROT_READ) as source, memoryview(source) as view:
            for topic in sorted(index):
                words = index[topic]
                for at in range(0, len(words), 2):
                    start, length = words[at], words[at + 1] & 0xFFFFFFFF
                    parts.append(view[start : start + length])
                    words[at] = offset
                    offset += length
                    waiting += length
                if waiting > MIB:
                    self.disk.writev(new, [b"".join(parts)])
                    for part in parts:
                        part.release()
                    parts, waiting = [], 0
            self.disk.writev(new, [b"".join(parts)])
            for part in parts:
                part.release()
        self.disk.sync(new)
        return offset

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)
