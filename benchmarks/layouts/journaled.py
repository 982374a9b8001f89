"""Layouts B and C: a journal synced per group, and one file per ledger written in the background.

B writes every payload twice. C (`direct` > 0) sends what one topic brings to a group, when it is at least that large,
straight to the topic's file with a sync of its own, and journals only the rest. A checkpoint writes what has gathered
for each ledger, syncs each file, and lets the journal start again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from benchmarks.layouts import blocks
from benchmarks.layouts.gauge import MIB, Disk, drop_cache

CHECKPOINT = 64 * MIB  # journal bytes between two checkpoints; twice that is the bound on waiting bytes
WINDOW = MIB
OPEN_FILES = 512


class Journaled:
    def __init__(self, folder: str, topics: int, disk: Disk, direct: int = 0) -> None:
        self.name = "C large direct" if direct else "B journal + files"
        self.folder, self.disk, self.direct = folder, disk, direct
        self.next_entry = [0] * topics
        self.files: dict[int, int] = {}
        self.gathered: dict[int, list[bytes]] = {}
        self.gathered_bytes = 0
        self.room = threading.Condition()
        self.flushing = False
        self.closing = False
        self.journal = os.open(os.path.join(folder, "journal"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.spare = os.open(os.path.join(folder, "journal2"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.background = threading.Thread(target=self.flush_when_due)
        self.background.start()

    def path(self, topic: int) -> str:
        return os.path.join(self.folder, f"{topic:08d}.ledger")

    def open(self, topic: int) -> int:
        fd = self.files.get(topic)
        if fd is None:
            fd = os.open(self.path(topic), os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self.files[topic] = fd
        return fd

    def commit(self, group: blocks.Group) -> None:
        if self.direct:
            large = [topic for topic, entries in group.items() if sum(map(len, entries)) >= self.direct]
            for topic in large:
                parts, _, _ = blocks.build({topic: group.pop(topic)}, self.next_entry)
                fd = self.open(topic)
                self.disk.writev(fd, parts[1:])
                self.disk.sync(fd)
            if not group:
                return
        parts, size, _ = blocks.build(group, self.next_entry)
        with self.room:
            self.room.wait_for(lambda: self.gathered_bytes < CHECKPOINT or not self.flushing)
            journal = self.journal
        self.disk.writev(journal, parts)
        self.disk.sync(journal)
        with self.room:
            for topic, entries in group.items():
                known = self.gathered.get(topic)
                if known is None:
                    self.gathered[topic] = entries
                else:
                    known += entries
            self.gathered_bytes += size
            if self.gathered_bytes >= CHECKPOINT:
                self.room.notify_all()

    def flush_when_due(self) -> None:
        while True:
            with self.room:
                self.room.wait_for(lambda: self.closing or self.gathered_bytes >= CHECKPOINT)
                if self.closing and not self.gathered:
                    return
                work, self.gathered, self.gathered_bytes = self.gathered, {}, 0
                self.journal, self.spare = self.spare, self.journal
                self.flushing = True
            self.flush(work)
            os.ftruncate(self.spare, 0)
            with self.room:
                self.flushing = False
                self.room.notify_all()

    def flush(self, work: dict[int, list[bytes]]) -> None:
        """One extent per ledger. Few ledgers: keep the files open; many: open, write, sync, close each."""
        starts = [0] * len(self.next_entry)  # entry ids inside do not matter to the measurement
        for topic, entries in work.items():
            parts, _, _ = blocks.build({topic: entries}, starts)
            fd = self.open(topic)
            self.disk.writev(fd, parts[1:])
            self.disk.sync(fd)
            if len(self.files) > OPEN_FILES:
                os.close(self.files.pop(topic))

    def finish(self) -> None:
        with self.room:
            self.closing = True
            self.room.notify_all()
        self.background.join()

    def forget_cache(self) -> None:
        for name in os.listdir(self.folder):
            drop_cache(os.path.join(self.folder, name))

    def read(self, topic: int, prefetch: bool = False) -> Iterator[bytes]:
        """WINDOW bytes at a time; an extent cut at the end is read again with the next window."""
        fd = os.open(self.path(topic), os.O_RDONLY)
        size, at = os.fstat(fd).st_size, 0
        while at < size:
            head = os.pread(fd, WINDOW, at)
            used = 0
            while used + blocks.EXTENT.size <= len(head):
                length = blocks.size_at(head, used)
                if used + length > len(head):
                    break
                yield from blocks.payloads(head[used : used + length])
                used += length
            if not used:  # an extent larger than the window: its lengths tell how to stream it
                yield from self.stream(fd, at, head)
                used = blocks.size_at(head, 0)
            at += used
        os.close(fd)

    def stream(self, fd: int, at: int, head: bytes) -> Iterator[bytes]:
        _, _, count, _ = blocks.EXTENT.unpack_from(head)
        start = blocks.EXTENT.size + 4 * count
        lengths = memoryview(os.pread(fd, 4 * count, at + blocks.EXTENT.size)).cast("I")
        at += start
        window, low = b"", 0
        for length in lengths:
            if low + length > len(window):
                at += low
                window, low = os.pread(fd, max(WINDOW, length), at), 0
            yield window[low : low + length]
            low += length

    def close(self) -> None:
        for fd in (*self.files.values(), self.journal, self.spare):
            os.close(fd)
