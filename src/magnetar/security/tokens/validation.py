"""From the text of a token to an identity: form, algorithm, signature, claims, in this order.

What a token says about its own verification is never followed: its algorithm must be one of the key's, ``jku``,
``jwk``, ``x5u`` and ``x5c`` are ignored, and a token with critical extensions (``crit``) is refused, since none is
known here.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final, NamedTuple

from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError
from jwt.utils import base64url_decode

from magnetar.model.errors import AuthenticationError
from magnetar.security.tokens.keys import VerificationKey

TOKEN_MAX: Final = 32 << 10
"""Bytes of the longest token; more is refused before anything is looked at."""
_FORM: Final = re.compile(rb"([A-Za-z0-9_-]{1,8192})\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_JWS: Final = PyJWS()
_NOT_UNDERSTOOD: Final = ("crit", "b64", "zip")


class UnverifiedToken(NamedTuple):
    """A token whose form is right, and of which nothing is proved."""

    text: str
    header: dict[str, Any]


def parse(data: bytes) -> UnverifiedToken:
    """Return the token with its header. Raises AuthenticationError."""
    data = data.strip()
    if not data:
        raise AuthenticationError("an empty token")
    if len(data) > TOKEN_MAX:
        raise AuthenticationError(f"a token of {len(data)} bytes; at most {TOKEN_MAX} are accepted")
    if not _FORM.fullmatch(data):
        raise AuthenticationError("no token: not three parts of base64url")
    text = data.decode("ascii")
    try:
        header = _JWS.get_unverified_header(text)
    except (PyJWTError, ValueError, RecursionError) as error:
        raise AuthenticationError(f"a token with a malformed header: {type(error).__name__}") from None
    for name in _NOT_UNDERSTOOD:
        if name in header:
            raise AuthenticationError(f"a token with {name} in its header, which is not understood here")
    return UnverifiedToken(text, header)


def unverified_claims(token: UnverifiedToken) -> dict[str, Any]:
    """What a token says, of which nothing is proved. Raises AuthenticationError."""
    return _claims(base64url_decode(token.text.split(".")[1]))


def verify(token: UnverifiedToken, key: VerificationKey) -> dict[str, Any]:
    """Return the claims of a token that ``key`` has signed. Raises AuthenticationError."""
    algorithm = token.header.get("alg")
    if algorithm not in key.algorithms:
        raise AuthenticationError(f"a token of another algorithm than {', '.join(key.algorithms)}")
    try:
        payload = _JWS.decode(token.text, key.key, algorithms=[algorithm])
    except (PyJWTError, ValueError) as error:
        raise AuthenticationError(f"a token that the key did not sign: {type(error).__name__}") from None
    return _claims(payload)


def _claims(payload: bytes) -> dict[str, Any]:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise AuthenticationError(f"a token whose claims are no JSON: {type(error).__name__}") from None
    if not isinstance(claims, dict):
        raise AuthenticationError("a token whose claims are no JSON object")
    return claims


def shown(data: bytes) -> tuple[str, str]:
    """Header and claims of a token as they stand in it, of which nothing is proved; what no terminal should see is
    escaped. Raises AuthenticationError."""
    head, _, rest = parse(data).text.partition(".")
    texts = (base64url_decode(one).decode("utf-8", "backslashreplace") for one in (head, rest.partition(".")[0]))
    header, claims = ("".join(map(_printable, text)) for text in texts)
    return header, claims


def _printable(character: str) -> str:
    return character if character.isprintable() or character == "\n" else ascii(character)[1:-1]


def fingerprint(text: str) -> str:
    """The SHA-256 of what the signature covers, in hexadecimal: the same for every way to write the signature."""
    return hashlib.sha256(text.rpartition(".")[0].encode()).hexdigest()
