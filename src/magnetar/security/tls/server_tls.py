"""What a port with TLS presents and demands: a context from settings and files, made again when a file has changed.

New connections get the context that is current when they come; those that are open keep theirs. A change that cannot be
loaded (a key that does not fit yet, half a file) leaves the old context in place, is reported once, and is tried again.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.security.exposed_files import warn_of_exposure
from magnetar.security.tls.certificate_files import (
    EXPIRED,
    NOT_YET_VALID,
    refuse_pipes,
    require_pem,
    untimely,
    why_not_loaded,
)
from magnetar.security.tls.cipher_suites import CipherSuites, cipher_suites, supported
from magnetar.security.tls.key_store import load_chain, load_trusted
from magnetar.security.tls.protocol_versions import ProtocolVersions, protocol_versions

log = logging.getLogger(__name__)

FIRST_CHOICE: Final = "TLS_AES_256_GCM_SHA384"
"""What OpenSSL agrees on with nearly all clients; the standard library cannot leave it out."""
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OPTIONS: Final = ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
_UNTIMELY: Final = {
    EXPIRED: "TLS: the certificate of %s has expired: clients that check it turn away; replace the file",
    NOT_YET_VALID: (
        "TLS: the certificate of %s is not valid yet: clients that check it turn away; if its time has begun, set this "
        "machine's clock"
    ),
}
_LEVEL: Final = "@SECLEVEL=2:"
"""As the standard library has it by default: no keys under 2048 bits, no SHA-1 in certificates."""

Loaded = TypeVar("Loaded")
Stamps = tuple[tuple[int, int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """Files of certificates and keys, and how they are loaded."""

    files: tuple[str, ...]
    secret_setting: str
    """The setting that names the one with the key."""
    secret_file: str
    load: Callable[[ssl.SSLContext], bytes]
    """Returns the certificates that are shown, in PEM."""
    load_trusted: Callable[[ssl.SSLContext], None] | None
    """``None``: no authorities of clients are given."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Which versions and suites one port offers."""

    versions: ProtocolVersions
    suites: CipherSuites | None

    @staticmethod
    def of(protocols: str, ciphers: str) -> Offer:
        """Reconcile both lists: a version without a suite is not offered. Raises InvalidValueError."""
        versions, suites = protocol_versions(protocols), cipher_suites(ciphers)
        if suites is None:
            return Offer(versions, None)
        suites = suites._replace(older=supported(suites.older, _known()))
        if versions.lowest == "TLSv1.2" and not suites.older:
            versions = versions._replace(lowest="TLSv1.3")
        if versions.highest == "TLSv1.3" and FIRST_CHOICE not in suites.latest:
            versions = versions._replace(highest="TLSv1.2")
        if versions.lowest > versions.highest:
            raise InvalidValueError(
                f"no suite of {ciphers!r} can be offered with {protocols or 'TLSv1.2 or TLSv1.3'}; suites of TLS 1.3 "
                f"only together with {FIRST_CHOICE}"
            )
        return Offer(versions, suites)

    def apply(self, context: ssl.SSLContext) -> None:
        """Set versions and suites."""
        context.minimum_version = _VERSIONS[self.versions.lowest]
        context.maximum_version = _VERSIONS[self.versions.highest]
        if self.suites is not None and self.suites.older:
            context.set_ciphers(_LEVEL + ":".join(self.suites.older))

    def allows(self, suite: str) -> bool:
        """Whether a connection that agreed on ``suite`` may go on."""
        return self.suites is None or not suite.startswith("TLS_") or suite in self.suites.latest


class ServerTls:
    """The present context of one port."""

    def __init__(self, material: Material, offer: Offer, *, required: bool, every_connection: bool = False) -> None:
        """``required``: clients must show a certificate. Raises InvalidValueError, which names the file."""
        self.offer = offer
        self.failures = 0
        """Changes of files that could not be loaded."""
        self._material = material
        self._required = required
        self._every_connection = every_connection
        self._loaded = self._seen = _stamps(material.files)
        self._context = self._make()

    @staticmethod
    def of(settings: Settings, protocols: str, ciphers: str) -> ServerTls:
        """The context that the settings describe. Raises InvalidValueError."""
        material = _from_key_stores(settings) if settings.tlsEnabledWithKeyStore else _from_files(settings)
        required = settings.tlsRequireTrustedClientCertOnConnect
        return ServerTls(
            material,
            Offer.of(protocols, ciphers),
            required=required,
            every_connection=settings.tlsCertRefreshCheckDurationSec == 0,
        )

    def context(self) -> ssl.SSLContext:
        """The context for a new connection."""
        if self._every_connection and _stamps(self._material.files) != self._seen:
            self.refresh()
        return self._context

    def refresh(self) -> None:
        """Look at the files and load what has changed; may be called from another thread."""
        stamps = _stamps(self._material.files)
        if stamps == self._loaded:
            return
        said, self._seen = self._seen == stamps, stamps
        try:
            self._context = self._make()
        except MagnetarError as error:
            if not said:
                self.failures += 1
                log.error("%s; new connections go on with what was loaded before", error)
        else:
            self._loaded = stamps
            log.info("certificates are loaded anew: %s", ", ".join(self._material.files))

    def _make(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= _OPTIONS
        context.num_tickets = 0
        self.offer.apply(context)
        material = self._material
        refuse_pipes(material.files)
        chain = material.load(context)
        warn_of_exposure(material.secret_file, material.secret_setting, log)
        if now := untimely(context, chain):
            log.warning(_UNTIMELY[now], material.files[0])
        load_authorities = material.load_trusted
        if load_authorities is not None:
            load_authorities(context)
            # as in Java, any certificate of the file is an anchor, not only one that signed itself
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
            context.verify_mode = ssl.CERT_REQUIRED if self._required else ssl.CERT_OPTIONAL
        elif self._required:
            raise InvalidValueError(
                "tlsRequireTrustedClientCertOnConnect: there is nothing to check certificates against: name the file "
                "of the authorities (tlsTrustCertsFilePath, or tlsTrustStore)"
            )
        return context


def _from_files(settings: Settings) -> Material:
    certificate, key = settings.tlsCertificateFilePath, settings.tlsKeyFilePath
    if not certificate or not key:
        missing = "tlsKeyFilePath" if certificate else "tlsCertificateFilePath"
        raise InvalidValueError(f"{missing}: a port with TLS needs a certificate and its key; name the file")
    trusted = settings.tlsTrustCertsFilePath

    def load(context: ssl.SSLContext) -> bytes:
        own, secret = "tlsCertificateFilePath", "tlsKeyFilePath"
        chain = _loading(own, certificate, lambda: require_pem(own, certificate, b"CERTIFICATE-----", "certificate"))
        _loading(secret, key, lambda: require_pem(secret, key, b"PRIVATE KEY-----", "private key"))
        both = f"{certificate}, {key}"
        _loading(f"{own}, {secret}", both, lambda: context.load_cert_chain(certificate, key, _no_password))
        return chain

    return Material(
        tuple(filter(None, (certificate, key, trusted))),
        "tlsKeyFilePath",
        key,
        load,
        (lambda context: _loading("tlsTrustCertsFilePath", trusted, lambda: context.load_verify_locations(trusted)))
        if trusted
        else None,
    )


def _from_key_stores(settings: Settings) -> Material:
    store, trusted = settings.tlsKeyStore, settings.tlsTrustStore
    if not store:
        raise InvalidValueError("tlsKeyStore: tlsEnabledWithKeyStore needs a key store; name the file")
    own, others = settings.tlsKeyStorePassword, settings.tlsTrustStorePassword
    return Material(
        tuple(filter(None, (store, trusted))),
        "tlsKeyStore",
        store,
        lambda context: _loading("tlsKeyStore", store, lambda: load_chain(context, store, own)),
        (lambda context: _loading("tlsTrustStore", trusted, lambda: load_trusted(context, trusted, others)))
        if trusted
        else None,
    )


def _loading(setting: str, file: str, load: Callable[[], Loaded]) -> Loaded:
    try:
        return load()
    except OSError as error:
        raise InvalidValueError(f"TLS: {setting}: {file}: {why_not_loaded(error)}") from None


def _no_password() -> str:
    # without this function OpenSSL would ask at the terminal
    raise InvalidValueError("TLS: the key is encrypted; tlsKeyFilePath must be readable without a password")


def _stamps(files: tuple[str, ...]) -> Stamps:
    return tuple(map(_stamp, files))


def _stamp(file: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _known() -> frozenset[str]:
    """Suites up to TLS 1.2 that this OpenSSL has."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:COMPLEMENTOFALL")
    return frozenset(suite["name"] for suite in context.get_ciphers())
