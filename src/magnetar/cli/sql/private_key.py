"""The private key of a query, and what it does with messages that the key does not open."""

from __future__ import annotations

from typing import Final

from magnetar.cli.messages import encryption_flags
from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import pem_text
from magnetar.columnar.single_entries.encryption import ANY, Decryptor
from magnetar.columnar.single_entries.opener import CryptoFailureAction
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.encryption_keys import Decryption

_ACTIONS: Final = {
    ConsumerCryptoFailureAction.FAIL: CryptoFailureAction.FAIL,
    ConsumerCryptoFailureAction.DISCARD: CryptoFailureAction.SKIP,
    ConsumerCryptoFailureAction.CONSUME: CryptoFailureAction.CONSUME,
}


def decryption(uri: str | None, action: str) -> Decryption:
    """Return what ``-ekv`` and ``-ca`` mean; the URI is of a private key for all names. Raises InvalidValueError."""
    found = encryption_flags.decryption(uri, action)
    keys = {}
    if (reader := found.get("crypto_key_reader")) is not None:
        try:
            keys[ANY] = pem_text(reader.get_private_key(ANY, {}))
        except OSError as error:
            raise InvalidValueError(f"--encryption-key-value cannot be read: {error.strerror}") from None
        Decryptor(keys)  # a key that is none is found here, before anything is read
    return Decryption(keys, _ACTIONS[found["crypto_failure_action"]])
