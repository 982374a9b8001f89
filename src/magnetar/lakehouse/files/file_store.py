"""The files of a table by obstore, in a directory or under s3://, gs://, az:// and others.

Paths inside a store are relative to the table, with ``/``. A new file is whole or not there; `create` never replaces
one, even if several try at the same time (a hard link in a directory, a conditional put in an object store), which is
what a commit log rests on. Nothing here calls fsync: a table survives a kill of every process; after a loss of
power it has what the file system or the object store guarantees.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, from_url

from magnetar.lakehouse.model.library_reason import reason_of
from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.bucket_login import require_bucket_login, without_cloud

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

_OF_CLIENT: Final = frozenset(
    (
        *("allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only"),
        *("http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_only"),
        *("pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url"),
        *("randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent"),
    )
)


def local_path(path: str) -> str | None:
    """Return the absolute path of a directory of this machine; None for another kind of URL."""
    url = urlparse(path)
    if url.scheme == "file":
        return os.path.abspath(unquote(url.path))
    return os.path.abspath(path) if len(url.scheme) < 2 else None


def same_place(one: str, other: str) -> bool:
    """Whether two names lead to one directory or URL, through whatever links."""
    places = [local_path(path) for path in (one, other)]
    if None in places:
        return places == [None, None] and _url(one).rstrip("/") == _url(other).rstrip("/")
    first, second = (os.path.realpath(place) for place in places if place is not None)
    return first == second


def _url(path: str) -> str:
    """A URL without Hadoop's name for S3."""
    return path.replace("s3a://", "s3://", 1) if path.startswith("s3a://") else path


def _parted(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options of a store, and those of its HTTP client, which the library takes apart and panics about otherwise."""
    config, client = {}, {}
    for key, value in options.items():
        name = without_cloud(key)
        if name in _OF_CLIENT:
            client[name] = value
        else:
            config[key] = value
    return config, client


class FileStore:
    """All files below one directory or URL. It cannot be pickled: make it in the process that uses it."""

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        directory = local_path(path)
        self._directory = directory
        self._store: Any
        if directory is not None:
            self._store = LocalStore(directory, mkdir=True)
            return
        require_bucket_login(path, options)
        config, client = _parted(options)
        try:
            self._store = from_url(_url(path), config=config, client_options=client)  # type: ignore[call-overload]  # any keys; it checks them
        except Exception as error:
            raise InvalidValueError(f"{path} cannot be opened: {reason_of(error)}; see options storage.*") from error

    def read(self, path: str) -> bytes:
        """Read a whole file. Raises FileNotFoundError."""
        return bytes(obstore.get(self._store, path).bytes())

    def parquet(self, path: str) -> pa.Table:
        """Read a whole Parquet file. Raises FileNotFoundError."""
        import pyarrow as pa
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types

        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(self.read(path)))).read()

    def create(self, path: str, content: bytes) -> bool:
        """Write a new file; False, with nothing changed, if there is one already."""
        try:
            obstore.put(self._store, path, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def writer(self, path: str) -> FileOutput:
        """Open a new file, which exists once it is closed."""
        return FileOutput(obstore.open_writer(self._store, path))

    def move(self, source: str, target: str) -> None:
        """Rename a file, replacing ``target``. Raises FileNotFoundError if ``source`` is not there."""
        obstore.rename(self._store, source, target)

    def delete(self, path: str) -> None:
        """Delete a file, which may be gone already."""
        try:
            obstore.delete(self._store, path)
        except FileNotFoundError:
            pass

    def prune(self, prefix: str) -> None:
        """Remove empty directories below ``prefix``, and itself if empty; object stores have none."""
        if self._directory is None:
            return
        for directory, _, _ in os.walk(os.path.join(self._directory, prefix), topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                # It is not empty, or another process has removed it.
                pass

    def list(self, prefix: str = "", after: str | None = None) -> Iterator[tuple[str, int, float]]:
        """Yield path, bytes and write time (seconds since 1970) of files, only those after ``after`` in text order."""
        for chunk in obstore.list(self._store, prefix or None, offset=after):
            for meta in chunk:
                yield meta["path"], meta["size"], meta["last_modified"].timestamp()


class FileOutput:
    """A new file with the interface that pyarrow writes to."""

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
        """Do nothing: a file exists when it is closed."""

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._writer.close()


def name_of(path: str) -> str:
    """Return the last part of a path or URL."""
    return Path(urlparse(path).path.rstrip("/")).name
