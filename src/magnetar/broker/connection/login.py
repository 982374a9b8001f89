"""The identities under which a connection was accepted."""

from __future__ import annotations

from dataclasses import dataclass

from magnetar.security.identity import Identity


@dataclass(frozen=True, slots=True)
class Login:
    """The identities behind one connection."""

    method: str
    """The method of CONNECT, which AUTH_CHALLENGE names again."""
    peer: Identity
    """Who is connected."""
    original: Identity | None = None
    """Who stands behind a proxy, if its credentials were forwarded and checked (rule 12.13)."""
    original_method: str = ""

    @property
    def refreshed(self) -> Identity:
        """The identity whose credentials AUTH_CHALLENGE asks for again."""
        return self.peer if self.original is None else self.original
