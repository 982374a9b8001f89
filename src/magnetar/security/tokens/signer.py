"""Makes keys and tokens, byte for byte such as Pulsar's command line makes and reads."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt.api_jws import PyJWS

from magnetar.model.errors import InvalidValueError
from magnetar.security.tokens.claims import checked_role
from magnetar.security.tokens.keys import (
    CURVE_ALGORITHMS,
    RSA_ALGORITHMS,
    SECRET_ALGORITHMS,
    SigningKey,
    secret_algorithms,
)

_RSA_BITS: Final = {"256": 2048, "384": 3072, "512": 4096}
_CURVES: Final[Mapping[str, Callable[[], ec.EllipticCurve]]] = {
    "ES256": ec.SECP256R1,
    "ES384": ec.SECP384R1,
    "ES512": ec.SECP521R1,
}
_OURS: Final = frozenset(("alg", "crit", "b64", "zip"))


class WrittenKeyPair(NamedTuple):
    """Both keys in DER."""

    private: bytes
    """PKCS 8, without a password."""
    public: bytes
    """X.509."""


def new_secret(algorithm: str, *, in_base64: bool) -> bytes:
    """A secret as long as the algorithm's hash. Raises InvalidValueError."""
    size = SECRET_ALGORITHMS.get(algorithm)
    if size is None:
        raise InvalidValueError(
            f"--signature-algorithm: {algorithm} has a key pair; expected {', '.join(SECRET_ALGORITHMS)}"
        )
    made = secrets.token_bytes(size)
    return base64.b64encode(made) if in_base64 else made


def new_pair(algorithm: str) -> WrittenKeyPair:
    """A key pair of the size that Pulsar gives it. Raises InvalidValueError."""
    if algorithm in RSA_ALGORITHMS:
        key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = rsa.generate_private_key(65537, _RSA_BITS[algorithm[2:]])
    elif algorithm in _CURVES:
        key = ec.generate_private_key(_CURVES[algorithm]())
    else:
        known = ", ".join((*RSA_ALGORITHMS, *CURVE_ALGORITHMS.values()))
        raise InvalidValueError(f"--signature-algorithm: {algorithm} has no key pair; expected {known}")
    return WrittenKeyPair(
        key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    )


def secret_signer(secret: bytes, algorithm: str, what: str) -> SigningKey:
    """A secret that signs, with the strongest algorithm that it is long enough for unless one is named.

    Raises InvalidValueError.
    """
    algorithms = secret_algorithms(secret, what)
    if algorithm in SECRET_ALGORITHMS and algorithm not in algorithms:
        raise InvalidValueError(f"{what}: a secret of {len(secret) * 8} bits is too short for {algorithm}")
    # Pulsar's default of that flag is RS256, also with secret keys
    return SigningKey(secret, (algorithm,) if algorithm in algorithms else algorithms)


def sign(claims: Mapping[str, object], signer: SigningKey, headers: Sequence[str]) -> str:
    """A token. Raises InvalidValueError."""
    more: dict[str, object] = {"typ": None}
    for one in headers:
        name, equals, value = one.partition("=")
        if not equals or not name or name in _OURS:
            raise InvalidValueError(
                f"--headers: {one[:100]!r} is not accepted; expected key=value, and not {', '.join(sorted(_OURS))}"
            )
        more[name] = value
    checked_role(str(claims["sub"]), "--subject")
    return PyJWS().encode(_compact(claims), signer.key, signer.algorithms[0], headers=more)


def _compact(claims: Mapping[str, object]) -> bytes:
    return json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode()
