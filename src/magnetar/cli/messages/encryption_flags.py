"""What the flags about keys mean for the client: ``-ekn``, ``-ekv`` and ``-ca`` of ``pulsar-client``."""

from __future__ import annotations

from typing import Any

from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import UriKeyReader
from magnetar.model.errors import InvalidValueError


def encryption(name: str | None, uri: str | None) -> dict[str, Any]:
    """Return the parameters of a producer; the URI is of the public key. Raises InvalidValueError."""
    if not name and not uri:
        return {}
    if not name or not uri:
        raise InvalidValueError("--encryption-key-name and --encryption-key-value (file:///public.pem) go together")
    return {"encryption_key": name, "crypto_key_reader": UriKeyReader(public=uri)}


def decryption(uri: str | None, action: str) -> dict[str, Any]:
    """Return the parameters of a consumer or reader; the URI is of the private key. Raises InvalidValueError."""
    actions = ConsumerCryptoFailureAction.__members__
    if action.upper() not in actions:
        raise InvalidValueError(f"--crypto-failure-action {action!r} is none of {', '.join(actions)}")
    found: dict[str, Any] = {"crypto_failure_action": actions[action.upper()]}
    if uri:
        found["crypto_key_reader"] = UriKeyReader(private=uri)
    return found
