"""The providers that the settings name, by the class names of Apache Pulsar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.config.properties import words
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import Clock
from magnetar.security.authentication.provider import AuthenticationProvider
from magnetar.security.authentication.revocation_list import RevocationList
from magnetar.security.authentication.service import AuthenticationService

_PACKAGE: Final = "org.apache.pulsar.broker.authentication."


def _token(settings: Settings, clock: Clock) -> AuthenticationProvider:
    from magnetar.security.authentication.token_provider import TokenProvider

    return TokenProvider.of(settings, clock)


def _tls(settings: Settings, clock: Clock) -> AuthenticationProvider:
    from magnetar.security.authentication.tls_provider import TlsProvider

    return TlsProvider.of(settings, clock)


def _basic(settings: Settings, clock: Clock) -> AuthenticationProvider:
    from magnetar.security.authentication.basic_provider import BasicProvider

    return BasicProvider.of(settings, clock)


def _openid(settings: Settings, clock: Clock) -> AuthenticationProvider:
    from magnetar.security.authentication.openid_provider import OpenIdProvider

    return OpenIdProvider.of(settings, clock)


_MAKERS: Final[dict[str, Callable[[Settings, Clock], AuthenticationProvider]]] = {
    f"{_PACKAGE}AuthenticationProviderToken": _token,
    f"{_PACKAGE}AuthenticationProviderTls": _tls,
    f"{_PACKAGE}AuthenticationProviderBasic": _basic,
    f"{_PACKAGE}oidc.AuthenticationProviderOpenID": _openid,
}


def authentication_service(settings: Settings, clock: Clock) -> AuthenticationService | None:
    """The service of a broker, ``None`` if authentication is off. Raises InvalidValueError."""
    if not settings.authenticationEnabled:
        return None
    providers = []
    for name in words(settings.authenticationProviders):
        make = _MAKERS.get(name)
        if make is None:
            raise InvalidValueError(
                f"authenticationProviders: {name[:200]!r} is not available in magnetar; there are "
                + ", ".join(known.removeprefix(_PACKAGE) for known in _MAKERS)
            )
        providers.append(make(settings, clock))
    if not providers and not settings.anonymousUserRole:
        raise InvalidValueError(
            "authenticationEnabled: no client could authenticate: authenticationProviders is empty and there is no "
            "anonymousUserRole (Apache Pulsar starts so, and leaves REST open)"
        )
    revoked = RevocationList(settings.tokenRevocationListFile) if settings.tokenRevocationListFile else None
    proxies = frozenset(settings.proxy_roles)
    return AuthenticationService(providers, clock, settings.anonymousUserRole, proxies, revoked)
