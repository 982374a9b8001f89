"""Credentials, and the provider that judges those of one method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from magnetar.security.identity import Identity


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a peer shows to prove who it is; it is never printed."""

    data: bytes = field(default=b"", repr=False)
    """The ``auth_data`` of CONNECT: a token, or ``user:password``."""
    certificate: bytes | None = field(default=None, repr=False)
    """The certificate that TLS has verified, in DER."""
    address: str = ""
    """The peer's address as ``/host:port``."""


class AuthenticationProvider(Protocol):
    """The judge of one method's credentials; lives on the event loop, and leaves what is slow to threads."""

    method: str
    """The method's name in CONNECT and in ``X-Pulsar-Auth-Method-Name``: ``token``, ``tls`` or ``basic``."""

    async def authenticate(self, credentials: Credentials) -> Identity:
        """Return who shows these credentials. Raises AuthenticationError, whose text never holds any of them."""
        ...

    def still_valid(self, identity: Identity) -> bool:
        """Whether an identity of this method still counts, its expiry aside; cheap, waits for nothing."""
        return True

    async def refresh(self) -> bool:
        """Read again what has changed; returns whether identities may have ceased to count. Never raises."""
        return False

    async def close(self) -> None:
        """End what it has begun."""
        return
