"""A JSON Web Key Set as keys that verify tokens; pure.

Only RSA and EC keys for signatures count: a symmetric key that stood in a public set would be everybody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from magnetar.model.errors import InvalidValueError
from magnetar.security.tokens.keys import CURVE_ALGORITHMS, PublicKey, VerificationKey, public_algorithms

KEYS_MAX: Final = 200
ALGORITHMS: Final = frozenset(("RS256", "RS384", "RS512", *CURVE_ALGORITHMS.values()))
"""The algorithms that Pulsar's provider accepts."""
_ID_MAX: Final = 1024

KeySet = Mapping[str, VerificationKey]
"""The keys of one issuer by their ``kid``."""


def parse(document: Mapping[str, Any]) -> KeySet:
    """The keys that can verify tokens; others in the set are left out. Raises ValueError if it is no key set."""
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise ValueError("no key set: it has no list 'keys'")
    found: dict[str, VerificationKey] = {}
    for one in listed[:KEYS_MAX]:
        if isinstance(one, dict) and isinstance(name := one.get("kid"), str) and len(name) <= _ID_MAX:
            key = _key(one)
            # the first of a name counts
            if key is not None:
                found.setdefault(name, key)
    return found


def _key(one: dict[str, Any]) -> VerificationKey | None:
    operations = one.get("key_ops", ["verify"])
    if one.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    try:
        key = _public(one)
        algorithms = set(public_algorithms(key, "key")) & ALGORITHMS if key is not None else set()
    except (PyJWTError, InvalidValueError, ValueError, TypeError, KeyError):
        return None
    if "alg" in one:
        algorithms &= {one["alg"]} if isinstance(one["alg"], str) else set()
    return VerificationKey(key, tuple(sorted(algorithms))) if key is not None and algorithms else None


def _public(one: dict[str, Any]) -> PublicKey | None:
    """The public half, also if the private one was published."""
    kind = one.get("kty")
    if kind == "RSA":
        members = {name: one[name] for name in ("kty", "n", "e")}
        return RSAAlgorithm.from_jwk(members)  # type: ignore[return-value]  # of these members no private key is made
    if kind == "EC":
        members = {name: one[name] for name in ("kty", "crv", "x", "y")}
        return ECAlgorithm.from_jwk(members)  # type: ignore[return-value]  # likewise
    return None
