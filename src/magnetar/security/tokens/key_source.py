"""The places from which the bytes of a key or of a password file come, in the forms that Pulsar accepts.

``file:/path`` and ``file:///path``, ``data:;base64,...`` and ``data:,text``, the path of a file, base64. An
``env:NAME`` is ours: the value of an environment variable, in any other form or as base64. A key is never fetched
from a network.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import opened_without_waiting

BYTES_MAX: Final = 1 << 20
_KEY_BYTES_MIN: Final = 16
"""No key and no password file is shorter; such a text is the name of a file that is missing."""
_DATA: Final = re.compile(r"data:[^;,]*(?:;charset=[^;,]*)?(;base64)?,(.*)", re.DOTALL)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")


def read_key(where: str, what: str) -> bytes:
    """Return the bytes that ``where`` stands for. Raises InvalidValueError, which names ``what`` and never a key."""
    place = where.strip()
    if place.startswith("env:"):
        name = place.removeprefix("env:")
        value = os.environ.get(name, "")
        if not value or value.startswith("env:"):
            raise InvalidValueError(f"{what}: the environment variable {name!r} is not set")
        return read_key(value, what)
    if place.startswith("data:"):
        return _inline(place, what)
    if place.startswith("file:"):
        return _of_file(_path_of(place, what), what)
    path = Path(place)
    try:
        exists = 0 < len(place) < 4096 and path.exists()
    except (OSError, ValueError):
        exists = False
    if exists:
        return _of_file(path, what)
    if _is_path(path):
        raise InvalidValueError(f"{what}: there is no file {path}")
    if _BASE64.fullmatch(place) and (found := _decoded(place)):
        if len(found) < _KEY_BYTES_MIN:
            raise InvalidValueError(
                f"{what}: no file has this name, and as base64 it is only {len(found) * 8} bits, too few to be meant; "
                "name a file that is there, by its whole path"
            )
        return found
    raise InvalidValueError(
        f"{what}: neither a file nor base64; expected file:///path, a path, data:;base64,... or base64"
    )


def _is_path(path: Path) -> bool:
    """Whether a missing file is meant, and not base64 that begins with a slash: such a key could be guessed."""
    try:
        return len(path.parts) > 2 and path.is_absolute() and Path(*path.parts[:2]).is_dir()
    except (OSError, ValueError):
        return False


def path_of(where: str) -> Path | None:
    """The file that ``where`` names, ``None`` if it holds the bytes itself."""
    place = where.strip()
    if place.startswith("file:"):
        return _path_of(place, "file")
    if place.startswith(("data:", "env:")):
        return None
    path = Path(place)
    try:
        return path if place and path.exists() else None
    except (OSError, ValueError):
        return None


def secret_file(where: str) -> Path | None:
    """The same, also of an ``env:NAME`` that names one."""
    place = where.strip()
    return path_of(os.environ.get(place.removeprefix("env:"), "") if place.startswith("env:") else place)


def _path_of(place: str, what: str) -> Path:
    rest = place.removeprefix("file:")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidValueError(f"{what}: {place!r} names the host {host!r}; expected file:///path")
        rest = slash + path
    if not rest:
        raise InvalidValueError(f"{what}: {place!r} names no file")
    return Path(unquote(rest))


def _of_file(path: Path, what: str) -> bytes:
    try:
        with opened_without_waiting(path) as file:
            found = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise InvalidValueError(f"{what}: cannot read {path}: {error.strerror or error}") from error
    if len(found) > BYTES_MAX:
        raise InvalidValueError(f"{what}: {path} has more than {BYTES_MAX} bytes")
    if not found:
        if path.is_fifo():
            raise InvalidValueError(f"{what}: the pipe {path} gives nothing: a key is read more than once; name a file")
        raise InvalidValueError(f"{what}: {path} is empty; write the key into it, or name another file")
    return found


def _inline(place: str, what: str) -> bytes:
    parts = _DATA.fullmatch(place)
    if parts is None:
        raise InvalidValueError(f"{what}: a malformed data: URL; expected data:;base64,...")
    found = unquote(parts[2])
    if parts[1] is None:
        return found.encode()
    decoded = _decoded(found)
    if not decoded:
        raise InvalidValueError(f"{what}: the data: URL is not base64")
    return decoded


def _decoded(text: str) -> bytes:
    joined = "".join(text.split())
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
