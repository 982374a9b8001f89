"""Lines that go into a file which is begun anew when it is large, written by a thread of their own.

:meth:`RotatedLines.put` never waits: lines go into a bounded queue, and those that find it full are lost and counted.
A disk that fails is reported once and tried again every second, while the queue holds what it can; when it takes lines
again, :data:`Lost` makes one that says how many are missing. Files are called ``name``, ``name.1`` (the one
before) and so on, and only their owner may read them. Nothing is synced: a power failure may take the last seconds.

A pipe, a terminal or ``/dev/stdout`` is never rotated. A file that cannot be rotated, because its directory belongs to
another user, goes on growing: the records matter more.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

QUEUE_BYTES: Final = 8 << 20
"""Bytes of lines that may wait."""
AGAIN_S: Final = 1.0
"""Seconds until a disk that refused is asked again."""
_END_S: Final = 5.0
"""Seconds that the end waits for a disk that hangs."""

_DEVICES: Final = (("/", "dev"), ("/", "proc"))

Lost = Callable[[int], bytes]
"""The line that says how many lines are missing."""


class RotatedLines:
    """One such file; ``put`` from any thread."""

    def __init__(self, path: Path, size_max: int, files: int, lost: Lost) -> None:
        """``size_max``: bytes of one file, about; ``files``: how many are kept, the current one included."""
        self._path = path
        self._size_max = size_max
        self._files = files
        self._lost_line = lost
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._wake = threading.Condition()
        self._ending = False
        self._thread: threading.Thread | None = None
        self._file = -1
        self._size = 0
        self._within_line = False
        """Whether the disk took a part of a line only: its rest belongs to the same file."""
        self._fixed = path.parts[:2] in _DEVICES
        self._stuck = False
        """Whether the file could not be put aside, which was said."""
        self.lost = 0
        """Lines that found the queue full, since the start."""
        self._untold = 0
        self.failing = False
        """Whether the disk refused the last write."""
        self.before_end: Callable[[], None] = _nothing
        """Called when the end begins, for lines that others still hold."""

    def start(self) -> None:
        """Open the file and begin. Raises OSError."""
        self._open()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Have a line written, which ends with a line feed, without waiting for it."""
        with self._wake:
            if self._bytes + len(line) > QUEUE_BYTES:
                self.lost += 1
                self._untold += 1
                return
            self._lines.append(line)
            self._bytes += len(line)
            self._wake.notify()

    def close(self) -> None:
        """Write what waits, if the disk takes it, and end."""
        self.before_end()
        with self._wake:
            self._ending = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(_END_S)
            self._thread = None

    # the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        left = b""
        while True:
            with self._wake:
                while not (self._lines or self._untold or left or self._ending):
                    self._wake.wait()
                if left and not self._ending:
                    self._wake.wait_for(lambda: self._ending, AGAIN_S)  # the disk has refused
                ending = self._ending
                if not left:
                    left = self._taken()
            left = self._written(left)
            if ending and (left or not self._lines):
                break
        with suppress(OSError):
            self._let_go()

    def _taken(self) -> bytes:
        """What waits, as one piece; the lock is held."""
        taken = b"".join(self._lines)
        self._lines.clear()
        self._bytes = 0
        if self._untold:
            taken += self._lost_line(self._untold)
            self._untold = 0
        return taken

    def _written(self, data: bytes) -> bytes:
        """Write it; returns what the disk has not taken."""
        try:
            self._follow()
            while data:
                if self._file < 0:
                    self._open()
                elif self._size >= self._size_max and not self._within_line:
                    self._put_aside()
                count = os.write(self._file, data)
                self._size += count
                self._within_line = not data[:count].endswith(b"\n")
                data = data[count:]
        except OSError as error:
            if not self.failing:
                log.error("%s: %s; what is to be recorded waits, as far as there is room", self._path, error)
            self.failing = True
            return data
        if self.failing:
            self.failing = False
            log.info("%s takes records again", self._path)
        return b""

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        found = os.fstat(self._file)
        self._size = found.st_size
        self._fixed = self._fixed or not stat.S_ISREG(found.st_mode)

    def _let_go(self) -> None:
        # even if closing fails, the descriptor's number may belong to another file next
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _follow(self) -> None:
        """Begin the file anew if it was moved or removed, as programs that rotate logs do, or see how small it was
        made."""
        if self._file < 0:
            return
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            there = None
        if there is None or not os.path.samestat(there, os.fstat(self._file)):
            self._let_go()
        elif not self._fixed:
            self._size = min(self._size, there.st_size)

    def _put_aside(self) -> None:
        if self._fixed:
            self._size = 0
            return
        try:
            self._rotate()
        except OSError as error:
            if not self._stuck:
                log.error("%s cannot be put aside and goes on growing: %s", self._path, error)
            self._stuck = True
            if self._file < 0:
                self._open()
            self._size = 0  # asked again after as many bytes
        else:
            self._stuck = False

    def _rotate(self) -> None:
        """Put the file aside, then move the older ones: where it cannot be renamed, none of them is lost for it."""
        aside = self._numbered(0)
        if aside.exists():
            self._move_up()  # the process ended in between
        os.replace(self._path, aside)
        self._move_up()
        self._let_go()
        self._open()

    def _move_up(self) -> None:
        """Give the files from 0 to the first number that is free the next one; the oldest goes if none is free."""
        last = self._files - 1
        free = next((number for number in range(1, last) if not self._numbered(number).exists()), last)
        for number in range(free, 0, -1):
            os.replace(self._numbered(number - 1), self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _nothing() -> None: ...
