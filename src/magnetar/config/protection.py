"""Settings of Apache Pulsar that protect, or that clients rely on, and are not built: the start is refused unless they
are off.

Ignoring such a setting with a notice would open what the user closed, or have clients fail later and elsewhere. Each
is listed here with the values at which it does nothing and with what to do instead; the names are Pulsar's
(``pulsar_settings.tsv``). A setting that is built is a field of :class:`magnetar.config.settings.Settings`, and an
entry here no longer counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_TRUST: Final = "Leave it out, with bindAddress on a network you trust or a proxy that protects in front"
_SOUNDS_PROTECTIVE: Final = re.compile(
    r"tls|ssl|auth|sasl|token|password|secret|trust|encrypt|superUser|roles|acl[A-Z]|permission|forbid|restrict",
    re.IGNORECASE,
)
_NO_LIMIT: Final = "Leave it out; docs/settings.md lists the limits that exist"


@dataclass(frozen=True, slots=True)
class Protection:
    """One setting that protects and is not built."""

    off: tuple[str, ...]
    """Values at which it protects nothing, in small letters; so does the empty one."""
    instead: str
    from_value: float | None = None
    """Numbers from this one up (Pulsar's default, or what holds here anyway) add no restriction."""
    relied_on: bool = False
    """It protects nothing; but clients, proxies or scripts would rely on what it switches on."""

    def asks_for(self, value: str) -> bool:
        """Whether ``value`` asks for protection."""
        if value.lower() in ("", *self.off):
            return False
        if self.from_value is not None:
            try:
                return float(value) < self.from_value
            except ValueError:
                return True
        return True


def sounds_protective(name: str) -> bool:
    """Whether the name of a setting that is not known says that it could protect."""
    return _SOUNDS_PROTECTIVE.search(name) is not None


def _relied_on(*names: str, instead: str, off: tuple[str, ...] = ()) -> dict[str, Protection]:
    return dict.fromkeys(names, Protection(off, instead, relied_on=True))


def _flags(*names: str, instead: str = _TRUST) -> dict[str, Protection]:
    return dict.fromkeys(names, Protection(("false",), instead))


def _given(*names: str, instead: str = _TRUST, off: tuple[str, ...] = ()) -> dict[str, Protection]:
    return dict.fromkeys(names, Protection(off, instead))


def _limits(**defaults: float) -> dict[str, Protection]:
    """Limits that Pulsar has by default, too, or that are kept here anyway: a lower one asks for protection."""
    return {name: Protection((), _NO_LIMIT, default) for name, default in defaults.items()}


PROTECTIONS: Final[Mapping[str, Protection]] = {
    # authentication and authorization
    **_flags("clientLibraryVersionCheckEnabled", instead="Leave it out; clients of every version are served"),
    # encryption on the way
    **_given(
        "sslFactoryPlugin",
        instead="Leave it out; Java plugins cannot be run",
        off=("org.apache.pulsar.common.util.defaultpulsarsslfactory",),
    ),
    # limits of shared resources
    **_given("maxSameAddressConsumersPerTopic", instead=_NO_LIMIT, off=("0",)),
    **_given("managedLedgerMaxReadsInFlightSizeInMB", instead=_NO_LIMIT, off=("0",)),
    **_given("httpMaxRequestSize", instead="Leave it out; bodies of REST are bounded to 1 MiB", off=("-1", "0")),
    **_flags("httpRequestsLimitEnabled", instead=_NO_LIMIT),
    **_limits(
        httpMaxRequestHeaderSize=8192, maxConcurrentHttpRequests=1024,
        # a load ends before the next one begins, so that every limit is kept but 0, which would load none
        maxConcurrentTopicLoadRequest=1,
    ),
    # what others would rely on
    **_relied_on("haProxyProtocolEnabled", "webServiceHaProxyProtocolEnabled", off=("false",),
                 instead="Leave it out, and have the proxy in front send no PROXY header, which would be garbage here"),
    **_relied_on("webServiceTrustXForwardedFor", "webServiceLogDetailedAddresses", off=("false",),
                 instead="Leave it out; the address of a request is that of the connection, also in logs"),
    **_relied_on("bindAddresses", instead="Leave it out; bindAddress is the one for all ports"),
    **_relied_on("bootstrapNamespaces", instead="Leave it out; magnetar admin namespaces create"),
    # contents and their visibility
    "enablePersistentTopics": Protection(("true",), "Leave it out; persistent topics cannot be forbidden"),
    **_flags("strictTopicNameEnabled", instead="Leave it out; names are checked as Pulsar checks them without it"),
    **_given("entryFilterNames", instead="Leave it out; there are no entry filters, so everything would be delivered"),
    **_given("brokerInterceptors", "brokerEntryPayloadProcessors", instead="Leave it out; Java plugins cannot be run"),
}  # fmt: skip

NOT_NEEDED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("athenzDomainNames", "kinitCommand"),
            *("inflightSaslContextExpiryMs", "maxInflightSaslContext", "saslJaasClientAllowedIds"),
            *("saslJaasServerRoleTokenSignerSecretPath", "saslJaasServerSectionName"),
        ),
        "says how; authenticationEnabled says whether",
    ),
    **dict.fromkeys(("tlsProvider", "webServiceTlsProvider"), "names a library of Java; here it is OpenSSL always"),
    "sslFactoryPluginParams": "of a plugin that is refused",
    "tlsAllowInsecureConnection": "would open what stays closed: certificates that are shown are always checked",
    **dict.fromkeys(("tlsKeyStoreType", "tlsTrustStoreType"), "the bytes of the file say what it is"),
    **dict.fromkeys(
        (
            *("brokerClientAuthenticationParameters", "brokerClientTlsCiphers"),
            *("brokerClientCertificateFilePath", "brokerClientKeyFilePath", "brokerClientSslFactoryPlugin"),
            *("brokerClientSslFactoryPluginParams", "brokerClientSslProvider", "brokerClientTlsKeyStore"),
            *("brokerClientTlsKeyStorePassword", "brokerClientTlsKeyStoreType", "brokerClientTlsProtocols"),
            *("brokerClientTlsTrustStore", "brokerClientTlsTrustStorePassword", "brokerClientTlsTrustStoreType"),
            *("brokerClientTrustCertsFilePath", "brokerClientTlsEnabled", "brokerClientTlsEnabledWithKeyStore"),
            *("tlsHostnameVerificationEnabled", "replicationTlsEnabled"),
        ),
        "of connections to other brokers, which this one never makes",
    ),
    **dict.fromkeys(
        (
            *("bookkeeperClientAuthenticationParameters", "bookkeeperClientAuthenticationParametersName"),
            *("bookkeeperTLSKeyFilePath", "bookkeeperTLSKeyFileType", "bookkeeperTLSKeyStorePasswordPath"),
            *("bookkeeperTLSProviderFactoryClass", "bookkeeperTLSTrustCertTypes", "bookkeeperTLSTrustCertsFilePath"),
            *("bookkeeperTLSTrustStorePasswordPath", "bookkeeperTlsCertFilesRefreshDurationSeconds"),
            *("bookkeeperClientAuthenticationPlugin", "bookkeeperTLSCertificateFilePath", "managedLedgerPassword"),
            *("bookkeeperTLSClientAuthentication", "bookkeeper_tlsHostnameVerificationEnabled"),
        ),
        "of a BookKeeper cluster, which this broker does without",
    ),
    "disableHttpDebugMethods": "TRACE and TRACK are never answered",
    "httpRequestsMaxPerSecond": "says how many; httpRequestsLimitEnabled says whether",
    "httpRequestsFailOnUnknownPropertiesEnabled": "a stricter parser is no protection",
}
"""Settings that look like protection and need not be refused, with the reason; a test holds the lists complete."""
