"""The identities under which a connection was accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from magnetar.authorization.caller import Caller
from magnetar.security.identity import Identity

ADMISSION: Final = "magnetar.admission"
"""Under which name a transport within the process says who its client is; no socket knows the name."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The identity of a connection that was authenticated elsewhere (over HTTP)."""

    caller: Caller
    login: Login | None
    """``None`` without authentication."""


@dataclass(frozen=True, slots=True)
class Login:
    """The identities of one connection."""

    method: str
    """The method of CONNECT, which AUTH_CHALLENGE names again."""
    peer: Identity
    """Who is connected."""
    original: Identity | None = None
    """The identity of a proxy's client, if its credentials were forwarded and checked (rule 12.13)."""
    original_method: str = ""

    @property
    def refreshed(self) -> Identity:
        """The identity whose credentials AUTH_CHALLENGE asks for again."""
        return self.peer if self.original is None else self.original
