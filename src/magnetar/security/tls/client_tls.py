"""What a client of ours checks of a broker, and what it shows of itself, before it sends anything.

The values are plain, so that a Spark driver can send them to its workers; files are read where the connection is made.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from magnetar.model.errors import InvalidValueError
from magnetar.security.asker_words import TOOL_WORDS, AskerWords
from magnetar.security.exposed_files import warn_of_exposure
from magnetar.security.tls.certificate_files import EXPIRED, NOT_YET_VALID, refuse_pipes, why_not_loaded

log = logging.getLogger(__name__)

_CONTEXTS: Final = 16
_HOST_NAME: Final = 62
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH."""
_ADDRESS: Final = 64
"""X509_V_ERR_IP_ADDRESS_MISMATCH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """Files and checks of one client; the default trusts the system's authorities and checks the host's name."""

    trust_file: str = ""
    """Certificates of the authorities that are trusted, PEM; empty: those of the system."""
    certificate_file: str = ""
    """The client's own certificate with the chain to its authority, PEM; empty: it shows none."""
    key_file: str = ""
    """The key of that certificate, PEM; empty: it stands in ``certificate_file``."""
    verify_host_name: bool = True
    """Whether the certificate must be for the host that was asked for."""
    allow_insecure: bool = False
    """Whether any certificate will do; for experiments only, since a program in between can read everything."""

    def context(self) -> ssl.SSLContext:
        """The context, made again when a file has changed. Raises InvalidValueError naming the file."""
        files = (self.trust_file, self.certificate_file, self.key_file)
        return _context(self, tuple(_stamp(file) for file in files if file))

    def wrap(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        """Do the handshake with ``host``, by the socket's time-out. Raises InvalidValueError, OSError."""
        return self.context().wrap_socket(plain, server_hostname=host)


def reason(error: BaseException, where: str, words: AskerWords = TOOL_WORDS) -> str | None:
    """Why TLS with ``where`` came to nothing and what to do about it; ``None``: it is no error of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error, where, words)
    if isinstance(error, ssl.SSLEOFError):
        return ended(where)
    if not isinstance(error, ssl.SSLError):
        return None
    said = str(error.reason or error)
    if said in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return f"{where} does not speak TLS; ask its TLS port, or write the address without TLS"
    if "CERTIFICATE_REQUIRED" in said:
        return f"{where} demands a certificate of this client; give {words.certificate}"
    if said.endswith("ALERT_HANDSHAKE_FAILURE"):
        return (
            f"{where} refuses the handshake ({said}): it may demand a certificate of this client (give "
            f"{words.certificate}), or other protocols"
        )
    if "UNKNOWN_CA" in said:
        return (
            f"{where} does not trust the certificate that this client shows ({said}): show one of an authority that "
            "the broker trusts, or add its authority to the broker's tlsTrustCertsFilePath"
        )
    if "CERTIFICATE" in said:
        return f"{where} does not accept the certificate that this client shows ({said})"
    return f"TLS with {where} failed: {said}"


def is_ended(error: BaseException) -> bool:
    """Whether a port ended the handshake without a word, as one without TLS does, or a broker that stops just then."""
    lost = ConnectionResetError | ConnectionAbortedError | BrokenPipeError
    return isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError | lost)


def ended(where: str) -> str:
    """What to say of a port that ends the handshake without a word."""
    return (
        f"{where} ended the TLS handshake: no TLS there? Write pulsar:// (or http://), or its TLS port; it may also "
        "demand a certificate of this client"
    )


def ended_early(where: str, words: AskerWords = TOOL_WORDS) -> str:
    """What to say of a broker that ends the connection between the handshake and its first answer."""
    return (
        f"{where} ended the TLS connection before it answered; it may demand a certificate of this client: give "
        f"{words.certificate}"
    )


def _unverified(error: ssl.SSLCertVerificationError, where: str, words: AskerWords) -> str:
    if error.verify_code in (_HOST_NAME, _ADDRESS):
        return f"the certificate of {where} is for another host: {error.verify_message}"
    if error.verify_code == EXPIRED:
        return f"the certificate of {where} has expired"
    if error.verify_code == NOT_YET_VALID:
        return f"the certificate of {where} is not valid yet; is this machine's clock right?"
    return (
        f"the certificate of {where} is not trusted: {error.verify_message}; name the file with its authority "
        f"({words.trust})"
    )


def _stamp(file: str) -> tuple[int, int, int]:
    try:
        found = os.stat(file)
    except OSError as error:
        raise InvalidValueError(f"TLS: {file}: {why_not_loaded(error)}") from None
    refuse_pipes([file])
    return found.st_mtime_ns, found.st_size, found.st_ino


@lru_cache(_CONTEXTS)
def _context(tls: ClientTls, _stamps: tuple[tuple[int, int, int], ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.verify_host_name and not tls.allow_insecure
    if tls.allow_insecure:
        context.verify_mode = ssl.CERT_NONE
    elif tls.trust_file:
        _load(tls.trust_file, lambda: context.load_verify_locations(tls.trust_file))
    else:
        context.load_default_certs()
    if tls.certificate_file:
        key = tls.key_file or tls.certificate_file
        named = tls.certificate_file if key == tls.certificate_file else f"{tls.certificate_file} with the key {key}"
        _load(named, lambda: context.load_cert_chain(tls.certificate_file, key, _no_password))
        warn_of_exposure(key, "the key for TLS", log)
    elif tls.key_file:
        raise InvalidValueError(f"TLS: the key {tls.key_file} is of no use without its certificate")
    return context


def _load(named: str, load: Callable[[], None]) -> None:
    try:
        load()
    except OSError as error:
        raise InvalidValueError(f"TLS: {named}: {why_not_loaded(error)}") from None


def _no_password() -> str:
    # without this function OpenSSL would ask at the terminal
    raise InvalidValueError("TLS: the key is encrypted; keys must be readable without a password")
