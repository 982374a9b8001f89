"""Tokens made by hand and keys, for tests: good ones, and every way to forge one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt.api_jws import PyJWS

SECRET: Final = bytes(range(64))
OTHER_SECRET: Final = bytes(range(1, 65))
AUDIENCE: Final = "this-broker"
_JWS: Final = PyJWS()
YEAR: Final = 365 * 86_400


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    """An RSA key; making one takes a moment."""
    return rsa.generate_private_key(65537, 2048)


@cache
def ec_key(algorithm: str = "ES256") -> ec.EllipticCurvePrivateKey:
    """An EC key for one algorithm."""
    curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1(), "ES256K": ec.SECP256K1()}
    return ec.generate_private_key(curves[algorithm])


def public_der(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    """The public key as Pulsar writes it."""
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def public_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    """The public key in PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_der(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    """The private key as Pulsar writes it."""
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def inline(key: bytes) -> str:
    """A key as the value of a setting."""
    return "data:;base64," + base64.b64encode(key).decode()


def signed(claims: Mapping[str, Any], key: Any = SECRET, algorithm: str = "HS256", **header: Any) -> str:
    """A token by the library, with claims of any kind."""
    return _JWS.encode(json.dumps(claims).encode(), key, algorithm, headers=header or None)


def assembled(header: Mapping[str, Any], payload: bytes, key: bytes | None = SECRET) -> str:
    """A token by hand, with an HMAC-SHA256 whatever its header says, or without a signature."""
    covered = f"{part(json.dumps(header).encode())}.{part(payload)}"
    signature = b"" if key is None else hmac.new(key, covered.encode(), hashlib.sha256).digest()
    return f"{covered}.{part(signature)}"


def part(data: bytes) -> str:
    """One part of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Forged(NamedTuple):
    """A token that must not count, and why."""

    name: str
    token: str


def forged(now: float) -> Iterator[Forged]:
    """Tokens that a broker with SECRET and AUDIENCE must refuse."""
    claims = {"sub": "admin", "aud": AUDIENCE}
    plain = json.dumps(claims).encode()
    good = signed(claims)
    head, body, signature = good.split(".")
    for name in ("none", "None", "NONE", "nOnE", ""):
        yield Forged(f"algorithm {name!r}", assembled({"alg": name, "typ": "JWT"}, plain, None))
        yield Forged(f"algorithm {name!r}, signed", assembled({"alg": name, "typ": "JWT"}, plain))
    yield Forged("no algorithm", assembled({"typ": "JWT"}, plain))
    yield Forged("algorithm is a list", assembled({"alg": ["HS256"]}, plain))
    yield Forged("algorithm is an object", assembled({"alg": {"HS256": 1}}, plain))
    yield Forged("no signature", f"{head}.{body}.")
    yield Forged("signature left out", f"{head}.{body}")
    yield Forged("RS256 by a key of one's own", signed(claims, rsa_key(), "RS256"))
    yield Forged("PS256 by a key of one's own", signed(claims, rsa_key(), "PS256"))
    yield Forged("ES256 by a key of one's own", signed(claims, ec_key(), "ES256"))
    yield Forged("HS256, said to be RS256", assembled({"alg": "RS256"}, plain))
    yield Forged("HS256, said to be HS512", assembled({"alg": "HS512"}, plain))
    yield Forged("another secret", signed(claims, OTHER_SECRET))
    yield Forged("an empty secret", assembled({"alg": "HS256"}, plain, b""))
    yield Forged("a secret of zeros", assembled({"alg": "HS256"}, plain, bytes(32)))
    yield Forged("claims changed", f"{head}.{part(plain.replace(b'admin', b'nobody'))}.{signature}")
    yield Forged("signature of zeros", f"{head}.{body}.{part(bytes(32))}")
    yield Forged("signature cut", f"{head}.{body}.{signature[:-4]}")
    yield Forged("expired", signed({**claims, "exp": int(now) - 10}))
    yield Forged("not yet", signed({**claims, "nbf": int(now) + YEAR}))
    yield Forged("expiry is a text", signed_json(b'{"sub":"admin","aud":"this-broker","exp":"9999999999"}'))
    yield Forged("expiry is true", signed_json(b'{"sub":"admin","aud":"this-broker","exp":true}'))
    yield Forged("expiry is infinite", signed_json(b'{"sub":"admin","aud":"this-broker","exp":1e999}'))
    yield Forged("expiry is huge", signed_json(b'{"sub":"admin","aud":"this-broker","exp":1' + b"0" * 400 + b"}"))
    yield Forged("expiry is no number", signed_json(b'{"sub":"admin","aud":"this-broker","exp":NaN}'))
    yield Forged("wrong audience", signed({"sub": "admin", "aud": "another"}))
    yield Forged("wrong audiences", signed({"sub": "admin", "aud": ["another", "this-broker2"]}))
    yield Forged("no audience", signed({"sub": "admin"}))
    yield Forged("audience is an object", signed({"sub": "admin", "aud": {AUDIENCE: 1}}))
    yield Forged("no role", signed({"aud": AUDIENCE}))
    yield Forged("empty role", signed({"sub": " ", "aud": AUDIENCE}))
    yield Forged("role is a number", signed_json(b'{"sub":1,"aud":"this-broker"}'))
    yield Forged("role with a line break", signed({"sub": "a\nadmin", "aud": AUDIENCE}))
    yield Forged("role without end", signed({"sub": "a" * 2000, "aud": AUDIENCE}))
    yield Forged("huge", signed({**claims, "x": "x" * 40_000}))
    yield Forged("claims are a list", signed_json(b'["admin"]'))
    yield Forged("claims are no JSON", signed_json(b"admin"))
    yield Forged("claims of many levels", signed_json(b"[" * 20_000))
    yield Forged("header of many levels", f"{part(b'[' * 6000)}.{body}.{signature}")
    yield Forged("key id names a file", assembled({"alg": "HS256", "kid": "/dev/null"}, plain, b""))
    yield Forged("key id climbs", assembled({"alg": "HS256", "kid": "../../../../dev/null"}, plain, b"\0"))
    yield Forged("key id is SQL", assembled({"alg": "HS256", "kid": "x' UNION SELECT 'key"}, plain, b"key"))
    yield Forged("key id is a list", assembled({"alg": "HS256", "kid": ["x"]}, plain))
    own = rsa_key()
    numbers = jwt.algorithms.RSAAlgorithm.to_jwk(own.public_key(), as_dict=True)
    yield Forged("brings its key", signed(claims, own, "RS256", jwk=numbers))
    yield Forged("names its keys", signed(claims, own, "RS256", jku="http://127.0.0.1:1/keys"))
    yield Forged("names its certificate", signed(claims, own, "RS256", x5u="http://127.0.0.1:1/c"))
    yield Forged("critical", signed(claims, crit=["exp"]))
    yield Forged("payload apart", assembled({"alg": "HS256", "b64": False, "crit": ["b64"]}, plain))
    yield Forged("payload apart, not critical", assembled({"alg": "HS256", "b64": False}, plain))
    yield Forged("compressed", assembled({"alg": "HS256", "zip": "DEF"}, plain))
    yield Forged("encrypted", f"{part(b'{}')}.a.b.c.d")
    yield Forged("no token", "admin")
    yield Forged("empty", "")
    yield Forged("dots", "..")
    yield Forged("zeros", "\0" * 100)
    yield Forged("no ASCII", "é.é.é")


def signed_json(payload: bytes) -> str:
    """A token whose payload the library would not write."""
    return assembled({"alg": "HS256", "typ": "JWT"}, payload)
