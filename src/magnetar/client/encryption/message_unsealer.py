"""What one consumer opens, and what it does with the rest (rule 6.11.2)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import KeySource, pem_text
from magnetar.columnar.single_entries.encryption import Decryptor, UndecryptableError, names_of
from magnetar.columnar.single_entries.wrapped_key import load_private
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.entries import EncryptionKey, EntryMetadata
from magnetar.runtime.ctrl_c import is_ctrl_c

if TYPE_CHECKING:
    from magnetar.columnar.single_entries.wrapped_key import PrivateKey

_LOG: Final = logging.getLogger(__name__)
_LOADED_MAX: Final = 100
_SAID_MAX: Final = 10
"""So many undecryptable entries are named in the log; of more only that there are."""


class MessageUnsealer:
    """Decrypts entries for one consumer; data keys and private keys that were read once are remembered."""

    def __init__(
        self,
        reader: KeySource | None,
        failure: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> None:
        """Without a ``reader`` nothing is opened. Raises InvalidValueError."""
        if reader is not None and not callable(getattr(reader, "get_private_key", None)):
            raise InvalidValueError(
                f"crypto_key_reader is {type(reader).__name__}; it needs get_private_key(key_name, metadata)"
            )
        self.failure = ConsumerCryptoFailureAction(failure)
        self._reader = reader
        self._decryptor = Decryptor({}, None if reader is None else self._find)
        self._loaded: dict[str, PrivateKey] = {}
        self._said = 0
        self._trouble = ""

    @property
    def has_keys(self) -> bool:
        """Whether there is a reader of keys."""
        return self._reader is not None

    def open(self, where: str, metadata: EntryMetadata, payload: bytes) -> bytes | None:
        """Return the plain payload, None if no key opens it; the log says so, with ``where`` it is."""
        self._trouble = ""
        if self._reader is None:
            self._say(where, f"encrypted for the keys {names_of(metadata)}; give crypto_key_reader to read it")
            return None
        try:
            return self._decryptor.plain(metadata, payload)
        except UndecryptableError as error:
            self._say(where, f"{error}{self._trouble}")
            return None

    def _say(self, where: str, what: str) -> None:
        self._said += 1
        if self._said <= _SAID_MAX:
            more = "" if self._said < _SAID_MAX else "; others that follow are not named"
            _LOG.error("%s is %s%s", where, what, more)

    def _find(self, wrapped: EncryptionKey) -> PrivateKey | None:
        assert self._reader is not None
        try:
            text = pem_text(self._reader.get_private_key(wrapped.key, dict(wrapped.metadata)))
            key = self._loaded.get(text)
            if key is None:
                try:
                    key = load_private(wrapped.key[:80], text)
                except InvalidValueError as error:
                    self._trouble = f"; {error}, as the key reader gave it"
                    return None
                if len(self._loaded) >= _LOADED_MAX:
                    self._loaded.clear()
                self._loaded[text] = key
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            self._trouble = f"; the key reader raised {type(error).__name__}"
            return None
        return key
