"""What the first bytes of a connection show, TLS or plain text at the wrong port; and why a handshake failed.

All texts are for the log: they say what the client does and what it should do, and nothing of them reaches the client.
"""

from __future__ import annotations

import ssl
from typing import Final

_HANDSHAKE: Final = 0x16
_VERSION: Final = 0x03
_METHODS: Final = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"PATC", b"PRI ")
_CLIENT_DISTRUSTS: Final = ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED")
_NOTHING_IN_COMMON: Final = (
    "UNSUPPORTED_PROTOCOL", "NO_SHARED_CIPHER", "VERSION_TOO_LOW", "VERSION_TOO_HIGH", "NO_PROTOCOLS_AVAILABLE",
    "NO_SUITABLE_SIGNATURE_ALGORITHM", "NO_SUITABLE_KEY_SHARE", "NO_SHARED_SIGNATURE_ALGORITHMS",
)  # fmt: skip


def is_tls(data: bytes) -> bool:
    """Whether a connection that begins like this speaks TLS; one byte is enough to say no."""
    return data[:1] == b"\x16" and (len(data) < 2 or data[1] == _VERSION)


def plain_text(data: bytes) -> str:
    """What a connection that does not speak TLS speaks instead."""
    if data[:4] in _METHODS:
        return "HTTP without TLS"
    if len(data) > 3 and data[0] == 0 and data[1] == 0:
        return "Pulsar's protocol without TLS"
    return "something that is no TLS"


def failure(error: ssl.SSLError) -> str:
    """Why a handshake came to nothing, from the server's side."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    said = error.reason or str(error)
    if said == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it shows no certificate, and tlsRequireTrustedClientCertOnConnect demands one"
    if "ALERT" in said and any(word in said for word in _CLIENT_DISTRUSTS):
        return f"it does not trust this broker's certificate ({said})"
    if said in _NOTHING_IN_COMMON or said.endswith("ALERT_PROTOCOL_VERSION"):
        return f"it offers no protocol or cipher that this port accepts ({said})"
    return f"it breaks the TLS handshake ({said})"
