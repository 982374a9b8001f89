"""Keys that tokens are signed with: what they are decides which algorithms count, never the token.

A public key verifies the algorithms of its own kind only, so that its bytes are never taken for a secret, and ``none``
is no algorithm of any key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    load_der_private_key,
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)

from magnetar.model.errors import InvalidValueError

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

SECRET_ALGORITHMS: Final[Mapping[str, int]] = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The algorithms of secret keys, and the bytes that a key has at least."""
RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVE_ALGORITHMS: Final[Mapping[str, str]] = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
RSA_BITS_MIN: Final = 2048
RSA_BITS_MAX: Final = 16_384
_PEM: Final = b"-----BEGIN "


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key and the algorithms of tokens that it may verify."""

    key: bytes | PublicKey = field(repr=False)
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key and the algorithms that it may sign with, the usual one first."""

    key: bytes | PrivateKey = field(repr=False)
    algorithms: tuple[str, ...]


def secret_algorithms(secret: bytes, what: str) -> tuple[str, ...]:
    """The algorithms that a secret is long enough for, the strongest first. Raises InvalidValueError."""
    found = [name for name, least in SECRET_ALGORITHMS.items() if len(secret) >= least]
    if not found:
        raise InvalidValueError(f"{what}: a secret of {len(secret) * 8} bits; at least 256 are needed (HS256)")
    return tuple(reversed(found))


def secret_key(secret: bytes, what: str) -> VerificationKey:
    """A secret key, in the raw bytes that Pulsar writes. Raises InvalidValueError."""
    if secret.startswith(_PEM):
        raise InvalidValueError(f"{what}: a PEM file is no secret key; is tokenPublicKey meant?")
    return VerificationKey(secret, secret_algorithms(secret, what))


def public_key(data: bytes, algorithm: str, what: str) -> VerificationKey:
    """A public key in X.509 (DER, as Pulsar writes it, or PEM). Raises InvalidValueError.

    ``algorithm``: one that it has to allow; empty: any.
    """
    try:
        key = load_pem_public_key(data) if data.startswith(_PEM) else load_der_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InvalidValueError(f"{what}: no public key in X.509, neither DER nor PEM") from error
    algorithms = public_algorithms(key, what)
    _require(algorithm, algorithms, what)
    assert isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey)
    return VerificationKey(key, algorithms)


def private_key(data: bytes, algorithm: str, what: str) -> SigningKey:
    """A private key in PKCS 8 (DER, as Pulsar writes it, or PEM). Raises InvalidValueError.

    ``algorithm``: the one to sign with; empty: the usual one of its kind.
    """
    try:
        key = load_pem_private_key(data, None) if data.startswith(_PEM) else load_der_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InvalidValueError(
            f"{what}: no private key in PKCS 8, neither DER nor PEM, or one with a password"
        ) from error
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise InvalidValueError(f"{what}: neither an RSA nor an EC key")
    algorithms = public_algorithms(key.public_key(), what)
    _require(algorithm, algorithms, what)
    return SigningKey(key, (algorithm,) if algorithm else algorithms)


def public_algorithms(key: object, what: str) -> tuple[str, ...]:
    """The algorithms that a public key may verify. Raises InvalidValueError for keys that no token should have."""
    if isinstance(key, rsa.RSAPublicKey):
        if not RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
            raise InvalidValueError(
                f"{what}: an RSA key of {key.key_size} bits; expected {RSA_BITS_MIN} to {RSA_BITS_MAX}"
            )
        return RSA_ALGORITHMS
    if isinstance(key, ec.EllipticCurvePublicKey):
        found = CURVE_ALGORITHMS.get(key.curve.name)
        if found is None:
            raise InvalidValueError(f"{what}: the curve {key.curve.name} is not one of {', '.join(CURVE_ALGORITHMS)}")
        return (found,)
    raise InvalidValueError(f"{what}: neither an RSA nor an EC key")


def _require(algorithm: str, algorithms: tuple[str, ...], what: str) -> None:
    if algorithm and algorithm not in algorithms:
        raise InvalidValueError(f"{what}: the key is for {', '.join(algorithms)}, not for {algorithm[:40]!r}")
