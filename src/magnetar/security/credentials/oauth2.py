"""The method that gets its tokens from an issuer: OAuth 2.0 client credentials; to the broker it is ``token``.

All connections of a process share one token, until a tenth of its life is left or a broker says that it has expired.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from magnetar.runtime.clock import steady_seconds
from magnetar.security.credentials.issuer import (
    WELL_KNOWN,
    IssuedToken,
    check_issuer_url,
    request_token,
    token_endpoint,
)
from magnetar.security.credentials.key_file import ClientKey, read_key
from magnetar.security.credentials.method import CertificateFiles
from magnetar.security.credentials.secret import CredentialsError, Secret
from magnetar.security.credentials.token import bearer

_USED: Final = 0.9
"""A token is asked for again when that part of its life is over."""
_KEPT_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class OAuth2Credentials:
    """A client of an issuer. Its key is read, and its token asked for, in the process that connects."""

    issuer_url: str | None
    """None: the key file names it."""
    key: Secret
    """The key file, or with ``client_id`` the client's secret alone."""
    client_id: str | None = None
    audience: str | None = None
    scope: str | None = None
    trust: str | None = None
    """A file of certificates that are trusted for the issuer; None: the machine's."""
    well_known: str = WELL_KNOWN

    method: ClassVar[str | None] = "token"
    key_pair: ClassVar[CertificateFiles | None] = None

    def data(self, stale: bytes | None = None) -> bytes:
        with _lock:
            known = _known.get(self)
            if known is None or steady_seconds() >= known[0] or known[1].token.encode() == stale:
                issued = self._issued()
                while len(_known) >= _KEPT_MAX:
                    del _known[next(iter(_known))]
                known = _known[self] = steady_seconds() + issued.seconds * _USED, issued
            return known[1].token.encode()

    def headers(self) -> Mapping[str, str]:
        return bearer(self.data())

    def _issued(self) -> IssuedToken:
        key = read_key(self.key) if self.client_id is None else ClientKey(self.client_id, self.key.reveal())
        named = self.issuer_url or key.issuer_url
        if named is None:
            raise CredentialsError(f"no issuer is named, neither by issuerUrl nor by issuer_url in {self.key}")
        issuer = check_issuer_url(named, f"issuer_url of {self}")
        more = {"audience": self.audience, "scope": self.scope}
        endpoint = token_endpoint(issuer, self.trust, self.well_known)
        return request_token(endpoint, key, {name: text for name, text in more.items() if text}, self.trust)

    def __str__(self) -> str:
        return f"the token that {self.issuer_url or 'an issuer'} gives for {self.key}"


_lock: Final = threading.Lock()
_known: Final[dict[OAuth2Credentials, tuple[float, IssuedToken]]] = {}
"""The time at which a token is replaced, and the token."""
