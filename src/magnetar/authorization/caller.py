"""Who asks: the authenticated peer, and the principal it speaks for when it is a proxy (rule 12.13)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The roles of one connection or one request, and where it comes from."""

    role: str | None
    """The authenticated role; ``None``: authentication is off, or no credentials were needed."""
    original_role: str | None = None
    """The principal that a proxy names; both roles must be allowed what is asked."""
    address: str = ""
    """The peer's address as ``/host:port``, for the audit log."""
    method: str = "none"
    """How it authenticated."""
    other_roles: tuple[str, ...] = ()
    """Roles that its token names besides, each of which may allow what is asked."""
    other_original_roles: tuple[str, ...] = ()
    """The same of the principal, if the proxy has forwarded its token."""

    @property
    def principal(self) -> str:
        """The role that is meant: the original one of a proxy; empty without any. Transactions belong to it."""
        return self.original_role or self.role or ""

    @property
    def named(self) -> str:
        """The roles in words, for reasons and the audit log."""
        if self.original_role is None:
            return self.role or "anonymous client"
        return f"{self.original_role} (through {self.role})"
