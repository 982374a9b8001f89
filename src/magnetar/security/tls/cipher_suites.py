"""Cipher suites by Java's names (those of the IANA registry) and by OpenSSL's.

``TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`` is ``ECDHE-RSA-AES128-GCM-SHA256`` of OpenSSL; suites of TLS 1.3 have one
name. The names are built from their parts, so no table has to be kept; whether OpenSSL has a suite, it says itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from magnetar.config.properties import words
from magnetar.model.errors import InvalidValueError

TLS_1_3: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
_JAVA: Final = re.compile(r"(?:TLS|SSL)_(?P<exchange>[A-Z_]+?)_WITH_(?P<cipher>[A-Z0-9_]+?)(?:_(?P<hash>SHA\d*))?")
_OPENSSL: Final = re.compile(r"[A-Z0-9]+(?:-[A-Z0-9]+)+")
_EXCHANGES: Final = {"RSA": "", "ECDHE_RSA": "ECDHE-RSA-", "ECDHE_ECDSA": "ECDHE-ECDSA-", "DHE_RSA": "DHE-RSA-"}
_WEAK: Final = re.compile(
    r"EMPTY_RENEGOTIATION|FALLBACK_SCSV|NULL|ANON|EXPORT|RC4|RC2|DES|MD5|ADH|AECDH|EXP-|SEED|IDEA|PSK|KRB5|^ECDH_|^ECDH-|^DH_|DSS"
)
_SIZED: Final = re.compile(r"(AES|CAMELLIA|ARIA)_(128|256)")


class CipherSuites(NamedTuple):
    """What a list of ciphers allows."""

    older: tuple[str, ...]
    """OpenSSL's names of suites up to TLS 1.2, in order of preference; ``()``: none."""
    latest: tuple[str, ...]
    """Suites of TLS 1.3."""
    ignored: tuple[str, ...]
    """Names as they were written that are not offered, because they protect nothing any more, or mean no suite."""


def cipher_suites(named: str) -> CipherSuites | None:
    """Read a list of names; ``None`` for an empty one: OpenSSL's own choice.

    Raises InvalidValueError for what cannot be the name of a suite, and if nothing is left.
    """
    names = words(named)
    if not names:
        return None
    older: dict[str, None] = {}
    latest: dict[str, None] = {}
    ignored = []
    for name in names:
        if name in TLS_1_3:
            latest[name] = None
        elif _WEAK.search(name.upper().removeprefix("TLS_").removeprefix("SSL_")):
            ignored.append(name)
        else:
            older[openssl_name(name)] = None
    if not older and not latest:
        raise InvalidValueError(f"{', '.join(names)} would be all that is offered, and it protects nothing any more")
    return CipherSuites(tuple(older), tuple(latest), tuple(ignored))


def openssl_name(name: str) -> str:
    """OpenSSL's name of a suite up to TLS 1.2. Raises InvalidValueError."""
    if _OPENSSL.fullmatch(name):
        return name
    found = _JAVA.fullmatch(name)
    exchange = None if found is None else _EXCHANGES.get(found["exchange"])
    if found is None or exchange is None:
        raise InvalidValueError(
            f"{name!r} is no cipher suite that is known here; write for instance TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
        )
    cipher = _SIZED.sub(r"\1\2", found["cipher"])
    if cipher.startswith("CHACHA20_POLY1305"):
        return f"{exchange}CHACHA20-POLY1305"
    if cipher.startswith("ARIA"):
        exchange = exchange.replace("ECDHE-RSA-", "ECDHE-")  # so named by OpenSSL
    cipher = cipher.removesuffix("_CBC").replace("CCM_8", "CCM8").replace("_", "-")
    return f"{exchange}{cipher}-{found['hash']}" if found["hash"] else exchange + cipher


def supported(suites: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Those of ``suites`` that this OpenSSL has, in their order."""
    return tuple(suite for suite in suites if suite in known)
