"""Where copies of ledgers lie: a directory, or a bucket of an object store.

    file:///path or /path            a directory of this machine, or of a file system that all machines share
    s3://bucket/prefix  gs://  az://   through obstore, which takes credentials and endpoints from the usual variables
                                     (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_...);
                                     without any, `require_bucket_login` refuses

A file is written beside its final name (in a directory) or into a local temporary file (for a bucket), and gets its
name only when it is whole: by a rename after fsync, or by one conditional PUT. A name is never written twice.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Protocol
from urllib.parse import quote, unquote, urlsplit

from typing_extensions import override

from magnetar.model.errors import InvalidValueError, PersistenceError
from magnetar.model.names import TopicName
from magnetar.security.credentials.bucket_login import require_bucket_login
from magnetar.storage.backends.directory import make_directory
from magnetar.storage.backends.files import OsFileSystem

_PART: Final = ".new"
"""The end of the name of a file that is not whole yet."""
_FOLDER_MAX: Final = 200
BUCKET_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")


class ObjectDraft(Protocol):
    """A file on its way."""

    target: Any
    """Where to write it: a path on this machine, or a file."""

    def commit(self) -> int:
        """Give it its name, durably; its size. Raises OSError, and FileExistsError if the name is taken."""
        ...

    def abandon(self) -> None:
        """It will not be needed."""
        ...


class ObjectStore(Protocol):
    """Called from any thread. All methods block, and raise OSError for what goes wrong."""

    url: str

    def draft(self, name: str) -> ObjectDraft: ...

    def open(self, name: str) -> Any:
        """What pyarrow reads from; FileNotFoundError if there is no such object. The caller closes it."""
        ...

    def delete(self, name: str) -> None:
        """Also what a draft left that was killed. Fine if there is neither."""
        ...


def object_store_at(url: str) -> ObjectStore:
    """The object store at an address. Raises InvalidValueError for what is none."""
    parts = urlsplit(url)
    if parts.scheme == "file" or (not parts.scheme and url.startswith("/")):
        path = unquote(parts.path) if parts.scheme else url
        if not path.startswith("/") or parts.netloc not in ("", "localhost"):
            raise InvalidValueError(f"{url} names no directory: write file:///absolute/path")
        return DirectoryObjectStore(url, path)
    if parts.scheme in BUCKET_SCHEMES and parts.netloc:
        return BucketObjectStore(url)
    raise InvalidValueError(
        f"{url or 'an empty text'} is no place for offloaded ledgers: file:///path, s3://bucket/prefix, "
        "gs://bucket/prefix or az://container/prefix"
    )


def require_place(url: str) -> None:
    """What is needed to write there is installed, and a directory is there, made if missing, and can be written.

    Raises InvalidValueError.
    """
    needed, place = {"pyarrow": "spark"}, None
    parts = urlsplit(url)
    if parts.scheme in BUCKET_SCHEMES and parts.netloc:
        needed["obstore"] = "pipelines"
    else:
        place = object_store_at(url)
    for package, extra in needed.items():
        if find_spec(package) is None:
            raise InvalidValueError(f"{url!r} needs {package}: pip install 'magnetar[{extra}]'")
    require_bucket_login(url, {})
    if isinstance(place, DirectoryObjectStore):
        place.require()


def require_name(name: str) -> str:
    """An object's name: relative, of plain parts. Raises InvalidValueError."""
    if not name or any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name or "\0" in name:
        raise InvalidValueError(f"{name!r} is no name of an object: parts with / between them, none empty, . or ..")
    return name


def folder_of(topic: TopicName) -> str:
    """Below which a topic's objects lie: readable, its own, and never longer than file systems take (255 bytes)."""
    name = quote(topic.local_name, safe="")
    if not name.strip("."):
        name = name.replace(".", "%2E")
    if len(name) > _FOLDER_MAX:
        name = f"{name[:_FOLDER_MAX]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"{topic.namespace}/{name}"


class DirectoryObjectStore:
    """A directory on a file system; files are made durable with fsync, as are the directories above them."""

    def __init__(self, url: str, path: str) -> None:
        self.url = url
        self.path = path

    def require(self) -> None:
        """Make the directory if it is missing. Raises InvalidValueError if nothing can be written there."""
        try:
            os.makedirs(self.path, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise InvalidValueError(
                f"nothing can be written to the directory {self.path}: {error.strerror}; name one that the broker may "
                "write to"
            ) from None

    def draft(self, name: str) -> ObjectDraft:
        head, _, tail = require_name(name).rpartition("/")
        return _FileDraft(self.path, head, tail)

    def open(self, name: str) -> Any:
        import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

        # not mapped into memory: a file that is cut while it is read must be an error, not the process's end
        return pa.OSFile(os.path.join(self.path, require_name(name)))

    def delete(self, name: str) -> None:
        Path(self.path, require_name(name)).unlink(missing_ok=True)
        Path(self.path, name + _PART).unlink(missing_ok=True)


class _FileDraft:
    def __init__(self, root: str, head: str, tail: str) -> None:
        if not os.path.isdir(root):
            # It was there at the start. Made anew, it would lie on the disk below what is not mounted any more, and so
            # would the only copies of what is released.
            said = "the directory of offloaded ledgers is gone; is its file system mounted?"
            raise FileNotFoundError(errno.ENOENT, said, root)
        self._directory = OsFileSystem(os.path.join(root, head), shared=True)
        self._name, self._part = tail, tail + _PART
        self.target = os.path.join(root, head, self._part)

    def commit(self) -> int:
        directory = self._directory
        file = directory.open(self._part)
        try:
            file.sync()
            size = file.size()
        finally:
            file.close()
        if os.path.exists(os.path.join(directory.path, self._name)):
            raise FileExistsError(f"{os.path.join(directory.path, self._name)} is there already")
        directory.rename(self._part, self._name)
        make_directory(directory.path)  # it is there; what is new of the way to it may not be durable
        return size

    def abandon(self) -> None:
        Path(self.target).unlink(missing_ok=True)


class BucketObjectStore:
    """A bucket of an object store. ``store``: an obstore store, made from the address if not given."""

    def __init__(self, url: str, store: Any = None) -> None:
        self.url = url
        self._store = store if store is not None else _store(url)

    def draft(self, name: str) -> ObjectDraft:
        return _BucketDraft(self, require_name(name))

    def open(self, name: str) -> Any:
        return _Object(self._store, require_name(name))

    def delete(self, name: str) -> None:
        import obstore

        try:
            _raising(lambda: obstore.delete(self._store, require_name(name)))
        except FileNotFoundError:
            pass

    def put(self, name: str, file: IO[bytes]) -> None:
        """The file as an object, whole or not at all."""
        import obstore

        _raising(lambda: obstore.put(self._store, name, file, mode="create", use_multipart=False))


class _Object(io.RawIOBase):
    """An object as a file: each read is one request for a range."""

    def __init__(self, store: Any, name: str) -> None:
        import obstore

        self._get: Callable[..., Any] = partial(obstore.get_range, store, name)
        self._size: int = _raising(lambda: obstore.head(store, name))["size"]
        self._at = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    @override
    def tell(self) -> int:
        return self._at

    @override
    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        found = memoryview(_raising(lambda: self._get(start=self._at, length=wanted)))
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


class _BucketDraft:
    def __init__(self, bucket: BucketObjectStore, name: str) -> None:
        self._bucket = bucket
        self._name = name
        # It has no name, so that a kill leaves nothing.
        self.target: IO[bytes] = tempfile.TemporaryFile(prefix="magnetar-offload-")  # noqa: SIM115 - it is closed below

    def commit(self) -> int:
        try:
            size = self.target.seek(0, os.SEEK_END)
            self.target.seek(0)
            self._bucket.put(self._name, self.target)
            return size
        finally:
            self.abandon()

    def abandon(self) -> None:
        self.target.close()


def _store(url: str) -> Any:
    try:
        from obstore.store import from_url
    except ImportError:
        raise PersistenceError(f"{url} needs obstore: pip install 'magnetar[pipelines]'") from None
    require_bucket_login(url, {})
    return _raising(lambda: from_url(url))


def _raising(work: Any) -> Any:
    """obstore's errors as OSError; those of its own kind have no other base than Exception."""
    from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

    try:
        return work()
    except (FileNotFoundError, NotFoundError) as error:
        raise FileNotFoundError(str(error)) from error
    except (FileExistsError, AlreadyExistsError) as error:
        raise FileExistsError(str(error)) from error
    except BaseError as error:
        raise OSError(str(error)) from error
