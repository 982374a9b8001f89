"""The format of ``.htpasswd``: one ``user:hash`` on a line, with the hashes of Apache's ``htpasswd`` and of crypt(3).

Pulsar takes Apache's MD5 (``$apr1$``) and the old crypt; here bcrypt (``$2y$``), SHA-1 (``{SHA}``), ``$1$``, ``$5$``
and ``$6$`` count too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from passlib import hash as hashes  # type: ignore[import-untyped]  # libpass carries no types

from magnetar.model.errors import InvalidValueError

PASSWORD_MAX: Final = 1024
"""Bytes of the longest password; hashing longer ones is work without use."""
_ROUNDS_MAX: Final = 1_000_000
_BCRYPT_ROUNDS_MAX: Final = 14
_BCRYPT_BYTES: Final = 72
"""What bcrypt takes of a password, wherever the hash was made; the library refuses longer ones since its version 5."""
_KINDS: Final[tuple[tuple[str, Any], ...]] = (
    ("$apr1$", hashes.apr_md5_crypt),
    ("$1$", hashes.md5_crypt),
    ("$2", hashes.bcrypt),
    ("$5$", hashes.sha256_crypt),
    ("$6$", hashes.sha512_crypt),
    ("{SHA}", hashes.ldap_sha1),
    ("", hashes.des_crypt),
)


def parse(text: str, what: str) -> Mapping[str, str]:
    """The hash of each user; the last line of a user counts. Raises InvalidValueError, which shows no line."""
    users: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        user, colon, hashed = line.partition(":")
        if not user or not colon or not hashed or ":" in hashed:
            raise InvalidValueError(f"{what}: line {number} is not user:hash")
        why = _refusal(hashed)
        if why:
            raise InvalidValueError(f"{what}: line {number}, user {user[:100]!r}: {why}")
        users[user] = hashed
    return users


def _refusal(hashed: str) -> str:
    kind = _kind(hashed)
    try:
        parsed = kind.from_string(hashed)
    except (ValueError, TypeError):
        return "no hash of a known kind; make one with htpasswd -B (bcrypt)"
    if not parsed.checksum:
        return "no hash of a known kind; make one with htpasswd -B (bcrypt)"
    rounds = getattr(parsed, "rounds", 0) or 0
    if rounds > (_BCRYPT_ROUNDS_MAX if kind is hashes.bcrypt else _ROUNDS_MAX):
        return f"a hash of {rounds} rounds would take too long for each login"
    return ""


def matches(password: bytes, hashed: str) -> bool:
    """Whether a password has this hash; blocks for up to a second."""
    kind = _kind(hashed)
    try:
        return bool(kind.verify(password[:_BCRYPT_BYTES] if kind is hashes.bcrypt else password, hashed))
    except (ValueError, TypeError):
        return False


def _kind(hashed: str) -> Any:
    return next(kind for prefix, kind in _KINDS if hashed.startswith(prefix))
