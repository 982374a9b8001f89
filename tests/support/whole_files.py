"""What a file of a store holds, as a whole."""

from __future__ import annotations

from magnetar.storage.backends.files import FileSystem


def content(files: FileSystem, name: str) -> bytes:
    """Return all bytes of a file."""
    file = files.open(name)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def replace(files: FileSystem, name: str, data: bytes) -> None:
    """Give a file other bytes, durable with its name."""
    file = files.open(name, create=True)
    file.truncate(0)
    file.append([data])
    file.sync()
    file.close()
    files.sync()
