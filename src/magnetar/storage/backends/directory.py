"""Directories of the operating system: made so that a power cut cannot take their names, closed to others, locked.

A file is only as durable as every name on the way to it. ``fsync`` of a directory makes the names *in* it durable, so a
new directory needs the one above it synced too, and that one's, up to the first that a crash cannot take.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from magnetar.model.errors import PersistenceError

log = logging.getLogger(__name__)

PRIVATE_DIRECTORY: Final = 0o700
PRIVATE_FILE: Final = 0o600
_OTHERS: Final = 0o077
_NO_LOCKS_HERE: Final = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP)
"""What file systems say that lock files only (NFS)."""
_NO_FILES: Final = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"))
"""What may stand where a file belongs, besides devices and links, in words."""


def make_directory(path: str, mode: int = PRIVATE_DIRECTORY) -> None:
    """Create what is missing of ``path`` and make all names on the way to it durable. Raises OSError.

    A directory that exists is synced too: the process that made it may have been killed before the sync.
    """
    for missing in reversed([above for above in _upwards(path) if not os.path.isdir(above)]):
        with suppress(FileExistsError):
            os.mkdir(missing, mode)
    device = os.stat(path).st_dev
    for above in _upwards(path):
        try:
            if os.stat(above).st_dev != device:
                break  # another file system: it was there before
            sync_directory(above)
        except PermissionError:
            break  # another user's, and so it was there before


def is_directory(path: str) -> bool:
    """Whether there is a directory. Raises PersistenceError if permissions forbid a look: it is not missing then."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise PersistenceError(
            f"{path} cannot be looked at: {error.strerror}; run this as the user that the broker runs as"
        ) from None


def why_no_file(path: str) -> str | None:
    """What stands there instead of a file of the broker, and what to do; None if it is a file, or nothing at all."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if not os.path.islink(path):
            return None  # nothing, or not readable: opening it raises why
        why = "which is not there" if error.errno == errno.ENOENT else f"which leads nowhere ({error.strerror})"
        what = f"a symbolic link to {os.readlink(path)}, {why}"
    else:
        if stat.S_ISREG(mode):
            return None
        what = next((words for test, words in _NO_FILES if test(mode)), "a device") + " and no file"
    return (
        f"{path} is {what}: put the file back, or mount the disk that holds it; if it never was the broker's, move it "
        "away. Nothing was changed"
    )


def lies_below(path: str, above: str) -> bool:
    """Whether ``path``, which need not exist, is ``above`` or lies in it, wherever links lead."""
    path, above = os.path.realpath(path), os.path.realpath(above)
    return os.path.commonpath([path, above]) == above


def sync_directory(path: str) -> None:
    """Make creations, renames and removals in a directory durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def lock_directory(path: str) -> int:
    """Lock the directory itself, which cannot be deleted as "stale": a descriptor that holds the lock until it closes.

    Raises BlockingIOError if another process has it.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            os.close(fd)
            raise
    return fd


def close_to_others(directory: str, names: Iterable[str], *, itself: bool = True) -> None:
    """Take everybody else's permissions from files of ours (and their directory); says so once."""
    changed = []
    for path, mode in [(directory, PRIVATE_DIRECTORY)] * itself + [
        (os.path.join(directory, name), PRIVATE_FILE) for name in names
    ]:
        with suppress(OSError):
            found = os.stat(path)
            if path != directory and not stat.S_ISREG(found.st_mode):
                continue  # another program's
            if stat.S_IMODE(found.st_mode) & _OTHERS and found.st_uid == os.geteuid():
                os.chmod(path, mode)
                changed.append(path)
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        log.warning("%s%s could be read by other users; now only by the broker's own (0700 and 0600)", changed[0], more)


def _upwards(path: str) -> Iterator[str]:
    path = os.path.abspath(path)
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above
