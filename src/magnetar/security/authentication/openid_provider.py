"""The provider of the method ``token`` for tokens of OpenID Connect issuers, which OAuth 2 clients send (rule 12.1)."""

from __future__ import annotations

from magnetar.config.properties import words
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import Clock
from magnetar.security.authentication.provider import AuthenticationProvider, Credentials
from magnetar.security.identity import Identity
from magnetar.security.openid.issuer_keys import FetchRules, IssuerKeys
from magnetar.security.tokens.claims import ClaimRules, identify
from magnetar.security.tokens.validation import fingerprint, parse, unverified_claims, verify


class OpenIdProvider(AuthenticationProvider):
    """Judges tokens by the keys that their issuers publish."""

    method = "token"

    def __init__(self, keys: IssuerKeys, rules: ClaimRules, clock: Clock) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock

    @staticmethod
    def of(settings: Settings, clock: Clock) -> OpenIdProvider:
        """The provider that the settings ask for. Raises InvalidValueError."""
        issuers, audiences = (
            frozenset(words(listed)) for listed in (settings.openIDAllowedTokenIssuers, settings.openIDAllowedAudiences)
        )
        for name, listed in (("openIDAllowedTokenIssuers", issuers), ("openIDAllowedAudiences", audiences)):
            if not listed:
                raise InvalidValueError(f"authenticationProviders: AuthenticationProviderOpenID needs {name}")
        if settings.openIDFallbackDiscoveryMode != "DISABLED":
            raise InvalidValueError(
                f"openIDFallbackDiscoveryMode: {settings.openIDFallbackDiscoveryMode[:100]!r} is not available; list "
                "the issuer of Kubernetes in openIDAllowedTokenIssuers, and leave this out"
            )
        schemes = ("https://",) if settings.openIDRequireIssuersUseHttps else ("https://", "http://")
        for issuer in issuers:
            if not issuer.lower().startswith(schemes):
                raise InvalidValueError(
                    f"openIDAllowedTokenIssuers: {issuer[:200]!r} is no {' or '.join(schemes)} address"
                )
        rules = ClaimRules(
            settings.openIDRoleClaim,
            "aud",
            audiences,
            settings.openIDAcceptedTimeLeewaySeconds,
            ("iat", "exp", "sub", settings.openIDRoleClaim),
            settings.several_roles,
        )
        fetching = FetchRules(
            trust_file=settings.openIDTokenIssuerTrustCertsFilePath,
            require_https=settings.openIDRequireIssuersUseHttps,
            patience=max(settings.openIDHttpConnectionTimeoutMillis, settings.openIDHttpReadTimeoutMillis) / 1000,
            refresh=settings.openIDCacheRefreshAfterWriteSeconds,
            expire=settings.openIDCacheExpirationSeconds,
            miss=settings.openIDKeyIdCacheMissRefreshSeconds,
        )
        return OpenIdProvider(IssuerKeys(issuers, fetching, clock), rules, clock)

    async def authenticate(self, credentials: Credentials) -> Identity:
        """Return whom a token names. Raises AuthenticationError."""
        token = parse(credentials.data)
        # the issuer only chooses among those that are allowed
        key = await self._keys.key(unverified_claims(token).get("iss"), token.header.get("kid"))
        return identify(verify(token, key), self._rules, self._clock.now_ms() / 1000, fingerprint(token.text))

    async def close(self) -> None:
        """End requests to issuers."""
        await self._keys.close()
