"""A second, tiny process whose only work is to write and sync the broker's journal.

The loop copies a group into memory that both processes share and sends one short message; the process, which was
handed the segment's open file, writes the group at its place, calls fdatasync and sends the error number back; the loop
hears that as it hears any socket. No thread has to win the interpreter's lock, so a commit takes what the disk takes,
however busy the loop is. A group that fills whole pages goes to the disk past the page cache (O_DIRECT), which spares
the machine a copy and a page for every four kilobytes; reading does the same (:mod:`magnetar.storage.backends.files`).
The process ends with the socket: at most it finishes the group it was given when the broker was killed, of which no
client was notified.

Messages on the socket pair (SOCK_SEQPACKET), integers little-endian: ``F`` with two file descriptors: this file from
now on, as it is and past the page cache; ``W`` or ``D``, u64 offset, u64 length: write so much of the shared memory
there, through the page cache or past it, then sync (length 0: only sync); the answer is the error number as four bytes,
0 if the data is durable. After two more numbers, u64 offset and u64 length of whole pages, so many zeros are written
and synced once the answer is out, unless it was an error; whether that succeeds is not reported.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import mmap
import os
import platform
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from magnetar.storage.backends.committer import Committer
from magnetar.storage.backends.files import File, OsFile
from magnetar.storage.backends.journal_backend import Chunk, Committed
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros

log = logging.getLogger(__name__)

# _socket, not socket: it needs no enums and no selectors, a seventh of the process's memory
_PROGRAM: Final = """
import os, _socket, mmap, sys
wire = _socket.socket(fileno=int(sys.argv[1]))
shared = memoryview(mmap.mmap(int(sys.argv[2]), 0))
held = []
zeros = memoryview(bytes(65536))
while True:
    try:
        message, files, _, _ = wire.recvmsg(33, _socket.CMSG_SPACE(8))
    except OSError:  # the broker was killed with an answer unread
        break
    if not message:
        break
    if message == b"F":
        for old in held:
            os.close(old)
        held = [int.from_bytes(files[0][2][i : i + 4], sys.byteorder) for i in (0, 4)]
        continue
    file = held[message[:1] == b"D"]
    offset, length = int.from_bytes(message[1:9], "little"), int.from_bytes(message[9:17], "little")
    try:
        done = 0
        while done < length:
            try:
                done += os.pwrite(file, shared[done:length], offset + done)
            except OSError as problem:
                if problem.errno != 22 or file == held[0]:
                    raise
                file = held[0]  # this file system wants the page cache
        os.fdatasync(file)
        error = 0
    except OSError as problem:
        error = problem.errno or 5
    try:
        wire.send(error.to_bytes(4, "little"))
    except OSError:
        break
    if len(message) > 17 and not error:
        offset, left = int.from_bytes(message[17:25], "little"), int.from_bytes(message[25:33], "little")
        try:
            while left > 0:
                written = os.pwrite(held[0], zeros[:left], offset)
                offset, left = offset + written, left - written
            os.fdatasync(held[0])  # now, while perhaps no group waits, rather than with the next one
        except OSError:
            pass  # it was to spare time
"""

_SHARED_BYTES: Final = 8 << 20
"""A larger group goes through the shared memory in slices of this size, whole pages, each synced."""
_KEPT_BYTES: Final = 1 << 20
"""So much of it stays when memory is given back, whole pages."""
_JOIN_BELOW: Final = 4096
"""Chunks smaller than this on average are joined before they are copied into the shared memory."""


_END_SECONDS: Final = 5.0
"""So long it is waited for the process to end, and as long again after it was killed."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
"""The number of Linux' system call, by machine."""
_TURN_NANOSECONDS: Final = 100_000


def shorten_turns(pid: int) -> None:
    """Have the kernel run a process, once it wakes up, before one that computes: its turns are short (Linux 6.12).

    Elsewhere nothing happens. The process gets no more of the processor than before, but it gets it at once.
    """
    call = _SCHED_SETATTR.get(platform.machine())
    if call is None or sys.platform != "linux":
        return
    try:
        if os.sched_getscheduler(pid) != os.SCHED_OTHER:
            return  # an operator has decided otherwise
        nice = os.getpriority(os.PRIO_PROCESS, pid)
    except OSError:
        return
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _TURN_NANOSECONDS, 0, 0)
    ctypes.CDLL(None).syscall(call, pid, attributes, 0)


class SyncProcess:
    """Commits through the process; through ``spare`` if it could not be started or has died."""

    def __init__(self, spare: Committer) -> None:
        self._spare = spare
        self._loop = asyncio.get_running_loop()
        self._done: Committed | None = None
        self._file: File | None = None
        self._left: deque[memoryview] = deque()
        """What comes after the slice that is being written, of a group that is larger than the shared memory."""
        self._order = b"W"
        self._offset = 0
        self._zeros = NO_ZEROS
        self._process: subprocess.Popen[bytes] | None = None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._wire = ours
        memory = os.memfd_create("magnetar-group")
        os.ftruncate(memory, _SHARED_BYTES)
        self._shared = mmap.mmap(memory, _SHARED_BYTES)
        self._touched = 0
        """The largest group since its memory was given back."""
        with theirs, os.fdopen(memory):
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _PROGRAM, str(theirs.fileno()), str(memory)],
                    pass_fds=(theirs.fileno(), memory),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                log.warning("the sync process could not be started (%s); a thread does its work", error)
                ours.close()
                return
        shorten_turns(self._process.pid)
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self._answered)

    @property
    def alive(self) -> bool:
        """Whether the process does the work."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """Its process id, while it is alive."""
        return None if self._process is None else self._process.pid

    def commit(
        self, file: File, at: int, chunks: Sequence[Chunk], sync: bool, done: Committed, lead: int | None = None,
        zeros: Zeros = NO_ZEROS,
    ) -> None:  # fmt: skip
        """See :class:`Committer`."""
        # the process may still write zeros to a file it was given: no other writer touches that while it lives
        if self._process is None or not isinstance(file, OsFile) or (not sync and file is not self._file):
            self._spare.commit(file, at, chunks, sync, done, lead, zeros)
            return
        try:
            if file is not self._file:
                socket.send_fds(self._wire, [b"F"], [file.fileno(), file.direct()])
                self._file = file
            self._order, self._offset, self._zeros = b"W", at, zeros
            if lead is not None:
                # the zeros before the first page are there already: nothing was ever written after the end
                self._order, self._offset = b"D", self._offset + lead
                chunks = [memoryview(chunks[0])[lead:], *chunks[1:]]
            size = sum(map(len, chunks))
            if size <= _SHARED_BYTES:
                if size < _JOIN_BELOW * len(chunks):
                    self._shared[:size] = b"".join(chunks)
                    self._write(size)
                else:
                    self._write(self._share(chunks))
            else:
                self._left.extend(map(memoryview, chunks))
                self._write(self._share(self._slice()))
        except OSError as error:
            self._left.clear()
            self._loop.call_soon(done, error)
            return
        self._done = done

    def _share(self, chunks: Iterable[Chunk]) -> int:
        shared, at = self._shared, 0
        for chunk in chunks:
            end = at + len(chunk)
            shared[at:end] = chunk
            at = end
        return at

    def _slice(self) -> Iterator[memoryview]:
        """Yield as much of what is left as the shared memory holds."""
        room, left = _SHARED_BYTES, self._left
        while left and room:
            chunk = left.popleft()
            if len(chunk) > room:
                left.appendleft(chunk[room:])
                chunk = chunk[:room]
            room -= len(chunk)
            yield chunk

    def _write(self, size: int) -> None:
        message = self._order + self._offset.to_bytes(8, "little") + size.to_bytes(8, "little")
        zeros = self._zeros
        if zeros.size and not self._left:
            message += zeros.at.to_bytes(8, "little") + zeros.size.to_bytes(8, "little")
        self._wire.send(message)
        self._offset += size
        if size > self._touched:
            self._touched = size

    def _answered(self) -> None:
        try:
            answer = self._wire.recv(4)
        except BlockingIOError:
            return
        except OSError:
            answer = b""
        number = int.from_bytes(answer, "little")
        if answer and not number and self._left:
            try:
                self._write(self._share(self._slice()))
                return
            except OSError:
                answer = b""
        self._left.clear()
        done, self._done = self._done, None
        if not answer:
            self._lost(done)
            return
        if done is not None:
            done(None if not number else OSError(number, os.strerror(number)))

    def _lost(self, done: Committed | None) -> None:
        """The process died: what it was syncing is in doubt, so it fails; a thread goes on."""
        log.error("the sync process ended unexpectedly; a thread does its work from now on")
        self._stop()
        if done is not None:
            done(OSError("the sync process died during a sync"))

    def _stop(self) -> None:
        self._loop.remove_reader(self._wire.fileno())
        self._wire.close()
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                log.warning("the sync process %d does not end: the disk holds it; it is killed", process.pid)
                process.kill()  # what it writes still are zeros ahead at most
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_END_SECONDS)
        self._file = None
        self._shared.close()

    def give_back_memory(self) -> None:
        """See :class:`Committer`: the pages that a large group left in the shared memory, unless one is under way."""
        if self._process is None or self._done is not None or self._touched <= _KEPT_BYTES:
            return
        with suppress(OSError):  # a kernel without it keeps them
            self._shared.madvise(mmap.MADV_REMOVE, _KEPT_BYTES, _SHARED_BYTES - _KEPT_BYTES)
        self._touched = 0

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._stop()
        self._spare.close()
