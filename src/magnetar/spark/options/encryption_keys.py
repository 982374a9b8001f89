"""Keys of end-to-end encryption as options name them: files or other references, or JSON of key names to these.

A public key may be PEM text itself; a private one is a secret, and Spark shows options. They are read where the options
are checked, which is the driver's machine: workers get the text with their task and need no file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from magnetar.columnar.single_entries.encryption import ANY, Decryptor, Encryptor, public_of
from magnetar.columnar.single_entries.opener import CryptoFailureAction
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.batches import Seal
from magnetar.runtime.files.pipe import read_without_waiting
from magnetar.security.credentials.secret import FORMS, CredentialsError, Secret

DEFAULT_NAME: Final = "magnetar"
"""The name of a public key that was given without one."""
_PEM: Final = "-----BEGIN "


@dataclass(frozen=True, slots=True)
class Decryption:
    """The private keys of a reader, and what it does with messages that no key opens."""

    keys: dict[str, str] = field(repr=False)
    """Names to PEM texts; the empty name is for all."""
    failure: CryptoFailureAction = CryptoFailureAction.FAIL


def decryption(private_key: str | None, on_failure: str | None) -> Decryption | None:
    """Return the keys that the two options give; None if neither is given. Raises InvalidValueError."""
    if private_key is None and on_failure is None:
        return None
    try:
        failure = CryptoFailureAction((on_failure or CryptoFailureAction.FAIL.value).lower())
    except ValueError:
        choices = ", ".join(one.value for one in CryptoFailureAction)
        raise InvalidValueError(f"option 'decryption.onFailure' is {on_failure!r}; it can be {choices}") from None
    keys = {} if private_key is None else pem_texts("decryption.privateKey", private_key, private=True)
    Decryptor(keys)  # a key that is none is found here and not by a task
    return Decryption(keys, failure)


@dataclass(frozen=True, slots=True)
class Encryption:
    """The public keys for which a sink encrypts."""

    keys: dict[str, str]
    """Names, which readers see, to PEM texts."""


def encryption(public_key: str | None) -> Encryption | None:
    """Return the keys that the option gives; None if it is not given. Raises InvalidValueError."""
    if public_key is None:
        return None
    keys = {name or DEFAULT_NAME: text for name, text in pem_texts("encryption.publicKey", public_key).items()}
    Encryptor(keys)  # a key that is none is found here and not by a task
    return Encryption(keys)


def encryption_like(found: Decryption) -> Encryption:
    """Return the public keys that belong to a reader's private ones."""
    return Encryption({name or DEFAULT_NAME: public_of(name, text) for name, text in found.keys.items()})


def sealing(found: Encryption | None) -> Seal | None:
    """Return what encrypts the entries of one producer, under a data key of its own."""
    return None if found is None else Encryptor(found.keys).encrypt


def pem_texts(title: str, text: str, *, private: bool = False) -> dict[str, str]:
    """Return names to PEM texts, from one (its name is `ANY`) or JSON of several. Raises InvalidValueError."""
    if not text.startswith("{"):
        return {ANY: _pem(title, text, private)}
    try:
        given = json.loads(text)
    except ValueError as error:
        raise InvalidValueError(f"option {title!r} begins like JSON and is none: {error}") from None
    if not given or not all(isinstance(one, str) for one in given.values()):
        raise InvalidValueError(f"option {title!r} must be JSON of key names to PEM texts or files")
    return {name: _pem(title, one, private) for name, one in given.items()}


def _pem(title: str, text: str, private: bool) -> str:
    text = text.strip()
    if text.startswith(_PEM):
        if private:
            raise InvalidValueError(
                f"option {title!r} holds a private key itself, and Spark shows options in plans and logs; give its "
                f"path, or another reference: {FORMS}"
            )
        return text
    found = Secret.of_reference(text, f"option {title!r}")
    if found is not None:
        try:
            return found.reveal()
        except CredentialsError as error:
            raise InvalidValueError(f"option {title!r}: {error}") from None
    try:
        return read_without_waiting(text).decode()
    except (OSError, ValueError) as error:
        # What was given is not repeated: it may be a key.
        forms = FORMS if private else "PEM text (-----BEGIN ...)"
        why = error.strerror if isinstance(error, OSError) else "it is no path"
        raise InvalidValueError(f"option {title!r} is neither {forms} nor a file that can be read: {why}") from None
