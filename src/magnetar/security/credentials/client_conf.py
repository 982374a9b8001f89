"""Pulsar's ``client.conf``, as its own command lines read it; each process reads the file itself.

Secrets may stand in the file, which is a reference to them. The file that Pulsar ships turns the check of host names
off, which is no decision of the user, so the check stays on whatever it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from magnetar.config.properties import properties_text, read_properties
from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.method import CertificateFiles, ClientCredentials
from magnetar.security.credentials.plugin import credentials_of
from magnetar.security.credentials.secret import CredentialsError


@dataclass(frozen=True, slots=True)
class ClientConf:
    """The keys of one file that say where a broker is and how it is reached; texts may be secrets."""

    broker_url: str | None
    rest_url: str | None
    trust: str | None
    insecure: bool
    key_pair: CertificateFiles | None
    credentials: ClientCredentials


def read_client_conf(path: str) -> ClientConf:
    """Read a file. Raises InvalidValueError, which shows no value of it."""
    try:
        text = properties_text(Path(path))
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path} cannot be read on this machine: {getattr(error, 'strerror', error)}") from None
    found = {one.key: one.value.strip() for one in read_properties(text) if one.value.strip()}
    if found.get("useKeyStoreTls", "false").lower() == "true":
        raise InvalidValueError(
            f"{path}: useKeyStoreTls is true; write certificate, key and trusted certificates as PEM files"
        )
    certificate, key = found.get("tlsCertificateFilePath"), found.get("tlsKeyFilePath")
    return ClientConf(
        broker_url=found.get("brokerServiceUrl"),
        rest_url=found.get("webServiceUrl"),
        trust=found.get("tlsTrustCertsFilePath"),
        insecure=found.get("tlsAllowInsecureConnection", "false").lower() == "true",
        key_pair=None if certificate is None or key is None else CertificateFiles(certificate, key),
        credentials=credentials_of(
            found.get("authPlugin"), found.get("authParams"), f"authParams in {path}", inline=True
        ),
    )


@dataclass(frozen=True, slots=True)
class ConfiguredCredentials:
    """The credentials of a ``client.conf``, read again at each connection."""

    path: str

    @property
    def method(self) -> str | None:
        return self._now().method

    @property
    def key_pair(self) -> CertificateFiles | None:
        return self._now().key_pair

    def data(self, stale: bytes | None = None) -> bytes | None:
        return self._now().data(stale)

    def headers(self) -> Mapping[str, str]:
        return self._now().headers()

    def _now(self) -> ClientCredentials:
        try:
            return read_client_conf(self.path).credentials
        except InvalidValueError as error:
            raise CredentialsError(str(error)) from None

    def __str__(self) -> str:
        return f"the credentials from {self.path}"
