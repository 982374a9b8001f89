"""The method ``tls``: the certificate that TLS has presented already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from magnetar.security.credentials.method import METHOD_HEADER, CertificateFiles, ClientCredentials

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls


@dataclass(frozen=True, slots=True)
class CertificateCredentials:
    """The files of a certificate and its key, which each process reads (rule 12.4)."""

    key_pair: CertificateFiles

    method: ClassVar[str | None] = "tls"

    def data(self, stale: bytes | None = None) -> bytes:
        return b""

    def headers(self) -> Mapping[str, str]:
        return {METHOD_HEADER: "tls"}

    def __str__(self) -> str:
        return f"the certificate in {self.key_pair.certificate}"


def presenting(tls: ClientTls, credentials: ClientCredentials) -> ClientTls:
    """Return TLS with the certificate of the credentials, if they have one and TLS was given none of its own."""
    pair = credentials.key_pair
    if pair is None or tls.certificate_file:
        return tls
    return replace(tls, certificate_file=pair.certificate, key_file=pair.key)
