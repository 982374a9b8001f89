"""The data key of one producer, and its renewal (rules 6.11.1, 6.11.3).

A data key lives for four hours. If the public keys cannot be read again then, the old data key stays in use, and they
are asked for again after a minute: a producer that has encrypted once never sends in clear. One that could not read
them at its beginning is not opened, unless its application chose SEND.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from magnetar.client.encryption.crypto_failure_action import ProducerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import EncryptionKeyInfo, KeySource, pem_text
from magnetar.client.errors import CryptoError
from magnetar.columnar.single_entries.encryption import Encryptor
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.entries import EntryMetadata
from magnetar.runtime.ctrl_c import is_ctrl_c

_LOG: Final = logging.getLogger(__name__)
LIFETIME: Final = 4 * 3600.0
"""Seconds that a data key lives, as in Java's and the C++ client."""
_WRAPPED_BYTES: Final = 1_200
"""What one wrapped data key takes: that of an RSA key of 8,192 bits, and numbers."""
RETRY: Final = 60.0
"""Seconds between two looks whether the data key is to be renewed."""


class MessageSealer:
    """Encrypts all entries of one producer."""

    def __init__(
        self,
        key_names: Sequence[str],
        reader: KeySource,
        failure: ProducerCryptoFailureAction = ProducerCryptoFailureAction.FAIL,
    ) -> None:
        """``key_names``: the data key is wrapped for each of these. Raises InvalidValueError."""
        if isinstance(key_names, str) or not key_names or not all(key_names):
            raise InvalidValueError("encryption_keys are names, and none is empty")
        if not callable(getattr(reader, "get_public_key", None)):
            raise InvalidValueError(
                f"crypto_key_reader is {type(reader).__name__}; it needs get_public_key(key_name, metadata)"
            )
        self._names = tuple(dict.fromkeys(key_names))
        self._reader = reader
        self._failure = ProducerCryptoFailureAction(failure)
        self._encryptor: Encryptor | None = None
        self._due = float("-inf")

    def renew(self, now: float) -> None:
        """Make a new data key if it is time to; this reads keys, and may block. Raises CryptoError if there is none
        yet, and none can be made."""
        if now < self._due:
            return
        try:
            self._encryptor = self._made()
        except CryptoError as error:
            if self._encryptor is not None:
                _LOG.warning("%s; the data key of before stays in use", error)
                return
            if self._failure is ProducerCryptoFailureAction.FAIL:
                raise
            _LOG.warning("%s; messages go out in clear, as crypto_failure_action SEND says", error)
        else:
            self._due = now + LIFETIME

    def _made(self) -> Encryptor:
        texts, notes = {}, {}
        for name in self._names:
            try:
                found = self._reader.get_public_key(name, {})
                texts[name] = pem_text(found)
            except BaseException as error:
                if is_ctrl_c(error):
                    raise
                raise CryptoError(f"public key {name!r} cannot be read ({type(error).__name__})") from None
            if isinstance(found, EncryptionKeyInfo):
                notes[name] = tuple(found.metadata.items())
        try:
            return Encryptor(texts, notes)
        except InvalidValueError as error:
            raise CryptoError(f"cannot encrypt: {error}") from None

    @property
    def overhead(self) -> int:
        """How many bytes it adds to an entry at most, as far as can be said before other keys are read."""
        guessed = sum(len(name.encode()) + _WRAPPED_BYTES for name in self._names)
        return guessed if self._encryptor is None else max(guessed, self._encryptor.overhead)

    def seal(self, metadata: EntryMetadata, payload: bytes) -> tuple[EntryMetadata, bytes]:
        """Encrypt a payload that is compressed already; the metadata name everything that a reader needs."""
        if self._encryptor is None:
            return metadata, payload
        return self._encryptor.encrypt(metadata, payload)
