"""End-to-end encryption as Pulsar's clients do it (rules of 6.11): without a key, not even a broker sees a payload.

A payload, compressed already, is encrypted with AES-256-GCM under a data key that its producer made up; the 12 bytes of
nonce are the metadata's encryption_param, the 16 bytes of tag stand after the ciphertext. The data key travels with
every message, once for each reader's public key, wrapped (`wrapped_key`) under the name that the producer gave that
key. A reader tries the private key of that name, or the only one it was given.

Unwrapping takes a thousand times as long as decrypting, so data keys are remembered by their wrapped form.
The library is loaded when the first key is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from magnetar.columnar.single_entries.wrapped_key import NotUnwrappedError, load_private, load_public, unwrap, wrap
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.protocol.commands import KeyValues
from magnetar.protocol.entries import EncryptionKey, EntryMetadata

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from magnetar.columnar.single_entries.wrapped_key import PrivateKey

_KEY_BITS: Final = 256
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_REMEMBERED: Final = 1_000
_TRIED_MAX: Final = 100
"""Wrapped keys of one message that are tried at most: each costs a millisecond, and a message may lie."""
_FIELD_BYTES: Final = 24
"""What protobuf takes beside the texts of one key at most."""
_NAMES_MAX: Final = 5
ANY: Final = ""
"""Name of a key that is for all names."""


class UndecryptableError(MagnetarError):
    """A payload that none of the given keys opens."""


class Decryptor:
    """Decrypts with one reader's private keys: names, or `ANY`, to PEM texts. InvalidValueError if one is none."""

    def __init__(
        self, private_keys: Mapping[str, str], find: Callable[[EncryptionKey], PrivateKey | None] | None = None
    ) -> None:
        """``find`` finds a private key for a wrapped one that ``private_keys`` has none for; None: there is none."""
        self._keys = {name: load_private(name, text) for name, text in private_keys.items()}
        self._find = find
        self._ciphers: dict[bytes, AESGCM] = {}

    def decrypt(self, metadata: EntryMetadata, payload: bytes) -> tuple[EntryMetadata, bytes]:
        """Return the plain payload, and metadata without the fields of encryption. UndecryptableError."""
        return replace(metadata, encryption_keys=(), encryption_algo=None, encryption_param=None), self.plain(
            metadata, payload
        )

    def plain(self, metadata: EntryMetadata, payload: bytes) -> bytes:
        """Return the plain payload. UndecryptableError."""
        from cryptography.exceptions import InvalidTag

        nonce = metadata.encryption_param or b""
        for wrapped in metadata.encryption_keys[:_TRIED_MAX]:
            cipher = self._cipher(wrapped)
            if cipher is None:
                continue
            try:
                return cipher.decrypt(nonce, payload, None)
            except (InvalidTag, ValueError):
                continue
        have = "none" if self._find is None else "those of the key reader"
        if self._keys:
            have = ", ".join(repr(name) if name else "one for all names" for name in self._keys)
        raise UndecryptableError(
            f"encrypted for the keys {names_of(metadata)}, and none of the private keys ({have}) opens it"
        )

    def _cipher(self, wrapped: EncryptionKey) -> AESGCM | None:
        found = self._ciphers.get(wrapped.value)
        if found is not None:
            return found
        key = self._keys.get(wrapped.key) or self._keys.get(ANY)
        if key is None and self._find is not None:
            key = self._find(wrapped)
        if key is None:
            return None
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            cipher = AESGCM(unwrap(key, wrapped.value))
        except (NotUnwrappedError, ValueError):
            return None
        if len(self._ciphers) >= _REMEMBERED:
            self._ciphers.clear()
        self._ciphers[wrapped.value] = cipher
        return cipher


class Encryptor:
    """Encrypts with one data key, wrapped for each public key: names to PEM texts. InvalidValueError if one is none."""

    def __init__(self, public_keys: Mapping[str, str], notes: Mapping[str, KeyValues] | None = None) -> None:
        """``notes``: what readers of a name are to see beside its wrapped key, for their own key readers."""
        if not public_keys:
            raise InvalidValueError("no public key to encrypt for")
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        data_key = AESGCM.generate_key(_KEY_BITS)
        self._cipher = AESGCM(data_key)
        self._wrapped = tuple(
            EncryptionKey(name, wrap(load_public(name, text), data_key), (notes or {}).get(name, ()))
            for name, text in public_keys.items()
        )

    @property
    def overhead(self) -> int:
        """How many bytes it adds to an entry at most."""
        return (
            _NONCE_BYTES
            + _TAG_BYTES
            + _FIELD_BYTES
            + sum(
                len(one.key.encode()) + len(one.value) + _FIELD_BYTES
                + sum(len(name.encode()) + len(value.encode()) + _FIELD_BYTES for name, value in one.metadata)
                for one in self._wrapped
            )
        )  # fmt: skip

    def encrypt(self, metadata: EntryMetadata, payload: bytes) -> tuple[EntryMetadata, bytes]:
        """Encrypt a payload that is compressed already; the metadata name everything that a reader needs."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = replace(metadata, encryption_keys=self._wrapped, encryption_param=nonce)
        return sealed, self._cipher.encrypt(nonce, payload, None)


def names_of(metadata: EntryMetadata) -> str:
    """Return the names of the keys that an entry was encrypted for, as errors show them."""
    shown = [repr(one.key[:80]) for one in metadata.encryption_keys[:_NAMES_MAX]]
    more = len(metadata.encryption_keys) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def public_of(name: str, private_key: str) -> str:
    """Return the public half of a private key, both PEM. InvalidValueError."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = load_private(name, private_key).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
