"""A file that a user names may be a named pipe: opening it would wait for a writer, and hear no signal meanwhile."""

from __future__ import annotations

import os
from typing import BinaryIO


def opened_without_waiting(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading. A pipe into which nobody writes is empty; one that has a writer is read as always.

    Raises OSError.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(handle, True)
    return os.fdopen(handle, "rb")
