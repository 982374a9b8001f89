"""The method ``token``: a JSON Web Token that was made elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from magnetar.security.credentials.method import METHOD_HEADER, CertificateFiles
from magnetar.security.credentials.secret import CredentialsError, Secret

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class TokenCredentials:
    """A token, read again at each connection (rule 12.2)."""

    secret: Secret

    method: ClassVar[str | None] = "token"
    key_pair: ClassVar[CertificateFiles | None] = None

    def data(self, stale: bytes | None = None) -> bytes:
        return checked_token(self.secret.reveal(), str(self)).encode()

    def headers(self) -> Mapping[str, str]:
        return bearer(self.data())

    def __str__(self) -> str:
        return self.secret.described("token")


def bearer(data: bytes) -> Mapping[str, str]:
    """Return the headers of an HTTP request with a token (rule 12.2)."""
    return {"authorization": f"Bearer {data.decode()}", METHOD_HEADER: "token"}


def checked_token(text: str, source: str) -> str:
    """Return a token in which there is no character that no token has. CredentialsError names ``source``."""
    if not _TOKEN.fullmatch(text):
        raise CredentialsError(f"{source} is no token: there are blanks, line ends or letters in it that no token has")
    return text
