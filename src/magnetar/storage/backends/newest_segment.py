"""Which segment is the newest: a small file, written when its first block is durable, so that its loss is noticed.

``<number, 16 hex digits> <crc32c of them, 8 hex digits>`` and a line feed. It may name a segment before the newest,
never one that was not there; what cannot be read (it is written in place, so a crash may tear it) says nothing.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from crc32c import crc32c

from magnetar.storage.backends.files import FileSystem
from magnetar.storage.backends.journal_backend import segment_name

log = logging.getLogger(__name__)

NAME: Final = "newest"


def note_newest(files: FileSystem, number: int) -> None:
    """The first block of segment ``number`` is durable. What the disk refuses is left: the file then says less."""
    try:
        file = files.open(NAME, create=True)
        try:
            file.truncate(0)
            file.append([newest_line(number)])
            file.sync()
        finally:
            file.close()
    except OSError as error:
        log.warning("%s could not be noted as the newest: %s", segment_name(number), error)


def noted_newest(files: FileSystem) -> int | None:
    """The segment that was noted last; None if none was, or if the note cannot be read."""
    with suppress(OSError, ValueError):
        file = files.open(NAME)
        try:
            data = file.read(0, 64)
        finally:
            file.close()
        number = int(data[:16], 16)
        if data == newest_line(number):
            return number
    return None


def newest_line(number: int) -> bytes:
    """The file's content when segment ``number`` is the newest."""
    text = b"%016x" % number
    return b"%s %08x\n" % (text, crc32c(text))
