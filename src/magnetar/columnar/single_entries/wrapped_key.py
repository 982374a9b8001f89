"""How a data key travels: wrapped with the public key of a reader, RSA or of an elliptic curve (rule 6.11.1).

RSA is OAEP with SHA-1, as all of Pulsar's clients have it. A key of an elliptic curve wraps by ECIES as Java's client
does (Bouncy Castle's defaults): an ephemeral key agrees with the reader's on a secret, KDF2 with SHA-1 makes of it a
key for HMAC-SHA-1 (its first 16 bytes) and a pad for the data key:

    ephemeral point, uncompressed | data key XOR pad | HMAC(data key XOR pad | 8 zero bytes)

Keys are PEM; what stands before a key in its file (EC PARAMETERS) is left out. The library is loaded with the first.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from magnetar.model.errors import InvalidValueError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_MAC_KEY_BYTES: Final = 16
_MAC_BYTES: Final = 20
_DATA_KEY_MAX: Final = 64
"""Bytes: twice those of the largest key of AES. A pad as long as a message takes minutes."""
_NO_ENCODING: Final = bytes(8)
"""The length of ECIES' second parameter, which is empty."""
_PARAMETERS: Final = re.compile(r"-----BEGIN EC PARAMETERS-----.*?-----END EC PARAMETERS-----", re.DOTALL)


class NotUnwrappedError(ValueError):
    """A wrapped key is not for this private key, or was damaged."""


def load_private(name: str, text: str) -> PrivateKey:
    """Return a private key of PEM. InvalidValueError names it by ``name`` and shows nothing of it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        key = serialization.load_pem_private_key(_PARAMETERS.sub("", text).encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidValueError(f"private key {name!r} is no PEM text of a known kind without a password") from None
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise InvalidValueError(f"private key {name!r} is {type(key).__name__}; data keys are wrapped with {_KINDS}")
    return key


def load_public(name: str, text: str) -> PublicKey:
    """Return a public key of PEM. InvalidValueError names it by ``name`` and shows nothing of it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        key = serialization.load_pem_public_key(_PARAMETERS.sub("", text).encode())
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidValueError(f"public key {name!r} is no PEM text of a known kind") from None
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        raise InvalidValueError(f"public key {name!r} is {type(key).__name__}; data keys are wrapped with {_KINDS}")
    return key


_KINDS: Final = "RSA or a key of an elliptic curve"


def wrap(key: PublicKey, data_key: bytes) -> bytes:
    """Return the data key wrapped for the owner of ``key``. InvalidValueError if the key is too short for it."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if isinstance(key, rsa.RSAPublicKey):
        try:
            return key.encrypt(data_key, oaep())
        except ValueError:
            raise InvalidValueError(f"an RSA key of {key.key_size} bits is too short to wrap a data key") from None
    ephemeral = ec.generate_private_key(key.curve)
    point = ephemeral.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    mac_key, pad = _derived(point + ephemeral.exchange(ec.ECDH(), key), len(data_key))
    hidden = _xor(data_key, pad)
    return point + hidden + _mac(mac_key, hidden)


def unwrap(key: PrivateKey, wrapped: bytes) -> bytes:
    """Return the data key. Raises NotUnwrappedError."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if isinstance(key, rsa.RSAPrivateKey):
        try:
            return key.decrypt(wrapped, oaep())
        except ValueError:
            raise NotUnwrappedError("the wrapped key is not for this private key") from None
    length = 1 + 2 * ((key.curve.key_size + 7) // 8)
    point, hidden, mac = wrapped[:length], wrapped[length:-_MAC_BYTES], wrapped[-_MAC_BYTES:]
    if len(hidden) > _DATA_KEY_MAX:
        raise NotUnwrappedError("the wrapped key is longer than any data key")
    try:
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(key.curve, point)
        secret = key.exchange(ec.ECDH(), theirs)
    except ValueError:
        raise NotUnwrappedError("the wrapped key holds no point of this key's curve") from None
    mac_key, pad = _derived(point + secret, len(hidden))
    if not hmac.compare_digest(mac, _mac(mac_key, hidden)):
        raise NotUnwrappedError("the wrapped key is not for this private key")
    return _xor(hidden, pad)


def oaep() -> padding.OAEP:
    """Return the padding by which RSA wraps data keys."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


def _derived(shared: bytes, length: int) -> tuple[bytes, bytes]:
    """KDF2 of ISO 18033-2 with SHA-1: the key of the MAC, and a pad of ``length`` bytes."""
    size, material, counter = _MAC_KEY_BYTES + length, b"", 1
    while len(material) < size:
        material += hashlib.sha1(shared + counter.to_bytes(4, "big")).digest()
        counter += 1
    return material[:_MAC_KEY_BYTES], material[_MAC_KEY_BYTES:size]


def _mac(key: bytes, hidden: bytes) -> bytes:
    return hmac.digest(key, hidden + _NO_ENCODING, "sha1")


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))
