"""The method that gets its tokens from an issuer: OAuth 2.0 client credentials; to the broker it is ``token``.

All connections of a process share one token, until a tenth of its life is left or a broker says that it has expired.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from magnetar.runtime.clock import steady_seconds
from magnetar.security.credentials.exchange import Deadline
from magnetar.security.credentials.issuer import (
    PATIENCE,
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
        shared = _shared(self)
        # all that want the same token wait for the same request; other credentials have an issuer of their own
        with shared.lock:
            known = shared.issued
            if known is None or steady_seconds() >= shared.replaced_at or known.token.encode() == stale:
                known = self._issued()
                shared.issued, shared.replaced_at = known, steady_seconds() + known.seconds * _USED
            return known.token.encode()

    def headers(self) -> Mapping[str, str]:
        return bearer(self.data())

    def _issued(self) -> IssuedToken:
        key = read_key(self.key) if self.client_id is None else ClientKey(self.client_id, self.key.reveal())
        named = self.issuer_url or key.issuer_url
        if named is None:
            raise CredentialsError(f"no issuer is named, neither by issuerUrl nor by issuer_url in {self.key}")
        issuer = check_issuer_url(named, f"issuer_url of {self}")
        more = {"audience": self.audience, "scope": self.scope}
        deadline = Deadline(PATIENCE)
        endpoint = token_endpoint(issuer, self.trust, deadline, self.well_known)
        return request_token(endpoint, key, {name: text for name, text in more.items() if text}, self.trust, deadline)

    def __str__(self) -> str:
        return f"the token that {self.issuer_url or 'an issuer'} gives for {self.key}"


@dataclass(slots=True, eq=False)
class _Shared:
    """The token of all connections with the same credentials."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the token is asked for."""
    issued: IssuedToken | None = None
    replaced_at: float = 0.0


def _shared(credentials: OAuth2Credentials) -> _Shared:
    with _lock:
        found = _known.get(credentials)
        if found is None:
            while len(_known) >= _KEPT_MAX:
                del _known[next(iter(_known))]
            found = _known[credentials] = _Shared()
        return found


_lock: Final = threading.Lock()
"""Of the dictionary; it is never held while waiting."""
_known: Final[dict[OAuth2Credentials, _Shared]] = {}
