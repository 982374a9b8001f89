"""The method ``tls``: the certificate that TLS has presented already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from magnetar.security.credentials.method import METHOD_HEADER, KeyPair


@dataclass(frozen=True, slots=True)
class CertificateCredentials:
    """The files of a certificate and its key, which each process reads (rule 12.4)."""

    key_pair: KeyPair

    method: ClassVar[str | None] = "tls"

    def data(self, stale: bytes | None = None) -> bytes:
        return b""

    def headers(self) -> Mapping[str, str]:
        return {METHOD_HEADER: "tls"}

    def __str__(self) -> str:
        return f"the certificate in {self.key_pair.certificate}"
