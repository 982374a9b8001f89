"""Authentication of REST: who asks stands in ``scope["state"]["caller"]``, or the answer is 401 (rule 12.1).

Credentials are a bearer token, a name with a password, or the client's certificate; ``X-Pulsar-Auth-Method-Name`` says
which of them is meant. Without that header those that are there are tried in the order of ``authenticationProviders``.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Iterator
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from magnetar.admin.http.authorization import request_of
from magnetar.admin.http.bodies import JsonAnswer
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.model.errors import AuthenticationError
from magnetar.runtime.log import RateLimitedLog
from magnetar.security.authentication.original_principal import refusal
from magnetar.security.authentication.provider import Credentials
from magnetar.security.authentication.service import AuthenticationService
from magnetar.security.identity import Identity

_limited = RateLimitedLog(logging.getLogger(__name__))

CERTIFICATE: Final = "client_certificate"
"""Where a connection puts the client's certificate into the state of its requests."""
REQUIRED: Final = "Authentication required"
_METRICS: Final = frozenset(("/metrics", "/metrics/"))
_STATUS: Final = frozenset(("/status.html", "/status.html/"))
"""For load balancers, which have no credentials; it says one bit, which the operator decides."""
_METHOD: Final = b"x-pulsar-auth-method-name"
_PRINCIPAL: Final = b"x-original-principal"
_SCHEMES: Final = {"bearer": "token", "basic": "basic"}
_CHALLENGES: Final = {"token": "Bearer", "basic": 'Basic realm="magnetar"'}


class AuthenticationCheck:
    """ASGI middleware: requests of peers that are not who they say end here."""

    def __init__(
        self, app: ASGIApp, service: AuthenticationService, authorizer: Authorizer | None = None, *, open_metrics: bool
    ) -> None:
        """``authorizer``: who takes note of refused logins, as it does of those on the wire."""
        self._app = app
        self._service = service
        self._authorizer = authorizer
        self._open = _STATUS | _METRICS if open_metrics else _STATUS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._open:
            await self._app(scope, receive, send)
            return
        address = _address(scope)
        try:
            caller, identity = await self._caller(scope, address)
        except AuthenticationError as error:
            _limited.warning(address.rpartition(":")[0], "%s: request refused: %s", address, error)
            if self._authorizer is not None:
                unknown = Caller(None, address=address)
                self._authorizer.record_refused_login(unknown, f"login refused: {error}", request_of(scope))
            headers = {"www-authenticate": ", ".join(_CHALLENGES[m] for m in self._service.methods if m in _CHALLENGES)}
            answer = JsonAnswer({"reason": REQUIRED}, 401, headers if headers["www-authenticate"] else None)
            await answer(scope, receive, send)
            return
        scope.setdefault("state", {}).update(caller=caller, identity=identity)
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope, address: str) -> tuple[Caller, Identity]:
        """Who asks, and by which credentials. Raises AuthenticationError."""
        headers = _headers(scope)
        identity = await self._identify(headers, _certificate(scope), address)
        original = headers.get(_PRINCIPAL)
        why = refusal(identity.role, original, self._service.proxy_roles, may_be_same=True)
        if why is not None:
            raise AuthenticationError(why)
        if self._service.revoked_original(original):
            raise AuthenticationError(f"the credentials of {original}, for whom {identity.role} speaks, were revoked")
        return Caller(identity.role, original, address, identity.method, identity.other_roles), identity

    async def _identify(self, headers: dict[bytes, str], certificate: bytes | None, address: str) -> Identity:
        shown = dict(_shown(headers.get(b"authorization"), certificate, address))
        wanted = headers.get(_METHOD)
        if wanted is not None:
            if wanted not in self._service.methods:
                raise AuthenticationError("no provider knows the method of X-Pulsar-Auth-Method-Name")
            return await self._service.authenticate(wanted, shown.get(wanted) or Credentials(address=address))
        refused: AuthenticationError | None = None
        for method in self._service.methods:
            if method in shown:
                try:
                    return await self._service.authenticate(method, shown[method])
                except AuthenticationError as error:
                    refused = error
        if refused is not None:
            raise refused
        if b"authorization" in headers:
            raise AuthenticationError("the header Authorization has credentials that no provider knows")
        return await self._service.authenticate(None, Credentials(address=address))


def _shown(authorization: str | None, certificate: bytes | None, address: str) -> Iterator[tuple[str, Credentials]]:
    """The credentials of a request by their methods."""
    if authorization is not None:
        scheme, _, text = authorization.partition(" ")
        method = _SCHEMES.get(scheme.lower())
        data = text.strip().encode("latin-1", "replace")
        if method == "basic":
            try:
                data = base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                data = b""
        if method is not None:
            yield method, Credentials(data, None, address)
    if certificate is not None:
        yield "tls", Credentials(b"", certificate, address)


def _headers(scope: Scope) -> dict[bytes, str]:
    """Those of interest. Raises AuthenticationError if one comes twice."""
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in (b"authorization", _METHOD, _PRINCIPAL):
            if name in found:
                raise AuthenticationError(f"more than one header {name.decode()}")
            found[name] = value.decode("latin-1")
    return found


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return f"/{client[0]}:{client[1]}" if client else ""


def _certificate(scope: Scope) -> bytes | None:
    """The client's certificate, which the connection puts into the scope."""
    found = scope.get("state", {}).get(CERTIFICATE)
    return found if isinstance(found, bytes) else None
