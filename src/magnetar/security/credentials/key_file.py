"""Pulsar's key file of a client: JSON with client_id, client_secret and perhaps issuer_url."""

from __future__ import annotations

import base64
import binascii
import json
import logging
from dataclasses import dataclass, field
from typing import Final

from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.secret import FORMS, CredentialsError, Secret
from magnetar.security.exposed_files import warn_of_exposure

log = logging.getLogger(__name__)

_DATA: Final = "data:application/json;base64,"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """What a client of an issuer says who it is by."""

    client_id: str
    client_secret: str = field(repr=False)
    issuer_url: str | None = None


def key_reference(text: str, what: str, *, inline: bool) -> Secret:
    """Return the secret that holds the JSON, from Pulsar's ways to name it: a path, ``file:`` or ``data:`` (only with
    ``inline``). Raises InvalidValueError."""
    text = text.strip()
    if text.startswith("data:"):
        if not inline:
            raise InvalidValueError(f"{what} holds a key itself; give a reference: {FORMS}")
        try:
            return Secret.given(base64.b64decode(text.removeprefix(_DATA), validate=True).decode())
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidValueError(f"{what} begins with data: and is not {_DATA}...") from None
    return Secret.parse(f"file:{text}" if text.startswith("/") else text, what)


def read_key(secret: Secret) -> ClientKey:
    """Read and check the JSON. Raises CredentialsError, CredentialsDelayedError."""
    try:
        found = json.loads(secret.reveal())
        client_id, client_secret, issuer = found["client_id"], found["client_secret"], found.get("issuer_url")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CredentialsError(
            f'{secret} is no key file; it must be {{"client_id": ..., "client_secret": ...}}'
        ) from None
    if not (isinstance(client_id, str) and isinstance(client_secret, str) and isinstance(issuer, str | None)):
        raise CredentialsError(f"{secret} is no key file: client_id, client_secret and issuer_url are texts")
    if secret.file is not None:
        warn_of_exposure(secret.file, "the key file of the login", log)
    return ClientKey(client_id, client_secret, issuer)
