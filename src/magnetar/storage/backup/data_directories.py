"""Backup and restore of the data directory of a broker that is not running; whatever fails leaves things as they were.

A restored directory appears with one rename: until then its files lie in another one beside the place of
``ledgers``. What an interrupted restore left there is removed by the next one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from magnetar.metadata.sqlite import only_refuses, refuse_older
from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.directory import (
    PRIVATE_DIRECTORY,
    is_directory,
    lies_below,
    lock_directory,
    make_directory,
    sync_directory,
)
from magnetar.storage.backends.file_names import checkpoint_names, segment_numbers
from magnetar.storage.backends.files import FileSystem, OsFileSystem
from magnetar.storage.backends.journal_backend import index_name, segment_name
from magnetar.storage.backends.newest_segment import NAME as NEWEST
from magnetar.storage.backup.backup_writer import BackupPart, BackupWriter, is_half_written, remove_written
from magnetar.storage.backup.manifest import MANIFEST, BackupManifest
from magnetar.storage.backup.restored_files import checked_manifest, restore_files
from magnetar.storage.directory_format import refuse_newer, require_store
from magnetar.storage.metadata_log.metadata_scan import COPIES

_LEDGERS: Final = "ledgers"
RESTORING: Final = "ledgers.restoring"
"""What is not whole yet; where it stays, a restore was interrupted, and no broker begins."""
_FACTS: Final = "metadata.sqlite"
"""The file of versions before the metadata log, or the one that they refuse."""


def back_up_directory(data: str, to: str) -> BackupManifest:
    """Copy a data directory that no broker uses into ``to``, which is empty or missing.

    Raises PersistenceError, OSError.
    """
    ledgers = os.path.join(data, _LEDGERS)
    if not is_directory(ledgers):
        raise PersistenceError(f"{data} is no data directory: there is no directory {ledgers}")
    if lies_below(to, data):
        raise PersistenceError(
            f"{to} lies in {data}, which it is to protect: it would be lost together with it. Choose a place outside, "
            "best on another disk"
        )
    with _taken(data, "stop that one; or, if it is a broker, have it back itself up: magnetar backup NAME"):
        source = OsFileSystem(ledgers, only_read=True)
        names = source.names()
        facts = os.path.join(data, _FACTS)
        if os.path.exists(facts) and not only_refuses(facts) and not any(name in names for name in COPIES):
            raise PersistenceError(
                f"the metadata of {data} are still an older version's ({_FACTS}): start a broker on it once, it takes "
                "them over"
            )
        require_store(source, ledgers)
        with _taken(ledgers):
            refuse_newer(source)
            return _back_up(source, names, to)


def _back_up(source: FileSystem, names: list[str], to: str) -> BackupManifest:
    parts = [BackupPart(name) for name in (*COPIES, *checkpoint_names(names)) if name in names]
    for number in segment_numbers(names):
        parts += [BackupPart(name) for name in (segment_name(number), index_name(number)) if name in names]
    parts += [BackupPart(NEWEST)] * (NEWEST in names)
    new = not os.path.lexists(to)
    if not new and (not os.path.isdir(to) or (os.listdir(to) and not is_half_written(OsFileSystem(to)))):
        raise PersistenceError(f"{to} is not empty; choose another place, nothing is overwritten")
    make_directory(to)
    with _taken(to, "two backups cannot be written to one place"):
        if not new:
            remove_written(OsFileSystem(to))  # half a backup, if anything
        if not new:
            os.chmod(to, PRIVATE_DIRECTORY)
        target = OsFileSystem(to)
        needed, (free, _) = sum(_size(source, part.name) for part in parts), target.space()
        try:
            if free < needed:
                raise PersistenceError(f"the backup takes {needed} bytes and {free} are free at {to}; make room")
            taken_ms = SystemClock().now_ms()
            writer = BackupWriter(source, target, parts, taken_ms)
            try:
                writer.run()
            except OSError as error:
                raise PersistenceError(
                    f"{writer.name} could not be copied: {error}; nothing was left at {to}"
                ) from error
        except BaseException:
            remove_written(target)
            _remove_if(new, to)
            raise
    return BackupManifest(taken_ms, writer.files)


def restore_directory(source: str, data: str) -> BackupManifest:
    """Make ``data``, which is empty or missing, the data directory that a backup shows.

    Raises PersistenceError, OSError; then ``data`` is as it was.
    """
    if not is_directory(source):
        raise PersistenceError(f"there is no directory {source}; a backup is named by its path, as /backups/monday")
    if lies_below(data, source):
        raise PersistenceError(f"{data} lies in the backup {source}; choose a place outside")
    backup = OsFileSystem(source, only_read=True)
    _refuse_what_is_no_backup(source)
    try:
        manifest = checked_manifest(backup)
    except PersistenceError as error:
        raise PersistenceError(f"{source}: {error}") from None
    refuse_newer(backup)
    new = not os.path.lexists(data)
    if not new and not os.path.isdir(data):
        raise PersistenceError(f"{data} is no directory")
    make_directory(data)
    with _taken(data):
        try:
            found = set(os.listdir(data)) - {RESTORING, "lost+found"}
            facts = os.path.join(data, _FACTS)
            if found == {_FACTS} and only_refuses(facts):
                found.clear()  # a restore was interrupted just before its end
            if found:
                raise PersistenceError(
                    f"{data} is not empty: it holds {', '.join(sorted(found)[:5])}; choose another directory, "
                    "nothing is overwritten"
                )
            _restore(backup, manifest, data)
        except BaseException:
            _remove_if(new, data)
            raise
    return manifest


def _restore(backup: FileSystem, manifest: BackupManifest, data: str) -> None:
    making = os.path.join(data, RESTORING)
    if os.path.isdir(making):
        remove_written(OsFileSystem(making))
    target = OsFileSystem(making)
    facts = os.path.join(data, _FACTS)
    try:
        free, _ = target.space()
        if free < manifest.bytes:
            raise PersistenceError(f"the backup holds {manifest.bytes} bytes and {free} are free at {data}; make room")
        try:
            restore_files(backup, manifest, target)
            refuse_older(facts)
            os.rename(making, os.path.join(data, _LEDGERS))
        except OSError as error:
            raise PersistenceError(
                f"the backup could not be restored: {error.strerror or error}; {data} is as it was: mend that and "
                f"restore again, which takes {manifest.bytes} bytes"
            ) from error
    except BaseException:
        if os.path.isdir(making):
            remove_written(target)
            with suppress(OSError):
                os.rmdir(making)
            with suppress(OSError):
                os.remove(facts)
        else:  # interrupted when all stood in its place
            sync_directory(data)
        raise
    sync_directory(data)


def _refuse_what_is_no_backup(source: str) -> None:
    """Raise PersistenceError for a data directory, and for one of backups with their names."""
    found = os.listdir(source)
    if _LEDGERS in found and MANIFEST not in found:
        raise PersistenceError(
            f"{source} is a data directory and no backup: a broker starts on it as it is; "
            f"magnetar backup --data {source} makes a backup of it"
        )
    below = sorted(name for name in found if os.path.exists(os.path.join(source, name, MANIFEST)))
    if below and MANIFEST not in found:
        raise PersistenceError(f"{source} is no backup, but holds some; name one of them: {', '.join(below[:10])}")


@contextmanager
def _taken(path: str, why: str = "stop that one or choose another directory") -> Iterator[None]:
    """Hold the lock of a directory. Raises PersistenceError while another process has it."""
    try:
        lock = lock_directory(path)
    except BlockingIOError:
        raise PersistenceError(f"{path} is in use by another process; {why}") from None
    try:
        yield
    finally:
        os.close(lock)


def _size(source: FileSystem, name: str) -> int:
    file = source.open(name)
    try:
        return file.size()
    finally:
        file.close()


def _remove_if(new: bool, path: str) -> None:
    if new:
        with suppress(OSError):
            os.rmdir(path)
