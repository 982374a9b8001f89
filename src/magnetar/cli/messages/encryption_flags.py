"""What the flags about keys mean for the client: ``-ekn``, ``-ekv`` and ``-ca`` of ``pulsar-client``."""

from __future__ import annotations

import os
import stat
from typing import Any

from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import UriKeyReader, path_of
from magnetar.model.errors import InvalidValueError


def encryption(name: str | None, uri: str | None) -> dict[str, Any]:
    """Return the parameters of a producer; the URI is of the public key. Raises InvalidValueError."""
    if not name and not uri:
        return {}
    if not name or not uri:
        raise InvalidValueError("--encryption-key-name and --encryption-key-value (file:///public.pem) go together")
    return {"encryption_key": name, "crypto_key_reader": UriKeyReader(public=_there(uri))}


def decryption(uri: str | None, action: str) -> dict[str, Any]:
    """Return the parameters of a consumer or reader; the URI is of the private key. Raises InvalidValueError."""
    actions = ConsumerCryptoFailureAction.__members__
    if action.upper() not in actions:
        raise InvalidValueError(f"--crypto-failure-action {action!r} is none of {', '.join(actions)}")
    found: dict[str, Any] = {"crypto_failure_action": actions[action.upper()]}
    if uri:
        found["crypto_key_reader"] = UriKeyReader(private=_there(uri))
    return found


def _there(uri: str) -> str:
    """Return the URI of a key whose file may be read; a consumer would say nothing before it needs it. Raises
    InvalidValueError naming the flag and the file."""
    if not uri.startswith(("file:", "data:")):
        raise InvalidValueError(
            "--encryption-key-value is file:///path or data:application/x-pem-file;base64,…; is file:// missing?"
        )
    if uri.startswith("file:"):
        name = path_of(uri)
        try:
            # not read: a pipe gives its key once
            why = "Is a directory" if stat.S_ISDIR(os.stat(name).st_mode) else ""
            why = why or ("" if os.access(name, os.R_OK) else "Permission denied")
        except OSError as error:
            why = error.strerror or type(error).__name__
        if why:
            raise InvalidValueError(f"--encryption-key-value: {name!r} cannot be read: {why}")
    return uri
