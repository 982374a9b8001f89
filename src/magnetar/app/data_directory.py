"""What ``--data`` names: a directory that holds ``ledgers/``, locked as a whole for one broker.

``ledgers/`` has a lock of its own. This one still holds when ``ledgers/`` is moved away while the broker runs and
starts another broker there.
"""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Final

from magnetar.metadata.sqlite import BESIDE, only_refuses, read_records, refuse_older
from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.directory import (
    close_to_others,
    lock_directory,
    make_directory,
    sync_directory,
    why_no_file,
)
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.backup.data_directories import RESTORING
from magnetar.storage.directory_format import refuse_newer
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.metadata_log.metadata_scan import COPIES

log = logging.getLogger(__name__)

_FACTS: Final = "metadata.sqlite"
"""The file of versions before the metadata log; now one that they refuse. SQLite puts others beside it."""
_DONE: Final = "migrated-"


class DataDirectory:
    """Holds the lock until :meth:`close`."""

    def __init__(self, path: Path) -> None:
        """Make it, so that its name lasts, and take it. Raises PersistenceError."""
        self._path = path
        self._lock = -1
        self._made = [above for above in (path, *path.parents) if not os.path.lexists(above)]
        """What this start makes: the directory and what leads to it, the innermost first."""
        self._forsaken = False
        try:
            self._take()
        except BaseException:
            self.forsake()
            self.close()
            raise

    def _take(self) -> None:
        path = self._path
        try:
            make_directory(str(path))
            self._lock = lock_directory(str(path))
            self._refuse_half_restored()
            self._close_to_others()
        except BlockingIOError:
            self._made = []  # another process was faster
            raise PersistenceError(
                f"{path} is in use by another process; stop that one or choose another directory"
            ) from None
        except OSError as error:
            raise PersistenceError(
                f"{path} cannot be used as data directory: {error.strerror}; name one on a disk that this user may "
                "write to"
            ) from error

    def _refuse_half_restored(self) -> None:
        """A machine that starts again in the midst of a restore would have an empty broker that takes messages."""
        half = self._path / RESTORING
        if half.is_dir() and not (self._path / "ledgers").exists():
            raise PersistenceError(
                f"{half} is a part of a restore that was interrupted: restore again, or remove it, and a new broker "
                "begins"
            )

    def _close_to_others(self) -> None:
        names = sorted(entry.name for entry in self._path.iterdir())
        facts = [name for name in names if name.removeprefix(_DONE).startswith(_FACTS)]
        # a directory that holds other files, too, keeps its permissions: it may be --data .
        close_to_others(str(self._path), facts, itself=set(names) <= {"ledgers", *facts})

    def metadata(self, files: FileSystem) -> MetadataLog:
        """The small facts, in ``files``; those of an older version's database are taken over once.

        Raises MetadataError, PersistenceError, OSError.
        """
        refuse_newer(files)
        old = self._path / _FACTS
        if self.older(files):
            facts = read_records(str(old))
            if not facts and segment_numbers(files.names()):
                raise PersistenceError(
                    f"{old} holds nothing, but messages are there, and it would be unknown which of them to keep: "
                    "restore it, and metadata.sqlite-wal, from a copy"
                )
            made = MetadataLog(files, imported=facts)
            if not made.in_both:
                raise PersistenceError(
                    f"{old} could not be taken over into the metadata log; start again with more space"
                )
            log.warning("%s was taken over into the metadata log: %d records", old, len(made))
        else:
            made = MetadataLog(files)
            if old.exists() and not made.last and not segment_numbers(files.names()):
                log.error(
                    "%s was used before, and ledgers/ holds nothing now: a new broker begins. If its disk is not "
                    "mounted, stop and mount it",
                    self._path,
                )
            elif older_facts(self._path):
                log.warning("%s is not read: the metadata log has the facts. It is kept as %s…", old, _DONE)
        self._refuse_older()
        return made

    def older(self, files: FileSystem) -> bool:
        """Whether the facts are those of an older version, and not taken over yet. Raises OSError."""
        return older_facts(self._path) and not any(name in files.names() for name in COPIES)

    def _refuse_older(self) -> None:
        """What was taken over is kept under another name; versions that look for it find one that they refuse."""
        path = self._path / _FACTS
        if path.exists() and not older_facts(self._path):
            return
        # all of it: SQLite would take an old write-ahead log for the new file's
        names = [entry.name for entry in self._path.iterdir() if entry.name.startswith(_FACTS)]
        found = sorted(name for name in names if not name.startswith(_FACTS + BESIDE))
        for name in found:
            os.replace(self._path / name, self._free(f"{_DONE}{name}"))
        if found:
            sync_directory(str(self._path))
        try:
            refuse_older(str(path))
            sync_directory(str(self._path))
        except OSError as error:
            log.warning("%s; until it is there do not start a version older than this one here", error)

    def _free(self, name: str) -> Path:
        """A path at which nothing stands: what was kept earlier stays."""
        numbered = (self._path / f"{name}-{i}" for i in count(2))
        return next(path for path in chain([self._path / name], numbered) if not path.exists())

    def forsake(self) -> None:
        """Have :meth:`close` remove the directory if this start made it: the start has failed, and no client was
        served."""
        self._forsaken = True

    def _remove_made(self) -> None:
        if not self._made:
            return
        shutil.rmtree(self._path / "ledgers", ignore_errors=True)
        with suppress(OSError):
            for entry in list(self._path.iterdir()):
                if entry.name.startswith(_FACTS):
                    entry.unlink()
            for made in self._made:  # one in which something else lies stays
                made.rmdir()

    def close(self) -> None:
        """Give it back."""
        if self._forsaken:
            self._remove_made()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def older_facts(path: Path) -> bool:
    """Whether an older version's database stands in a data directory. Raises OSError, PersistenceError."""
    words = why_no_file(str(path / _FACTS))
    if words is not None:
        raise PersistenceError(words)
    return (path / _FACTS).exists() and not only_refuses(str(path / _FACTS))
