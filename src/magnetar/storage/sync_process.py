"""A second, tiny process whose only work is fdatasync on the broker's journal.

The broker appends to the segment itself (into the page cache, some 50 us for a common group) and sends one byte; the
process, which was handed the same open file, syncs it and sends the error number back; the loop hears that as it hears
any socket. No thread has to win the interpreter's lock, so a commit takes what the disk takes, however busy the loop
is. The process ends with the socket: it cannot outlive the broker.

Messages on the socket pair (SOCK_SEQPACKET): ``F`` with a file descriptor: sync this file from now on; ``S``: sync;
answer to ``S``: the error number as four bytes, 0 if the data is durable.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from magnetar.storage.committer import Committed, Committer
from magnetar.storage.files import Chunk, File, OsFile

log = logging.getLogger(__name__)

# _socket, not socket: it needs no enums and no selectors, a seventh of the process's memory
_PROGRAM: Final = """
import os, _socket, sys
wire = _socket.socket(fileno=int(sys.argv[1]))
held = -1
while True:
    try:
        word, files, _, _ = wire.recvmsg(1, _socket.CMSG_SPACE(4))
    except OSError:  # the broker was killed with an answer unread
        break
    if not word:
        break
    if word == b"F":
        if held >= 0:
            os.close(held)
        held = int.from_bytes(files[0][2][:4], sys.byteorder)
        continue
    try:
        os.fdatasync(held)
        error = 0
    except OSError as problem:
        error = problem.errno or 5
    try:
        wire.send(error.to_bytes(4, "little"))
    except OSError:
        break
"""


class SyncProcess:
    """Commits through the process; through ``spare`` if it could not be started or has died."""

    def __init__(self, spare: Committer) -> None:
        self._spare = spare
        self._loop = asyncio.get_running_loop()
        self._done: Committed | None = None
        self._file: File | None = None
        self._process: subprocess.Popen[bytes] | None = None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._wire = ours
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _PROGRAM, str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                log.warning("the sync process could not be started (%s); a thread does its work", error)
                ours.close()
                return
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self._answered)

    @property
    def alive(self) -> bool:
        """Whether the process does the work."""
        return self._process is not None

    def commit(self, file: File, chunks: Sequence[Chunk], sync: bool, done: Committed) -> None:
        """See :class:`Committer`."""
        if not sync or self._process is None or not isinstance(file, OsFile):
            self._spare.commit(file, chunks, sync, done)
            return
        try:
            file.append(chunks)
            if file is not self._file:
                socket.send_fds(self._wire, [b"F"], [file.fileno()])
                self._file = file
            self._wire.send(b"S")
        except OSError as error:
            self._loop.call_soon(done, error)
            return
        self._done = done

    def _answered(self) -> None:
        try:
            answer = self._wire.recv(4)
        except BlockingIOError:
            return
        except OSError:
            answer = b""
        done, self._done = self._done, None
        if not answer:
            self._lost(done)
            return
        number = int.from_bytes(answer, "little")
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
        if self._process is not None:
            self._process.wait(5)
            self._process = None
        self._file = None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._stop()
        self._spare.close()
