"""What ``--data`` names: a directory that holds ``ledgers/``, locked as a whole for one broker.

``ledgers/`` has a lock of its own. This one still holds when somebody moves ``ledgers/`` away while the broker runs and
starts another broker there.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from magnetar.metadata.sqlite import read_records
from magnetar.model.errors import PersistenceError
from magnetar.storage.directory import close_to_others, lock_directory, make_directory, sync_directory
from magnetar.storage.files import FileSystem
from magnetar.storage.metadata_log import MetadataLog
from magnetar.storage.metadata_scan import COPIES

log = logging.getLogger(__name__)

_FACTS: Final = "metadata.sqlite"
"""Of versions before the metadata log, with what SQLite puts beside it."""
_DONE: Final = "migrated-"


class DataDirectory:
    """Holds the lock until :meth:`close`."""

    def __init__(self, path: Path) -> None:
        """Make it, so that its name lasts, and take it. Raises PersistenceError."""
        self._path = path
        self._lock = -1
        try:
            make_directory(str(path))
            self._lock = lock_directory(str(path))
        except BlockingIOError:
            raise PersistenceError(
                f"{path} is in use by another process; stop that one or choose another directory"
            ) from None
        except OSError as error:
            raise PersistenceError(f"{path} cannot be used as data directory: {error}") from error
        names = sorted(entry.name for entry in path.iterdir())
        facts = [name for name in names if name.removeprefix(_DONE).startswith(_FACTS)]
        # what holds other people's things too keeps its permissions: somebody may have said --data .
        close_to_others(str(path), facts, itself=set(names) <= {"ledgers", *facts})

    def metadata(self, files: FileSystem) -> MetadataLog:
        """The small facts, in ``files``; those of an older version's database are taken over once.

        Raises MetadataError, PersistenceError, OSError.
        """
        old = self._path / _FACTS
        if not old.exists() or any(name in files.names() for name in COPIES):
            made = MetadataLog(files)
        else:
            made = MetadataLog(files, imported=read_records(str(old)))
            if not made.in_both:
                raise PersistenceError(
                    f"{old} could not be taken over into the metadata log; start again with more space"
                )
            log.warning("%s was taken over into the metadata log: %d records", old, len(made))
        self._put_away()
        return made

    def _put_away(self) -> None:
        """What was taken over is kept under another name, and never read again."""
        found = sorted(entry.name for entry in self._path.iterdir() if entry.name.startswith(_FACTS))
        for name in found:
            os.replace(self._path / name, self._path / f"{_DONE}{name}")
        if found:
            sync_directory(str(self._path))

    def close(self) -> None:
        """Give it back."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
