"""The metadata of one node in one SQLite file; all SQL of the project is here.

::

    records(path TEXT PRIMARY KEY, version INTEGER, data BLOB)      user_version = 1

WAL mode with ``synchronous=FULL``: a commit returns after its fsync, so a fact that was answered for survives power
loss. The file is small and written seldom (one commit per administrative action), so calls run on the event loop's
thread. It may be read with the ``sqlite3`` program while the broker runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from magnetar.metadata.store import ABSENT, Record, Unwatch, Watcher, Watchers
from magnetar.model.errors import BadVersionError, MetadataError, NotFoundError

FORMAT: Final = 1
_AFTER_SLASH: Final = "0"  # the character after "/", so that [prefix + "/", prefix + "0") is all that lies below


class SqliteMetadataStore:
    """Owned by one process; used from the thread that made it."""

    def __init__(self, path: str) -> None:
        """Open or create the file. Raises MetadataError if it is not ours, of a later format, or damaged."""
        self._path = path
        self._watchers = Watchers()
        with self._explained("open"):
            self._db = sqlite3.connect(path, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise MetadataError(f"{self._path} has format {found}; this version of magnetar reads up to {FORMAT}")
        (verdict,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise MetadataError(f"{self._path} is damaged: {verdict}; restore it from a copy")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS records"
            "(path TEXT PRIMARY KEY, version INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID"
        )
        self._db.execute(f"PRAGMA user_version = {FORMAT}")

    def get(self, path: str) -> Record | None:
        with self._explained("read"):
            row = self._db.execute("SELECT data, version FROM records WHERE path = ?", (path,)).fetchone()
        return None if row is None else Record(row[0], row[1])

    def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        with self._explained("write"), self._transaction():
            found = self._version(path)
            if expected is not None and expected != found:
                raise BadVersionError(f"{path} has version {found}, not {expected}")
            self._db.execute("REPLACE INTO records(path, version, data) VALUES (?, ?, ?)", (path, found + 1, data))
        self._watchers.changed(path)
        return found + 1

    def delete(self, path: str, expected: int | None = None) -> None:
        with self._explained("write"), self._transaction():
            found = self._version(path)
            if found == ABSENT:
                raise NotFoundError(f"{path} does not exist")
            if expected is not None and expected != found:
                raise BadVersionError(f"{path} has version {found}, not {expected}")
            self._db.execute("DELETE FROM records WHERE path = ?", (path,))
        self._watchers.changed(path)

    def children(self, path: str) -> list[str]:
        base = path.rstrip("/")
        with self._explained("read"):
            rows = self._db.execute(
                "SELECT path FROM records WHERE path >= ? AND path < ?", (f"{base}/", base + _AFTER_SLASH)
            ).fetchall()
        return sorted({row[0][len(base) + 1 :].partition("/")[0] for row in rows})

    def watch(self, prefix: str, watcher: Watcher) -> Unwatch:
        return self._watchers.add(prefix, watcher)

    def close(self) -> None:
        self._db.close()

    def _version(self, path: str) -> int:
        row = self._db.execute("SELECT version FROM records WHERE path = ?", (path,)).fetchone()
        return ABSENT if row is None else int(row[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # a failed COMMIT (full disk) may have ended the transaction already
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise MetadataError(f"cannot {action} {self._path}: {error}") from error
