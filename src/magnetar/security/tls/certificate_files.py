"""What is to be said of files of certificates: why they cannot be loaded, and that their time is over."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

EXPIRED: Final = 10
"""OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED."""
_FLIGHTS: Final = 3
"""How often each side speaks before a client has seen the certificate, at most."""
_SAID: Final = {
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate: name the key that it was issued for",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate in PEM form in this file",
    "NO_START_LINE": "there is no certificate or no key in PEM form in it",
    "EE_KEY_TOO_SMALL": "the key is too small: RSA keys need 2048 bits",
}
"""OpenSSL's reasons in words, with the next step."""


def why_not_loaded(error: OSError) -> str:
    """Why a context did not take a file."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or "not in PEM form"
    reason = error.reason or "not in PEM form"
    return f"{_SAID[reason]} ({reason})" if reason in _SAID else reason


def expired(context: ssl.SSLContext, chain: bytes) -> bool:
    """Whether the time of what ``context`` shows is over, as a client finds that trusts ``chain`` (PEM) itself.

    Both shake hands in memory: the standard library does not say it otherwise, and the library that does takes 8 MB.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        client.load_verify_locations(cadata=chain.decode("ascii", "ignore"))
        ours, theirs = context.wrap_bio(there, back, server_side=True), client.wrap_bio(back, there)
        for _ in range(_FLIGHTS):
            with suppress(ssl.SSLWantReadError):
                theirs.do_handshake()
            with suppress(ssl.SSLWantReadError):
                ours.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return error.verify_code == EXPIRED
    except ssl.SSLError:
        return False
    return False
