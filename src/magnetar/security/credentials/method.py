"""What a connection asks of credentials, whatever their method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

METHOD_HEADER: Final = "X-Pulsar-Auth-Method-Name"
"""By this header the broker knows which provider is asked (rule 12.1)."""


class ClientCredentials(Protocol):
    """Credentials of one client. They are small, compare by what they name, and are pickled to workers."""

    @property
    def method(self) -> str | None:
        """The authentication method of CONNECT (rule 12.1); None: no authentication."""
        ...

    def data(self, stale: bytes | None = None) -> bytes | None:
        """Return the data for CONNECT or AUTH_RESPONSE as they are now; ``stale`` is what the broker had before and
        does not take any more. Raises CredentialsError, CredentialsDelayedError."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Return the headers of an HTTP request. Raises CredentialsError, CredentialsDelayedError."""
        ...

    @property
    def key_pair(self) -> CertificateFiles | None:
        """The certificate that TLS presents, if the method has one."""
        ...


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files of a certificate and its private key, PEM."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """The client of a broker that asks for no login, or that takes it for anonymous."""

    method: ClassVar[str | None] = None
    key_pair: ClassVar[CertificateFiles | None] = None

    def data(self, stale: bytes | None = None) -> bytes | None:
        return None

    def headers(self) -> Mapping[str, str]:
        return {}

    def __str__(self) -> str:
        return "no credentials"


NOBODY: Final = NoCredentials()
"""The default of everything that connects."""
