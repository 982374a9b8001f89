"""A segment whose file was removed or replaced while it is open: its content gets a name again.

The open file still has everything that was written; it is gone for good when that file is closed.
"""

from __future__ import annotations

import errno
import logging
from typing import Final

from magnetar.storage.backends.files import File, FileSystem
from magnetar.storage.backends.journal_backend import segment_name

log = logging.getLogger(__name__)

_COPY_BYTES: Final = 4 << 20
_GONE: Final = "the data directory was moved, removed or replaced under the running broker; stop it and put that right"


def require_in_place(files: FileSystem) -> None:
    """Raises FileNotFoundError if the directory is another one than that which was locked."""
    if not files.in_place():
        raise FileNotFoundError(errno.ENOENT, _GONE)


def restore(files: FileSystem, number: int, file: File, length: int) -> File:
    """Copy so much of ``file`` to the segment's name, durably; what stands there is kept. Raises OSError."""
    require_in_place(files)
    name, names = segment_name(number), files.names()
    if name in names:
        stranger = next(s for i in range(len(names) + 1) if (s := f"quarantine-{name}-stranger-{i}") not in names)
        files.rename(name, stranger)
    copy = files.open(name + ".new", create=True)
    try:
        copy.truncate(0)
        for at in range(0, length, _COPY_BYTES):
            copy.append([file.read(at, min(_COPY_BYTES, length - at))])
        if copy.size() != length:
            raise OSError(errno.EIO, f"{name} has no name any more and cannot be read")
        copy.sync()
        files.rename(name + ".new", name)
        files.sync()
    except BaseException:
        copy.close()
        raise
    log.error("%s was removed or replaced under the running broker; all of it was written anew", name)
    return copy
