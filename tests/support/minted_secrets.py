"""Secrets for tests, all with a mark by which a search finds them again, whatever happens to them (`secret_search`)."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

import jwt

MARK = "n0tF0rL0gs"
"""Every password and key that a test mints begins with it; a token is known by its form."""


def password() -> str:
    """A password that no other test has."""
    return f"{MARK}{secrets.token_hex(8)}"


def signing_key() -> bytes:
    """A key for HS256."""
    return MARK.encode() + secrets.token_bytes(32)


def token(role: str, key: bytes, seconds: float = 3600.0, **claims: Any) -> str:
    """A token for a role, good for so many seconds."""
    now = time.time()
    return jwt.encode({"sub": role, "iat": int(now), "exp": int(now + seconds), **claims}, key, "HS256")


def kept(directory: Path, name: str, value: str | bytes) -> Path:
    """A file for a secret; only in such directories the search expects any."""
    place = directory / "secrets"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = place / name
    path.write_bytes(value if isinstance(value, bytes) else value.encode())
    return path
