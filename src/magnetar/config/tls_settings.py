"""Settings of TLS: the ports that use it, and certificates, keys, protocols and ciphers (docs/decisions/029-tls.md).

:mod:`magnetar.security.tls` reads them, and :mod:`magnetar.app.listening_sockets` the ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from magnetar.config.setting_field import INT_MAX, setting

PROTOCOLS: Final = ("TLSv1.3", "TLSv1.2", "TLSv1.1", "TLSv1", "SSLv3", "SSLv2Hello")
"""The names that Java has; the older ones are accepted and never offered."""
_PORT_MAX: Final = 65_535
_TLS: Final = "TLS"
_STORES: Final = "TLS with key stores"


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """The part of :class:`magnetar.config.settings.Settings` that is about TLS."""

    brokerServicePortTls: int | None = setting(
        None, "TCP port of the binary protocol with TLS, usually 6651; 0 lets the system choose one.", _TLS,
        0, _PORT_MAX, off=True,
    )  # fmt: skip
    webServicePortTls: int | None = setting(
        None, "TCP port of the REST interface with TLS, usually 8443; 0 lets the system choose one.", _TLS,
        0, _PORT_MAX, off=True,
    )  # fmt: skip
    tlsEnabled: bool = setting(
        False, "Deprecated: the two ports say whether. `true` without one of them refuses the start.", _TLS
    )
    tlsCertificateFilePath: str = setting(
        "", "File with the broker's certificate and the chain to its authority, PEM. Changes are noticed.", _TLS
    )
    tlsKeyFilePath: str = setting("", "File with the key of that certificate, PEM, without a password.", _TLS)
    tlsTrustCertsFilePath: str = setting(
        "",
        "File with the authorities of client certificates, PEM. Clients are asked for one if it is given, and one that "
        "is sent must be by an authority of this file.",
        _TLS,
    )
    tlsRequireTrustedClientCertOnConnect: bool = setting(
        False, "Whether clients without a certificate are turned away, on both ports; needs trusted authorities.", _TLS
    )
    tlsCertRefreshCheckDurationSec: int = setting(
        300, "Seconds between two looks for changed files; 0: at each new connection.", _TLS, 0, INT_MAX
    )
    tlsProtocols: str = setting(
        "", "Protocols of the binary port; empty: TLSv1.3 and TLSv1.2. Older ones are never offered.", _TLS,
        members=PROTOCOLS,
    )  # fmt: skip
    tlsCiphers: str = setting(
        "",
        "Ciphers of the binary port, by Java's names or OpenSSL's, separated by commas; empty: what the standard "
        "library takes for secure. A connection that agrees on a TLS 1.3 suite not listed is closed.",
        _TLS,
    )
    webServiceTlsProtocols: str = setting("", "The same for REST.", _TLS, members=PROTOCOLS)
    webServiceTlsCiphers: str = setting("", "The same for REST.", _TLS)

    # key stores
    tlsEnabledWithKeyStore: bool = setting(False, "Whether key stores are used instead of PEM files.", _STORES)
    tlsKeyStore: str = setting(
        "",
        "File with the broker's certificate and key, in the format PKCS12: so are most files since Java 9, also those "
        "that it calls JKS. The older format is refused with the command that converts it.",
        _STORES,
    )
    tlsKeyStorePassword: str = setting("", "Password of that file.", _STORES, secret=True)
    tlsTrustStore: str = setting(
        "", "File with the authorities of client certificates; as `tlsTrustCertsFilePath`.", _STORES
    )
    tlsTrustStorePassword: str = setting("", "Password of that file.", _STORES, secret=True)
