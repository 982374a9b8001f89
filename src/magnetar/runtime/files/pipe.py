"""A file that a user names may be a named pipe: opening it would wait for a writer, and hear no signal meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO


def opened_without_waiting(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading. A pipe into which nobody writes is empty; one that has a writer is read as always.

    Raises OSError.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except OSError as error:  # of a directory; it names the number
        os.close(handle)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def read_without_waiting(path: str | os.PathLike[str], bytes_max: int = -1) -> bytes:
    """Return what a file holds, ``bytes_max`` of it at most; of a pipe all that its writer writes until it ends.

    Raises OSError, also for a pipe into which nobody writes: that it is empty would lead nobody to the cause.
    """
    with opened_without_waiting(path) as file:
        found = file.read(bytes_max)
        if not found and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.ENODATA, "it is a pipe into which nobody writes; name a file", os.fspath(path))
    return found


def why_unread(error: Exception) -> str:
    """Why a file was not read, for an error that names the file itself."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
