"""Settings of authentication: which credentials count, and what proves them (decision 030)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from magnetar.config.setting_field import INT_MAX, setting

_GROUP: Final = "Authentication"
_OPENID: Final = "OpenID Connect"
_DAY: Final = 86_400
_KEY: Final = "`file:///path`, a path, `data:;base64,...` or base64"


@dataclass(frozen=True, kw_only=True)
class AuthenticationSettings:
    """The part of :class:`magnetar.config.settings.Settings` that says who is who."""

    authenticationEnabled: bool = setting(
        False,
        "Whether clients have to authenticate, on the binary port and over REST.",
        _GROUP,
    )
    authenticationProviders: str = setting(
        "",
        "Class names of Pulsar's providers, separated by commas: AuthenticationProviderToken, ...Tls and ...Basic of "
        "org.apache.pulsar.broker.authentication, and oidc.AuthenticationProviderOpenID. Where "
        "`authenticationEnabled`, others refuse the start. Several of one method are asked in this order.",
        _GROUP,
        form="words",
    )
    anonymousUserRole: str = setting(
        "",
        "The role of clients without credentials, and of those whose method no provider knows; empty: they are "
        "refused.",
        _GROUP,
    )
    authenticationRefreshCheckSeconds: int = setting(
        60,
        "Seconds between two looks at the credentials of open connections; clients with expired ones are asked for "
        "new ones, and closed at the next look if none came.",
        _GROUP,
        1,
        INT_MAX,
    )
    authenticateOriginalAuthData: bool = setting(
        False, "Whether the credentials are checked, too, that a proxy forwards with the original principal.", _GROUP
    )
    authenticateMetricsEndpoint: bool = setting(
        False, "Whether `/metrics` needs credentials as all other paths do.", _GROUP
    )

    # certificates and passwords
    tlsClientRoleField: Literal["CN", "URI", "DNS", "EMAIL"] = setting(
        "CN",
        "magnetar's own: what in a client's certificate is the role: the common name of its subject, as in Pulsar, or "
        "the first subject alternative name of a kind.",
        _GROUP,
    )
    basicAuthConf: str = setting(
        "",
        "The `.htpasswd` file with users and their hashed passwords: `file:///path`, a path, `data:;base64,...` or "
        "base64. Pulsar's system property pulsar.auth.basic.conf in PULSAR_EXTRA_OPTS counts if it is empty.",
        _GROUP,
        secret=True,
    )

    # tokens
    tokenSecretKey: str = setting(
        "",
        f"Secret key that tokens are signed with (HS256, HS384, HS512): {_KEY}. It is taken before `tokenPublicKey`.",
        _GROUP,
        secret=True,
    )
    tokenPublicKey: str = setting(
        "", f"Public key of the key pair that tokens are signed with (RS, PS, ES): {_KEY}.", _GROUP
    )
    tokenPublicAlg: str = setting(
        "",
        "Algorithm that `tokenPublicKey` is for, such as RS256 or ES384; empty: what its kind allows. Pulsar's default "
        "is RS256.",
        _GROUP,
    )
    tokenAuthClaim: str = setting("", "Claim that holds the role; empty: `sub`.", _GROUP)
    tokenAudienceClaim: str = setting(
        "", "Claim that names the audiences of a token; empty: audiences are not looked at.", _GROUP
    )
    tokenAudience: str = setting(
        "", "This broker's audience, which `tokenAudienceClaim` of each token has to name.", _GROUP
    )
    tokenAllowedClockSkewSeconds: int = setting(
        0, "Seconds by which clocks may differ when `exp` and `nbf` of a token are looked at.", _GROUP, 0, _DAY
    )
    tokenRevocationListFile: str = setting(
        "",
        "magnetar's own: a file with the credentials that were taken back, one on a line; it is read again when it "
        "changes (docs/security.md).",
        _GROUP,
    )

    # OpenID Connect
    openIDAllowedTokenIssuers: str = setting(
        "",
        "Issuers whose tokens count, separated by commas, as `iss` of their tokens names them.",
        _OPENID,
        form="words",
    )
    openIDAllowedAudiences: str = setting(
        "", "Audiences, separated by commas; a token has to name one of them in `aud`.", _OPENID, form="words"
    )
    openIDRoleClaim: str = setting("sub", "Claim that holds the role.", _OPENID)
    openIDAcceptedTimeLeewaySeconds: int = setting(
        0, "Seconds by which the clocks of issuers may differ.", _OPENID, 0, _DAY
    )
    openIDTokenIssuerTrustCertsFilePath: str = setting(
        "", "Certificates (PEM) that are trusted when issuers are asked; empty: the system's.", _OPENID
    )
    openIDRequireIssuersUseHttps: bool = setting(True, "Whether issuers must have https addresses.", _OPENID)
    openIDFallbackDiscoveryMode: str = setting(
        "DISABLED",
        "How keys of other issuers are found. Pulsar knows two ways of Kubernetes; here DISABLED only.",
        _OPENID,
    )
    openIDCacheRefreshAfterWriteSeconds: int = setting(
        64_800,
        "Seconds after which an issuer's keys are fetched again while those known go on counting.",
        _OPENID,
        1,
        INT_MAX,
    )
    openIDCacheExpirationSeconds: int = setting(
        86_400, "Seconds after which an issuer's keys do not count any more.", _OPENID, 1, INT_MAX
    )
    openIDKeyIdCacheMissRefreshSeconds: int = setting(
        300,
        "Seconds that have to pass between two fetches because a token names a key that is not known.",
        _OPENID,
        0,
        INT_MAX,
    )
    openIDHttpConnectionTimeoutMillis: int = setting(
        10_000,
        "Milliseconds that fetching an issuer's keys may take in all; the larger of this and the next one counts.",
        _OPENID,
        1,
        120_000,
    )
    openIDHttpReadTimeoutMillis: int = setting(10_000, "The same; the larger of both counts.", _OPENID, 1, 120_000)
