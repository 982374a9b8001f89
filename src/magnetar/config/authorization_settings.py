"""Settings of authorization: who is a superuser or a proxy, how grants are read, the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from magnetar.config.properties import words
from magnetar.config.setting_field import setting

PROVIDER: Final = "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider"
"""Pulsar's rules; its name of them."""
MULTI_ROLES: Final = "org.apache.pulsar.broker.authorization.MultiRolesTokenAuthorizationProvider"
"""The same rules, for each role that a token names; Pulsar's name."""

_AUTHORIZATION: Final = "Authorization"


_NO_LOGIN: Final = "org.apache.pulsar.client.impl.auth.AuthenticationDisabled"


@dataclass(frozen=True, kw_only=True)
class AuthorizationSettings:
    """The part of :class:`magnetar.config.settings.Settings` that says who may do what."""

    authorizationEnabled: bool = setting(
        False,
        "Whether roles may do only what they are granted (docs/security.md). Needs `authenticationEnabled`.",
        _AUTHORIZATION,
    )
    authorizationProvider: str = setting(
        PROVIDER,
        "The rules of authorization: Pulsar's own, or its `MultiRolesTokenAuthorizationProvider`, by which all roles "
        "in the claim of a token count. Where `authorizationEnabled`, another name refuses the start.",
        _AUTHORIZATION,
    )
    superUserRoles: str = setting("", "Roles that may do everything, separated by commas.", _AUTHORIZATION)
    proxyRoles: str = setting(
        "",
        "Roles of proxies, separated by commas: each must name the principal it speaks for, and both must be allowed.",
        _AUTHORIZATION,
    )
    authorizationAllowWildcardsMatching: bool = setting(
        False, "Whether grants to `prefix*` and `*suffix` count for all roles that fit.", _AUTHORIZATION
    )
    allowAclChangesOnNonExistentTopics: bool = setting(
        False,
        "Whether permissions of a topic that does not exist are shown, granted and revoked; else they are a 404. "
        "Several topics at once (`grantPermissionsOnTopics`) have to exist in any case.",
        _AUTHORIZATION,
    )

    brokerClientAuthenticationPlugin: str = setting(
        "",
        "How Pulsar's broker logs in to itself. Here it only decides, as it does there, whether a new data directory "
        "of a broker with `authorizationEnabled` has the tenant public with public/default: without it an "
        "administrator creates them. Empty and `org.apache.pulsar.client.impl.auth.AuthenticationDisabled` mean none.",
        _AUTHORIZATION,
    )

    @property
    def comes_with_public(self) -> bool:
        """Whether a new data directory has the tenant ``public``: not where the broker could not log in to make it."""
        return not self.authorizationEnabled or self.brokerClientAuthenticationPlugin not in ("", _NO_LOGIN)

    auditLogFile: str = setting(
        "",
        "magnetar's own: file for the audit log, one JSON object for each line (docs/security.md); empty: none. Needs "
        "`authorizationEnabled`.",
        _AUTHORIZATION,
    )
    auditLogMaxSizeMB: int = setting(
        100, "magnetar's own: megabytes after which the audit log begins a new file.", _AUTHORIZATION, 1, 1 << 20
    )
    auditLogFiles: int = setting(
        10, "magnetar's own: files of the audit log that are kept, the current one included.", _AUTHORIZATION, 2, 1000
    )

    @property
    def several_roles(self) -> bool:
        """Whether all roles that a token names count."""
        return self.authorizationEnabled and self.authorizationProvider == MULTI_ROLES

    @property
    def super_user_roles(self) -> tuple[str, ...]:
        """The roles in ``superUserRoles``."""
        return words(self.superUserRoles)

    @property
    def proxy_roles(self) -> tuple[str, ...]:
        """The roles in ``proxyRoles``."""
        return words(self.proxyRoles)


def contradiction(settings: AuthorizationSettings, *, authenticated: bool) -> str:
    """Return why these settings cannot be honoured, with the name of the setting first; empty if they can."""
    if not settings.authorizationEnabled:
        return "auditLogFile: it records decisions of authorizationEnabled=true" if settings.auditLogFile else ""
    if not authenticated:
        return (
            "authorizationEnabled: roles are known only after a login; set authenticationEnabled=true too, or leave "
            "this out"
        )
    if settings.authorizationProvider not in (PROVIDER, MULTI_ROLES):
        return (
            f"authorizationProvider: {settings.authorizationProvider[:200]!r} cannot be run; leave it out, which "
            f"means {PROVIDER}"
        )
    return ""
