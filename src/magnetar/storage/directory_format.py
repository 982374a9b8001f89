"""Whether a directory is of a format that this version knows: asked before anything in it is changed or copied.

A start mends the metadata before it reads the log, and what comes after the head of a newer checkpoint could pass for
damage; so the question comes first, and every program that opens a directory asks it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import checkpoint_names, is_known_name
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.log import records
from magnetar.storage.log.checkpoint_head import FORMAT, START_BYTES, format_in, head_of
from magnetar.storage.metadata_log.metadata_copy import directory_secrets, own_secrets
from magnetar.storage.metadata_log.metadata_scan import COPIES, NewerFormatError, instance_of

_HEAD_BYTES: Final = 1 << 16
"""More than the first line of the metadata has."""


def require_files(files: FileSystem) -> None:
    """Raises PersistenceError if something else stands where a file of the broker belongs. Nothing is changed.

    It would pass for a file that is missing, and what it stands for would be written anew or done without.
    """
    for name, words in files.misplaced().items():
        if is_known_name(name):
            raise PersistenceError(words)


def require_store(files: FileSystem, place: str) -> None:
    """Raises PersistenceError if no file of a broker is there: the directory is another program's, or its disk is not
    mounted. Nothing is changed.

    A check finds no damage where there are no files, and would call such a directory whole.
    """
    if not any(is_known_name(name) and not name.startswith("reserve") for name in files.names()):
        raise PersistenceError(
            f"{place} holds nothing of a broker, neither metadata nor segments: name the directory of its --data, and "
            "see that its disk is mounted"
        )


def refuse_newer(files: FileSystem) -> None:
    """Raises PersistenceError if a newer version of magnetar wrote the directory, or if something else stands where a
    file belongs. Nothing is changed.

    What cannot be read says nothing: damage is named by those who read all of it. So is what another directory's broker
    wrote.
    """
    require_files(files)
    names = files.names()
    _refuse_newer_checkpoint(files, checkpoint_names(names)[::-1])
    for name in COPIES:
        if name in names:
            try:
                instance_of(_content(files, name, _HEAD_BYTES))
            except NewerFormatError as error:
                raise PersistenceError(f"the metadata of this directory is of {error}; nothing was changed") from error
            except OSError:
                continue


def _refuse_newer_checkpoint(files: FileSystem, newest_first: list[str]) -> None:
    """Look at the heads; only when one of them names a newer format is a checkpoint read whole."""
    for at, name in enumerate(newest_first):
        try:
            found = format_in(_content(files, name, START_BYTES))
        except OSError:
            continue
        if found is not None and found <= FORMAT:
            continue
        owner = owner_of(files)
        for one in newest_first[: at + 1]:
            try:
                head_of(_content(files, one), owner)
                return  # it is whole, and what a start uses
            except (records.RecordError, OSError):
                continue  # the one before it is used then


def owner_of(files: FileSystem) -> int | None:
    """The directory's secret, if its files do not contradict each other."""
    names, said = files.names(), set()
    for name in COPIES:
        if name in names:
            with suppress(OSError, NewerFormatError):
                said.add(instance_of(_content(files, name, _HEAD_BYTES)))
    own = own_secrets(directory_secrets(files), {number for number in said if number is not None})
    return own[0] if len(own) == 1 else None


def _content(files: FileSystem, name: str, most: int | None = None) -> bytes:
    file = files.open(name)
    try:
        size = file.size()
        return file.read(0, size if most is None else min(size, most))
    finally:
        file.close()
