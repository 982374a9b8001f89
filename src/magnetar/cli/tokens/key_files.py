"""Files with keys, for their owner only and never instead of another file, and lists of what is revoked."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from magnetar.model.errors import InvalidValueError
from magnetar.storage.backends.directory import sync_directory


class KeyFile(NamedTuple):
    """A file to be written."""

    path: Path
    content: bytes
    mode: int


def write(files: Sequence[KeyFile], *, overwrite: bool) -> None:
    """Write all of them or none, so that they last. Raises InvalidValueError if one is there already, OSError."""
    for file in files:
        _check_place(file.path, overwrite=overwrite)
    if len({os.path.abspath(file.path) for file in files}) < len(files):
        raise InvalidValueError("both keys would be written to the same file")
    drafts: list[Path] = []
    written: list[Path] = []
    try:
        for file in files:
            drafts.append(_draft(file))
        for file, draft in zip(files, drafts, strict=True):
            if overwrite:
                draft.replace(file.path)
            else:
                os.link(draft, file.path)
                written.append(file.path)
        for directory in {file.path.parent for file in files}:
            with suppress(OSError):  # not every file system can
                sync_directory(os.fspath(directory))
    except BaseException as error:
        for path in written:
            with suppress(OSError):
                path.unlink()
        if isinstance(error, FileExistsError):
            name = error.filename2 or error.filename
            raise InvalidValueError(f"{name} has come into being meanwhile") from error
        raise
    finally:
        for draft in drafts:
            with suppress(FileNotFoundError):
                draft.unlink()


def add_line(path: Path, line: str) -> None:
    """Add a line of its own to a file, unless it is there, so that it lasts; a disk that refuses it leaves the file as
    it was. Raises OSError, which names the file."""
    try:
        if path.is_file() and _holds(path, line.encode()):
            return
        with path.open("a+b", buffering=0) as opened:
            before = opened.seek(0, os.SEEK_END)
            begin = b""
            if before:
                opened.seek(-1, os.SEEK_END)
                begin = b"" if opened.read(1) == b"\n" else b"\n"
            content = begin + f"{line}\n".encode()
            try:
                if opened.write(content) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(opened.fileno())  # noqa: TID251  # a file of the user, no part of the store
            except OSError:
                with suppress(OSError):  # a device
                    opened.truncate(before)
                raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _holds(path: Path, line: bytes) -> bool:
    with path.open("rb") as opened:
        return any(other.strip() == line for other in opened)


def _check_place(path: Path, *, overwrite: bool) -> None:
    """Raise InvalidValueError for what no key is written to; a device would be replaced by a file."""
    if not path.name or path.is_dir():
        raise InvalidValueError(f"{path} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise InvalidValueError(f"{path}: there is no directory {path.parent}; make it, or name another place")
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise InvalidValueError(f"{path} exists already; --overwrite replaces it, and what it signed is lost")
    if path.exists() and not path.is_file():
        raise InvalidValueError(f"{path} is no file that could be replaced")


def _draft(file: KeyFile) -> Path:
    """The content beside its place. Raises OSError, which names that place."""
    draft = file.path.with_name(f".{os.getpid()}.{file.path.name}"[:255])
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, file.mode)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(file.content)
                opened.flush()
                os.fsync(descriptor)  # noqa: TID251  # a file of the user, no part of the store
        except BaseException:
            draft.unlink()
            raise
    except FileExistsError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(file.path)) from error
    return draft
