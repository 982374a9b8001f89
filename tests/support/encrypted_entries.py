"""Key pairs for end-to-end encryption, and entries encrypted with them."""

from __future__ import annotations

from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from magnetar.columnar.single_entries.encryption import Encryptor
from magnetar.protocol.entries import build_entry, metadata_of, payload_of

_PEM = serialization.Encoding.PEM


def key_texts(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> tuple[str, str]:
    private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


@cache
def pair(number: int = 0) -> tuple[str, str]:
    """Private and public, PEM."""
    return key_texts(rsa.generate_private_key(65_537, 2_048))


def sealed(entry: bytes, **names: str) -> bytes:
    encryptor = Encryptor(names or {"k": pair()[1]})
    return build_entry(*encryptor.encrypt(metadata_of(entry), payload_of(entry)))
