"""Whether a directory is of a format that this version knows: asked before anything in it is changed or copied.

A start mends the metadata before it reads the log, and what comes after the head of a newer checkpoint could pass for
damage; so the question comes first, and every program that opens a directory asks it.
"""

from __future__ import annotations

from typing import Final

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import checkpoint_names
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.log import checkpoint, records
from magnetar.storage.metadata_log.metadata_scan import COPIES, NewerFormatError, instance_of

_HEAD_BYTES: Final = 1 << 16
"""More than the first line of the metadata has."""


def refuse_newer(files: FileSystem) -> None:
    """Raises PersistenceError if a newer version of magnetar wrote the directory. Nothing is changed.

    What cannot be read says nothing: damage is named by those who read all of it.
    """
    names = files.names()
    for name in reversed(checkpoint_names(names)):
        try:
            checkpoint.head_of(_content(files, name))
            break
        except (records.RecordError, ValueError, OSError):
            continue  # the one before it is used then
    for name in COPIES:
        if name in names:
            try:
                instance_of(_content(files, name, _HEAD_BYTES))
            except NewerFormatError as error:
                raise PersistenceError(f"the metadata of this directory is of {error}; nothing was changed") from error
            except OSError:
                continue


def _content(files: FileSystem, name: str, most: int | None = None) -> bytes:
    file = files.open(name)
    try:
        size = file.size()
        return file.read(0, size if most is None else min(size, most))
    finally:
        file.close()
