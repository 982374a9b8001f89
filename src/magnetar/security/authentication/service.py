"""All providers of one broker: from a method and credentials to an identity."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final

from magnetar.model.errors import AuthenticationError
from magnetar.runtime.clock import Clock
from magnetar.runtime.log import RateLimitedLog
from magnetar.security.authentication.provider import AuthenticationProvider, Credentials
from magnetar.security.authentication.revocation_list import RevocationList
from magnetar.security.identity import Identity

log = logging.getLogger(__name__)

ANONYMOUS: Final = "anonymous"
"""The method of identities that were not proved."""
FAILED: Final = "Failed to authenticate"
"""What clients hear, whatever the reason (rule 12.1)."""


class AuthenticationService:
    """Judges credentials; several providers of one method are asked in their order."""

    def __init__(
        self,
        providers: Sequence[AuthenticationProvider],
        clock: Clock,
        anonymous_role: str = "",
        proxy_roles: frozenset[str] = frozenset(),
        revocation_list: RevocationList | None = None,
    ) -> None:
        """``anonymous_role``: the role of peers without credentials; empty: there is none."""
        self.proxy_roles = proxy_roles
        self.revocation_list = revocation_list
        self._clock = clock
        self._complaints = RateLimitedLog(log, clock=clock)
        self._anonymous = Identity(anonymous_role, ANONYMOUS) if anonymous_role else None
        self._by_method: dict[str, list[AuthenticationProvider]] = {}
        self._successes: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        for provider in providers:
            self._by_method.setdefault(provider.method, []).append(provider)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that have a provider, in the order of the setting ``authenticationProviders``."""
        return tuple(self._by_method)

    def _nobody(self) -> Identity:
        """The identity of a peer without credentials. Raises AuthenticationError if there is none."""
        if self._anonymous is None:
            raise AuthenticationError("no credentials, and anonymousUserRole is not set")
        if self.revoked(self._anonymous):
            raise AuthenticationError("no credentials, and anonymousUserRole was revoked")
        return self._anonymous

    async def authenticate(self, method: str | None, credentials: Credentials) -> Identity:
        """Return who the peer is; a method without a provider makes it anonymous (rule 12.1).

        Raises AuthenticationError.
        """
        # only names of providers, or the one for none: a client must not fill memory with others
        name = method if method is not None and method in self._by_method else ANONYMOUS
        try:
            identity = await self._authenticate(method, credentials)
        except AuthenticationError:
            self._failures[name] += 1
            raise
        self._successes[name] += 1
        return identity

    async def _authenticate(self, method: str | None, credentials: Credentials) -> Identity:
        providers = self._by_method.get(method or "")
        if providers is None:
            return self._nobody()
        refused = AuthenticationError("")
        for provider in providers:
            try:
                identity = await provider.authenticate(credentials)
            except AuthenticationError as error:
                refused = error
            except Exception as error:
                # whatever credentials did to a library, they do not count
                self._complaints.warning(
                    f"{method} provider", "%s: a provider failed: %s", method, type(error).__name__
                )
                refused = AuthenticationError(f"{method}: {type(error).__name__} while the credentials were checked")
            else:
                if self.revoked(identity):
                    raise AuthenticationError(f"{method}: the credentials of {identity.role} were revoked")
                return identity
        raise refused

    def counters(self) -> dict[str, tuple[int, int]]:
        """Successes and failures of each method since the start."""
        return {name: (self._successes[name], self._failures[name]) for name in (*self._by_method, ANONYMOUS)}

    def expired(self, identity: Identity) -> bool:
        """Whether its credentials do not count any more, because their time is over."""
        return identity.expires_at is not None and identity.expires_at * 1000 < self._clock.now_ms()

    def revoked(self, identity: Identity) -> bool:
        """Whether its credentials were revoked."""
        if self.revocation_list is not None and identity in self.revocation_list:
            return True
        providers = self._by_method.get(identity.method, ())
        return bool(providers) and not any(provider.still_valid(identity) for provider in providers)

    def revoked_original(self, role: str | None) -> bool:
        """Whether what ``role`` has was revoked, for which a proxy speaks."""
        return role is not None and self.revocation_list is not None and self.revocation_list.has_subject(role)

    async def refresh(self) -> bool:
        """Read again what has changed on disk; returns whether identities may have ceased to count. Never raises."""
        changed = self.revocation_list is not None and await self.revocation_list.refresh()
        for providers in self._by_method.values():
            for provider in providers:
                changed = await provider.refresh() or changed
        return changed

    async def close(self) -> None:
        """End what the providers have begun."""
        for providers in self._by_method.values():
            for provider in providers:
                await provider.close()
