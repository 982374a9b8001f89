"""A backup made a data directory's files again: every checksum first, then the copy, which is checked once more."""

from __future__ import annotations

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.backup.file_copy import FileCopy, copy_buffer
from magnetar.storage.backup.manifest import BackedUpFile, BackupManifest, read_manifest


def checked_manifest(source: FileSystem) -> BackupManifest:
    """Return the manifest of a backup all of whose files are as they were written.

    Raises PersistenceError, which names everything that is not; OSError.
    """
    manifest = read_manifest(source)
    damaged = [text for one in manifest.files if (text := _wrong(source, None, one))]
    if damaged:
        more = f" and {len(damaged) - 1} more files" if len(damaged) > 1 else ""
        raise PersistenceError(f"the backup is damaged: {damaged[0]}{more}; nothing was restored, use another backup")
    return manifest


def restore_files(source: FileSystem, manifest: BackupManifest, target: FileSystem) -> None:
    """Write the files of a backup, durably. Raises PersistenceError if one has changed meanwhile, OSError."""
    for one in manifest.files:
        wrong = _wrong(source, target, one)
        if wrong:
            raise PersistenceError(f"the backup is damaged: {wrong}; nothing was restored, use another backup")
    target.sync()


def _wrong(source: FileSystem, target: FileSystem | None, one: BackedUpFile) -> str:
    """Copy a file, if there is a target, and say what is wrong with it; nothing if all is well."""
    try:
        file = source.open(one.name)
    except FileNotFoundError:
        return f"{one.name} is missing"
    made = None
    try:
        if target is not None:
            made = target.open(one.name, create=True)
            made.truncate(0)  # an interrupted restore's, if the disk did not let us remove it
        size = file.size()
        if size != one.length:
            return f"{one.name} has {size} bytes instead of {one.length}"
        copy = FileCopy(one.name, file, made, one.length, copy_buffer())
        copy.run()
        return "" if copy.checksum == one.checksum else f"{one.name}: its checksum does not fit"
    finally:
        file.close()
        if made is not None:
            made.close()
