"""The method ``basic``: a user and a password."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from magnetar.security.credentials.method import METHOD_HEADER, CertificateFiles
from magnetar.security.credentials.secret import CredentialsError, Secret


@dataclass(frozen=True, slots=True)
class BasicCredentials:
    """A user and a password, read again at each connection (rule 12.3)."""

    user: str | None
    """None: the secret is ``user:password``."""
    secret: Secret
    method: str = "basic"
    """Clients can give the method another name."""

    key_pair: ClassVar[CertificateFiles | None] = None

    def data(self, stale: bytes | None = None) -> bytes:
        value = self.secret.reveal()
        if self.user is not None:
            return f"{self.user}:{value}".encode()
        if ":" not in value:
            raise CredentialsError(f"{self} is not user:password")
        return value.encode()

    def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Basic {base64.b64encode(self.data()).decode()}", METHOD_HEADER: self.method}

    def __str__(self) -> str:
        return self.secret.described("password") + ("" if self.user is None else f" of user {self.user}")
