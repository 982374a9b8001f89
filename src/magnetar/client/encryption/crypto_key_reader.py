"""Where the keys of end-to-end encryption come from: files, URIs, or a class of the application.

A reader is asked for a public key when a producer is opened and every four hours, in a thread of its own, and for a
private key when a data key is met for the first time, on the event loop: one that asks a service should remember what
it got. Its errors are shown by the class of the error alone, since their texts may hold paths or keys.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote_to_bytes

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import opened_without_waiting

KEY_BYTES_MAX: Final = 64 * 1024
"""No key is larger; a file that is, is something else."""


@dataclass(frozen=True, slots=True)
class EncryptionKeyInfo:
    """A key as PEM, and for a public one what readers of the message are to see beside its name."""

    key: bytes = field(repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict)


class KeySource(Protocol):
    """What an application writes itself to have keys from elsewhere; `CryptoKeyReader` is one."""

    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the public key of a name. Raises any error if there is none."""
        ...

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the private key for messages that were encrypted under a name, with what their producer noted beside
        it. Raises any error if there is none."""
        ...


class CryptoKeyReader:
    """Keys from two PEM files, for all names, as the official Python client has it; read again each time.

    A subclass may read them from elsewhere; it need not call ``__init__``.
    """

    def __init__(self, public_key_path: str | None, private_key_path: str | None) -> None:
        """A producer needs the public key only, a consumer the private one; None where there is none."""
        for name, path in (("public_key_path", public_key_path), ("private_key_path", private_key_path)):
            if path is not None and not isinstance(path, str | Path):
                raise InvalidValueError(f"{name} is the path of a PEM file, and not {type(path).__name__}")
        self._public, self._private = public_key_path, private_key_path

    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the public key, whatever the name. Raises OSError, InvalidValueError."""
        return EncryptionKeyInfo(_content(self._public, "public_key_path"))

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the private key, whatever the name. Raises OSError, InvalidValueError."""
        return EncryptionKeyInfo(_content(self._private, "private_key_path"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"


class UriKeyReader:
    """Keys from ``file:///path`` or ``data:application/x-pem-file;base64,…``, as Java's default reader takes them: one
    for all names, or one for each."""

    def __init__(
        self, public: str | Mapping[str, str] | None = None, private: str | Mapping[str, str] | None = None
    ) -> None:
        self._public, self._private = public, private
        for given in (public, private):
            uris: list[Any] = list(given.values()) if isinstance(given, Mapping) else [given] if given else []
            for uri in uris:
                if not isinstance(uri, str) or not uri.startswith(("file:", "data:")):
                    raise InvalidValueError("a key is file:///path or data:application/x-pem-file;base64,…")

    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the public key of a name. Raises OSError, InvalidValueError."""
        return EncryptionKeyInfo(_of_uri(self._public, key_name))

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the private key of a name. Raises OSError, InvalidValueError."""
        return EncryptionKeyInfo(_of_uri(self._private, key_name))

    def __repr__(self) -> str:
        return "UriKeyReader(***)"


def _of_uri(given: str | Mapping[str, str] | None, name: str) -> bytes:
    uri = given if isinstance(given, str) else (given or {}).get(name)
    if uri is None:
        raise InvalidValueError(f"there is no key {name!r}")
    scheme, _, rest = uri.partition(":")
    if scheme == "file":
        return _content(path_of(uri), "the key's URI")
    kind, _, data = rest.partition(",")
    try:
        return base64.b64decode(data, validate=True) if kind.endswith(";base64") else unquote_to_bytes(data)
    except ValueError:
        raise InvalidValueError(f"the URI of key {name!r} is no base64") from None


def path_of(uri: str) -> str:
    """Return the file that a ``file:`` URI names."""
    return uri.removeprefix("file:").removeprefix("//")


def _content(path: str | None, what: str) -> bytes:
    if path is None:
        raise InvalidValueError(f"{what} was not given")
    with opened_without_waiting(path) as file:
        data = file.read(KEY_BYTES_MAX + 1)
    if len(data) > KEY_BYTES_MAX:
        raise InvalidValueError(f"{what} has more than {KEY_BYTES_MAX} bytes; is it the right file?")
    return data


def pem_text(found: object) -> str:
    """Return the PEM text of what a reader gave: an `EncryptionKeyInfo`, bytes or text. Raises InvalidValueError."""
    key = found.key if isinstance(found, EncryptionKeyInfo) else found
    try:
        text = key.decode() if isinstance(key, bytes | bytearray) else key
    except UnicodeDecodeError:
        raise InvalidValueError("what the key reader gave is no PEM text") from None
    if not isinstance(text, str):
        raise InvalidValueError(f"a key reader gives EncryptionKeyInfo, bytes or text, and not {type(key).__name__}")
    return text
