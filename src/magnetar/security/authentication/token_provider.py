"""The provider of the method ``token``: signed tokens (rule 12.2)."""

from __future__ import annotations

import logging
from typing import Final

from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import Clock
from magnetar.security.authentication.provider import AuthenticationProvider, Credentials
from magnetar.security.exposed_files import warn_of_exposure
from magnetar.security.identity import Identity
from magnetar.security.tokens.claims import ClaimRules, identify
from magnetar.security.tokens.key_source import read_key, secret_file
from magnetar.security.tokens.keys import VerificationKey, public_key, secret_key
from magnetar.security.tokens.validation import fingerprint, parse, verify

log = logging.getLogger(__name__)

TOKEN: Final = "token"


class TokenProvider(AuthenticationProvider):
    """Judges tokens that one key signs."""

    method = TOKEN

    def __init__(self, key: VerificationKey, rules: ClaimRules, clock: Clock) -> None:
        self._key = key
        self._rules = rules
        self._clock = clock

    @staticmethod
    def of(settings: Settings, clock: Clock) -> TokenProvider:
        """The provider that the settings ask for. Raises InvalidValueError."""
        if settings.tokenSecretKey:
            key = secret_key(read_key(settings.tokenSecretKey, "tokenSecretKey"), "tokenSecretKey")
            if (file := secret_file(settings.tokenSecretKey)) is not None:
                warn_of_exposure(file, "tokenSecretKey", log)
        elif settings.tokenPublicKey:
            data = read_key(settings.tokenPublicKey, "tokenPublicKey")
            key = public_key(data, settings.tokenPublicAlg, "tokenPublicKey")
        else:
            raise InvalidValueError(
                "authenticationProviders: AuthenticationProviderToken needs tokenSecretKey or tokenPublicKey"
            )
        if settings.tokenAudienceClaim and not settings.tokenAudience:
            raise InvalidValueError("tokenAudienceClaim: needs tokenAudience, the audience that this broker is")
        audiences = frozenset((settings.tokenAudience,))
        rules = ClaimRules(
            settings.tokenAuthClaim or "sub",
            settings.tokenAudienceClaim,
            audiences,
            settings.tokenAllowedClockSkewSeconds,
            several_roles=settings.several_roles,
        )
        return TokenProvider(key, rules, clock)

    async def authenticate(self, credentials: Credentials) -> Identity:
        """Return whom a token names. Raises AuthenticationError."""
        token = parse(credentials.data)
        claims = verify(token, self._key)
        return identify(claims, self._rules, self._clock.now_ms() / 1000, fingerprint(token.text))
