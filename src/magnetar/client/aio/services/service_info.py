"""One cluster as applications name it, with the names of the official Python client."""

from __future__ import annotations

from typing import NamedTuple

from magnetar.client.address import ServiceUrl
from magnetar.client.aio.authentication import Authentication, credentials_from, tls_from
from magnetar.client.aio.connections.service import Service
from magnetar.client.errors import ArgumentError
from magnetar.client.login import ClientLogin
from magnetar.model.errors import InvalidValueError
from magnetar.security.asker_words import PYTHON_WORDS, TOOL_WORDS
from magnetar.security.credentials.method import NOBODY, ClientCredentials


class TlsChoices(NamedTuple):
    """What a client does about TLS with every cluster."""

    insecure: bool = False
    host_name: bool = True
    key: str | None = None
    certificate: str | None = None


class ServiceInfo:
    """The URL of a cluster, with the credentials and authorities that go with it."""

    def __init__(
        self,
        service_url: str,
        authentication: ClientLogin | Authentication | ClientCredentials | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        """``tls_trust_certs_file_path``: PEM file of authorities; None: the system's. Raises ArgumentError."""
        for name, given, kinds in (
            ("service_url", service_url, str),
            ("tls_trust_certs_file_path", tls_trust_certs_file_path, str | None),
        ):
            if not isinstance(given, kinds):
                raise ArgumentError(f"{name} is a text, and not {type(given).__name__}")
        self._url, self._authentication, self._trust = service_url, authentication, tls_trust_certs_file_path
        try:
            self._parsed = ServiceUrl.parse(service_url)
            self._credentials = NOBODY if authentication is None else credentials_from(authentication)
        except InvalidValueError as error:
            raise ArgumentError(str(error)) from error

    @property
    def service_url(self) -> str:
        """The URL as it was given."""
        return self._url

    @property
    def use_tls(self) -> bool:
        """Whether there is TLS: with pulsar+ssl and https."""
        return self._parsed.tls

    @property
    def tls_trust_certs_file_path(self) -> str | None:
        """The file of authorities; None: the system's."""
        return self._trust

    def moved_to(self, service_url: str) -> ServiceInfo:
        """Return the same with another URL. Raises ArgumentError."""
        return ServiceInfo(service_url, self._authentication, self._trust)

    def service(self, tls: TlsChoices) -> Service:
        """Return what connections are made with. Raises InvalidValueError."""
        files = tls_from(
            self._authentication, trust=self._trust, insecure=tls.insecure, host_name=tls.host_name, key=tls.key,
            certificate=tls.certificate,
        )  # fmt: skip
        words = TOOL_WORDS if isinstance(self._authentication, ClientLogin) else PYTHON_WORDS
        return Service(self._parsed, self._credentials, files, words)

    def __repr__(self) -> str:
        return (
            f"ServiceInfo(service_url={self._url!r}, use_tls={self.use_tls!r}, "
            f"tls_trust_certs_file_path={self._trust!r})"
        )
