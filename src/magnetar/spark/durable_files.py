"""Files that are there after a loss of power: synced before anything else relies on them.

A file system may keep a name without what was written under it, and what was written without its name. So code that
says "it is all there" (a list, a marker, a manifest) does so in this order: sync what it speaks of and the directories
that name it, write the saying beside, sync it, rename it, sync the directory. Only local directories need that; object
stores answer when an object is durable. Files of other machines on a shared file system are theirs to sync, and NFS
does so when they are closed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

_NO_SUCH_THING: Final = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)
"""What fsync says of what cannot be synced (fsync(2); file systems differ)."""


def sync(path: Path) -> None:
    """Sync a file's contents, or the names in a directory, where the file system has that."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)  # noqa: TID251  # storage.backends.files is the broker's; this is no part of it
    except OSError as error:
        # Shares and mounted object stores may refuse to sync directories: their names are others' to keep.
        if error.errno not in _NO_SUCH_THING or not stat.S_ISDIR(os.fstat(file).st_mode):
            raise
    finally:
        os.close(file)


def sync_tree(directory: Path) -> None:
    """Sync everything below, with its name."""
    for position, _, names in os.walk(directory, topdown=False):
        for name in names:
            sync(Path(position) / name)
        sync(Path(position))


def make_directory(directory: Path) -> None:
    """Make a directory with all parents; those that are new are durable."""
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync(one.parent)


def replace_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Have ``write`` make a file beside ``path``, which takes its place whole, also after a loss of power."""
    make_directory(path.parent)
    beside = path.with_name(f".{path.name}.new")
    write(beside)
    sync(beside)
    beside.replace(path)
    sync(path.parent)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all, also after a loss of power."""
    replace_whole(path, lambda beside: beside.write_text(text))
