"""What is to be said of files of certificates: why they cannot be loaded, and that now is not their time."""

from __future__ import annotations

import errno
import os
import ssl
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from magnetar.model.errors import InvalidValueError

EXPIRED: Final = 10
"""OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED."""
NOT_YET_VALID: Final = 9
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID: as often a clock that is wrong as a certificate that is new."""
_FLIGHTS: Final = 3
"""How often each side speaks before a client has seen the certificate, at most."""
_SAID: Final = {
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate: name the key that it was issued for",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate in PEM form in this file",
    "NO_START_LINE": "there is no certificate or no key in PEM form in it",
    "EE_KEY_TOO_SMALL": "the key is too small: RSA keys need 2048 bits",
}
"""OpenSSL's reasons in words, with the next step."""
_STEPS: Final = {
    errno.ENOENT: "name a file that is there, by its whole path",
    errno.EISDIR: "name the file in it",
    errno.EACCES: "let the broker's user read it",
}


def refuse_pipes(files: Iterable[str]) -> None:
    """Raise InvalidValueError for a pipe: loading it would wait for its writer, and no signal could end that start."""
    for file in files:
        with suppress(OSError):  # what is wrong with it, loading it says
            if stat.S_ISFIFO(os.stat(file).st_mode):
                raise InvalidValueError(f"TLS: {file} is a pipe; name a file, which can be read again when it changes")


def require_pem(setting: str, file: str, label: bytes, what: str) -> bytes:
    """Return what a PEM file holds. Raises InvalidValueError if there is no block ``label`` in it, and OSError: OpenSSL
    is given certificate and key together, and does not say which of both it means."""
    found = Path(file).read_bytes()
    if label not in found:
        raise InvalidValueError(f"TLS: {setting}: {file}: there is no {what} in PEM form in this file")
    return found


def why_not_loaded(error: OSError) -> str:
    """Why a context did not take a file, and the next step."""
    if not isinstance(error, ssl.SSLError):
        said = error.strerror or "not in PEM form"
        return f"{said}; {_STEPS[error.errno]}" if error.errno in _STEPS else said
    reason = error.reason or "not in PEM form"
    return f"{_SAID[reason]} ({reason})" if reason in _SAID else reason


def untimely(context: ssl.SSLContext, chain: bytes) -> int:
    """EXPIRED or NOT_YET_VALID, if a client finds that of what ``context`` shows when it trusts ``chain`` (PEM) itself;
    else 0.

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
        return error.verify_code if error.verify_code in (EXPIRED, NOT_YET_VALID) else 0
    except ssl.SSLError:
        return 0
    return 0
