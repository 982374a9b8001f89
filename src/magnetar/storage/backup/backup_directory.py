"""The one directory below which a running broker writes backups, by plain names."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final

from magnetar.model.errors import ConflictError, InvalidValueError, PreconditionFailedError
from magnetar.storage.backends.directory import PRIVATE_DIRECTORY, lies_below, lock_directory, sync_directory
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backup.backup_writer import is_half_written, remove_written

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class BackupDirectory:
    """Implements :class:`magnetar.storage.backup.running_backup.BackupPlace` over ``backupDirectory``."""

    def __init__(self, path: str, data: str | None = None) -> None:
        """``data``: the directory that backups protect, so that they must not lie in it."""
        self._path = path
        self._data = data
        self._lock: int | None = None

    def trouble(self) -> str | None:
        """Why no backup can be written, in words; None if all is well, or none is wanted."""
        if not self._path:
            return None
        if not os.path.isdir(self._path):
            return f"backupDirectory {self._path} is no directory; make it, or mount its disk: it is not made by itself"
        if self._data is not None and lies_below(self._path, self._data):
            return (
                f"backupDirectory {self._path} lies in {self._data}, which backups are to protect: they would be lost "
                "together with it. Choose a place outside, best on another disk"
            )
        if not os.access(self._path, os.W_OK | os.X_OK):
            return f"backupDirectory {self._path} cannot be written by the user that the broker runs as; let it"
        return None

    def make(self, name: str) -> OsFileSystem:
        """See :class:`BackupPlace`; refuses what is no plain name, and whatever stands there, links as well."""
        if not self._path:
            raise PreconditionFailedError(
                "backupDirectory is not set: this broker writes no backups. Start it with --set backupDirectory=PATH, "
                "a directory on another disk, or stop it and use magnetar backup --data DIR TO"
            )
        if not _NAME.fullmatch(name):
            raise InvalidValueError(
                f"{name[:120]!r} cannot be the name of a backup: letters, digits, '.', '_' and '-', up to 100, "
                "beginning with a letter or digit"
            )
        trouble = self.trouble()
        if trouble is not None:
            raise PreconditionFailedError(trouble)
        path = os.path.join(self._path, name)
        try:
            os.mkdir(path, PRIVATE_DIRECTORY)
        except FileExistsError:
            if not os.path.islink(path) and self._clear(path):
                return OsFileSystem(path)
            raise ConflictError(f"{path} exists; choose another name, nothing is overwritten") from None
        try:
            sync_directory(self._path)
            self._take(path)
        except OSError:
            with suppress(OSError):
                os.rmdir(path)  # left there, it would keep its name from the next backup
            raise
        return OsFileSystem(path)

    def _clear(self, path: str) -> bool:
        """Empty the directory of a backup that was interrupted; whether it is one, and no process writes it."""
        try:
            self._take(path)
        except OSError:
            return False
        left = OsFileSystem(path)
        if not is_half_written(left):
            return False
        remove_written(left)
        return True

    def _take(self, path: str) -> None:
        """Lock the directory until the next backup: another broker may have the same backupDirectory."""
        lock = lock_directory(path)
        if self._lock is not None:
            os.close(self._lock)
        self._lock = lock

    def remove(self, name: str) -> None:
        """See :class:`BackupPlace`."""
        os.rmdir(os.path.join(self._path, name))
        sync_directory(self._path)
