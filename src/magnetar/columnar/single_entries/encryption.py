"""End-to-end encryption as Pulsar's clients do it (rules of 6.11): without a key, not even a broker sees a payload.

A payload, compressed already, is encrypted with AES-256-GCM under a data key that its producer made up; the 12 bytes of
nonce are the metadata's encryption_param, the 16 bytes of tag stand after the ciphertext. The data key travels with
every message, once for each reader's public key, wrapped with RSA-OAEP (SHA-1, as all of Pulsar's clients) under the
name that the producer gave that key. A reader tries the private key of that name, or the only one it was given.

Unwrapping takes a thousand times as long as decrypting, so data keys are remembered by their wrapped form.
The library is loaded when the first key is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.protocol.entries import EncryptionKey, EntryMetadata

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_BITS: Final = 256
_NONCE_BYTES: Final = 12
_REMEMBERED: Final = 1_000
ANY: Final = ""
"""Name of a key that is for all names."""


class UndecryptableError(MagnetarError):
    """A payload that none of the given keys opens."""


class Decryptor:
    """Decrypts with one reader's private keys: names, or `ANY`, to PEM texts. InvalidValueError if one is none."""

    def __init__(self, private_keys: Mapping[str, str]) -> None:
        self._keys = {name: _private(name, text) for name, text in private_keys.items()}
        self._ciphers: dict[bytes, AESGCM] = {}

    def decrypt(self, metadata: EntryMetadata, payload: bytes) -> tuple[EntryMetadata, bytes]:
        """Return the plain payload, and metadata without the fields of encryption. UndecryptableError."""
        from cryptography.exceptions import InvalidTag

        nonce = metadata.encryption_param or b""
        for wrapped in metadata.encryption_keys:
            cipher = self._cipher(wrapped)
            if cipher is None:
                continue
            try:
                plain = cipher.decrypt(nonce, payload, None)
            except (InvalidTag, ValueError):
                continue
            cleared = replace(metadata, encryption_keys=(), encryption_algo=None, encryption_param=None)
            return cleared, plain
        names = ", ".join(repr(one.key) for one in metadata.encryption_keys)
        have = ", ".join(repr(name) if name else "one for all names" for name in self._keys) or "none"
        raise UndecryptableError(f"encrypted for the keys {names}, and none of the private keys ({have}) opens it")

    def _cipher(self, wrapped: EncryptionKey) -> AESGCM | None:
        found = self._ciphers.get(wrapped.value)
        if found is not None:
            return found
        key = self._keys.get(wrapped.key) or self._keys.get(ANY)
        if key is None:
            return None
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            cipher = AESGCM(key.decrypt(wrapped.value, oaep()))
        except ValueError:
            return None
        if len(self._ciphers) >= _REMEMBERED:
            self._ciphers.clear()
        self._ciphers[wrapped.value] = cipher
        return cipher


class Encryptor:
    """Encrypts with one data key, wrapped for each public key: names to PEM texts. InvalidValueError if one is none."""

    def __init__(self, public_keys: Mapping[str, str]) -> None:
        if not public_keys:
            raise InvalidValueError("no public key to encrypt for")
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        data_key = AESGCM.generate_key(_KEY_BITS)
        self._cipher = AESGCM(data_key)
        self._wrapped = tuple(
            EncryptionKey(name, _public(name, text).encrypt(data_key, oaep())) for name, text in public_keys.items()
        )

    def encrypt(self, metadata: EntryMetadata, payload: bytes) -> tuple[EntryMetadata, bytes]:
        """Encrypt a payload that is compressed already; the metadata name everything that a reader needs."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = replace(metadata, encryption_keys=self._wrapped, encryption_param=nonce)
        return sealed, self._cipher.encrypt(nonce, payload, None)


def oaep() -> padding.OAEP:
    """Return the padding by which data keys are wrapped."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


def public_of(name: str, private_key: str) -> str:
    """Return the public half of a private key, both PEM. InvalidValueError."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = _private(name, private_key).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _private(name: str, text: str) -> rsa.RSAPrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    try:
        key = serialization.load_pem_private_key(text.encode(), None)
    except (ValueError, TypeError) as error:
        raise InvalidValueError(f"private key {name!r} is no PEM text without a password: {error}") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InvalidValueError(f"private key {name!r} is {type(key).__name__}; data keys are wrapped with RSA here")
    return key


def _public(name: str, text: str) -> rsa.RSAPublicKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    try:
        key = serialization.load_pem_public_key(text.encode())
    except ValueError as error:
        raise InvalidValueError(f"public key {name!r} is no PEM text: {error}") from None
    if not isinstance(key, rsa.RSAPublicKey):
        raise InvalidValueError(f"public key {name!r} is {type(key).__name__}; data keys are wrapped with RSA here")
    return key
