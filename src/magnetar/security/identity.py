"""What authentication finds out about a peer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated peer: its role and for how long that holds."""

    role: str
    """The one that it is named by."""
    method: str
    """The authentication method as clients name it: ``token``, ``tls``, ``basic``, or ``anonymous`` (rule 12.1)."""
    expires_at: float | None = None
    """Unix time in seconds after which the credentials do not count any more; ``None``: they do not expire."""
    token_id: str | None = None
    """The ``jti`` claim of a token, by which it can be revoked."""
    subject: str | None = None
    """The ``sub`` claim of a token; it need not be the role."""
    fingerprint: str | None = None
    """The SHA-256 of a token's signed part, or of a client's certificate, in hexadecimal."""
    other_fingerprints: frozenset[str] = frozenset()
    """Those of the same certificate with its signature written in another way."""
    other_roles: tuple[str, ...] = ()
    """Roles that a token names besides, where they count (decision 076)."""
