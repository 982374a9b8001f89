"""The one way to the files of a table: obstore, for a directory as for s3://, gs://, az:// and others.

Paths inside a store are relative to the table, with ``/``. A new file is whole or not there; `create` never replaces
one, whoever else tries at the same time (a hard link in a directory, a conditional put in an object store), which is
what a commit log rests on. What is here does not fsync: a table survives a kill of every process, and after a loss of
power what the file system or the object store has promised.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, from_url

from magnetar.model.errors import InvalidValueError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types


def local_path(path: str) -> str | None:
    """As a directory of this machine, absolute; None for another kind of URL."""
    url = urlparse(path)
    if url.scheme == "file":
        return os.path.abspath(unquote(url.path))
    return os.path.abspath(path) if len(url.scheme) < 2 else None


class FileStore:
    """All below one directory or URL. Made where it is used: it does not travel between processes."""

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        directory = local_path(path)
        self._directory = directory
        self._store: Any
        if directory is not None:
            self._store = LocalStore(directory, mkdir=True)
            return
        # Hadoop's name of the same store.
        url = path.replace("s3a://", "s3://", 1) if path.startswith("s3a://") else path
        try:
            self._store = from_url(url, config=dict(options))  # type: ignore[call-overload]  # any keys; it checks them
        except Exception as error:
            raise InvalidValueError(f"{path} cannot be opened: {error}; see options storage.*") from error

    def read(self, path: str) -> bytes:
        """All of a file; FileNotFoundError."""
        return bytes(obstore.get(self._store, path).bytes())

    def parquet(self, path: str) -> pa.Table:
        """All of a Parquet file; FileNotFoundError."""
        import pyarrow as pa
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # the same

        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(self.read(path)))).read()

    def create(self, path: str, content: bytes) -> bool:
        """False, and nothing has happened, if there is one."""
        try:
            obstore.put(self._store, path, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def writer(self, path: str) -> FileOutput:
        """A new file, there once it is closed."""
        return FileOutput(obstore.open_writer(self._store, path))

    def move(self, source: str, target: str) -> None:
        """FileNotFoundError if ``source`` is not there; replaces ``target``."""
        obstore.rename(self._store, source, target)

    def delete(self, path: str) -> None:
        """It may be gone already."""
        try:
            obstore.delete(self._store, path)
        except FileNotFoundError:
            pass

    def prune(self, prefix: str) -> None:
        """Remove directories below ``prefix`` that hold nothing, and it; object stores have none."""
        if self._directory is None:
            return
        for directory, _, _ in os.walk(os.path.join(self._directory, prefix), topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                # It holds something, or somebody else has removed it.
                pass

    def list(self, prefix: str = "", after: str | None = None) -> Iterator[tuple[str, int, float]]:
        """Path, bytes and time of writing (seconds since 1970) of files, only those behind ``after`` in text order."""
        for chunk in obstore.list(self._store, prefix or None, offset=after):
            for meta in chunk:
                yield meta["path"], meta["size"], meta["last_modified"].timestamp()


class FileOutput:
    """What pyarrow wants of a file to write."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._writer.write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """A file is there when it is closed."""

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._writer.close()


def name_of(path: str) -> str:
    """The last part of a path or URL."""
    return Path(urlparse(path).path.rstrip("/")).name
