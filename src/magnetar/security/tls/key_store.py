"""Java's key stores: PKCS12 files, which most files of the type JKS are since Java 9; the older format is refused.

Java's type ``JKS`` reads both formats, so the bytes decide, and no setting says the type. What is read is handed to
OpenSSL, which takes files only, under a password that is forgotten at once.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import read_without_waiting

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How the formats JKS and JCEKS begin."""
_BYTES_MAX: Final = 16 << 20


class StoredKeys(NamedTuple):
    """The contents of a key store, PEM."""

    key: bytes | None
    """Encrypted with ``password``."""
    password: bytes
    chain: bytes
    """The certificate of the key, then the others."""
    trusted: str
    """All certificates that no key stands beside."""


def read_key_store(path: str, password: str) -> StoredKeys:
    """Read a file. Raises InvalidValueError naming it and, for the old format, the command that
    converts it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        data = read_without_waiting(path, _BYTES_MAX + 1)
    except OSError as error:
        raise InvalidValueError(f"TLS: {path}: {error.strerror}") from None
    if data.startswith(_JKS):
        raise InvalidValueError(
            f"TLS: {path}: this is a key store in the format of before Java 9, which is not read here. Convert it: "
            f"keytool -importkeystore -srckeystore {path} -destkeystore {_converted(path)} -deststoretype PKCS12"
        )
    if len(data) > _BYTES_MAX:
        raise InvalidValueError(f"TLS: {path}: more than {_BYTES_MAX >> 20} MB are no key store")
    try:
        found = pkcs12.load_pkcs12(data, password.encode() if password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InvalidValueError(
            f"TLS: {path}: not a key store in the format PKCS12, or its password is another one: {error}"
        ) from None
    once = secrets.token_hex(16).encode()
    pem = serialization.Encoding.PEM
    others = [other.certificate.public_bytes(pem) for other in found.additional_certs]
    own = b"" if found.cert is None else found.cert.certificate.public_bytes(pem)
    key = None if found.key is None else _encrypted(found.key, once)
    trusted = b"".join(others if key is not None else [own, *others])
    return StoredKeys(key, once, b"".join([own, *others]), trusted.decode())


def load_chain(context: ssl.SSLContext, path: str, password: str) -> bytes:
    """Show the certificate of a key store, and return it with its chain, in PEM.

    Raises InvalidValueError, ssl.SSLError if key and certificate do not fit.
    """
    stored = read_key_store(path, password)
    if stored.key is None or not stored.chain:
        raise InvalidValueError(f"TLS: {path}: there is no key with a certificate in this key store")
    with tempfile.NamedTemporaryFile(prefix="magnetar-", suffix=".pem") as file:
        file.write(stored.key + stored.chain)
        file.flush()
        context.load_cert_chain(file.name, password=stored.password)
    return stored.chain


def load_trusted(context: ssl.SSLContext, path: str, password: str) -> None:
    """Trust the certificates of a trust store. Raises InvalidValueError."""
    trusted = read_key_store(path, password).trusted
    if not trusted:
        raise InvalidValueError(f"TLS: {path}: there is no certificate in this trust store")
    context.load_verify_locations(cadata=trusted)


def _encrypted(key: PrivateKeyTypes, password: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )


def _converted(path: str) -> str:
    return str(Path(path).with_suffix(".p12"))
