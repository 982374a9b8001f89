"""Authentication of REST: who comes in, under which role, and what the others hear."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from magnetar.admin.application import create_app
from magnetar.admin.http.authentication import AuthenticationCheck
from magnetar.authorization.access import Access, ClusterAccess
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.grants import Grants
from magnetar.config.settings import Settings
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.configured_providers import authentication_service
from magnetar.security.authentication.service import AuthenticationService
from tests.admin.conftest import world
from tests.admin.rest_client import RestClient
from tests.support.signed_tokens import AUDIENCE, SECRET, Forged, forged, inline, signed

TOKEN_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"


def service(**settings: Any) -> AuthenticationService:
    given = {"authenticationEnabled": True, "authenticationProviders": TOKEN_PROVIDER, "tokenSecretKey": inline(SECRET)}
    found = authentication_service(Settings(**{**given, **settings}), SystemClock())
    assert found is not None
    return found


async def _said_who(scope: Scope, receive: Receive, send: Send) -> None:
    caller = scope.get("state", {}).get("caller")
    shown = None if caller is None else [caller.role, caller.original_role, caller.method]
    await JSONResponse(shown)(scope, receive, send)


def asked(app: ASGIApp, headers: dict[str, str] | list[tuple[str, str]], path: str = "/x") -> httpx.Response:
    found: httpx.Response = RestClient(app).get(path, headers=headers)
    return found


def checked(*, open_metrics: bool = True, **settings: Any) -> ASGIApp:
    return AuthenticationCheck(_said_who, service(**settings), open_metrics=open_metrics)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_bearer_token() -> None:
    """The role is the token's subject (rule 12.2)."""
    token = signed({"sub": "alice"})
    app = checked()
    for headers in (
        bearer(token),
        {"authorization": f"bearer   {token}"},
        {**bearer(token), "x-pulsar-auth-method-name": "token"},
    ):
        assert asked(app, headers).json() == ["alice", None, "token"]
    assert asked(app, {**bearer(token), "x-original-principal": "alice"}).json() == ["alice", "alice", "token"]


STRICT = checked(tokenAudienceClaim="aud", tokenAudience=AUDIENCE, anonymousUserRole="nobody")


@pytest.mark.parametrize("one", list(forged(time.time())), ids=lambda one: one.name)
def test_forged_tokens_are_refused(one: Forged) -> None:
    """A bad token is refused; it does not make its bearer anonymous."""
    raw = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer " + one.token.encode("latin-1", "replace"))]
    for named in ([], [(b"x-pulsar-auth-method-name", b"token")]):
        found = asyncio.run(_raw(STRICT, [*raw, *named]))
        assert found == (401, {"reason": "Authentication required"})


async def _raw(app: ASGIApp, headers: list[tuple[bytes, bytes]]) -> tuple[int, Any]:
    """Ask with bytes that no client would send."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/x", "headers": headers, "client": ("10.0.0.1", 5), "state": {}}
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_requests_without_credentials() -> None:
    anonymous = checked(anonymousUserRole="nobody")
    assert asked(anonymous, {}).json() == ["nobody", None, "anonymous"]
    for app, headers in (
        (checked(), {}),
        (anonymous, {"authorization": ""}),
        (anonymous, {"authorization": "Digest x"}),
        (anonymous, {"authorization": f"Bearer\t{signed({'sub': 'alice'})}"}),
        (anonymous, {"authorization": "Basic " + base64.b64encode(b"a:b").decode()}),
    ):
        found = asked(app, headers)
        assert (found.status_code, found.json()) == (401, {"reason": "Authentication required"})
        assert found.headers["www-authenticate"] == "Bearer"
    assert asked(anonymous, {"x-pulsar-auth-method-name": "athenz"}).status_code == 401
    assert asked(anonymous, {"x-pulsar-auth-method-name": "token"}).status_code == 401
    good = ("authorization", f"Bearer {signed({'sub': 'alice'})}")
    assert asked(anonymous, [good, good]).status_code == 401


def test_original_principals() -> None:
    """Only a proxy speaks for others (rule 12.13)."""
    app = checked(proxyRoles="proxy")
    proxy, alice = bearer(signed({"sub": "proxy"})), bearer(signed({"sub": "alice"}))
    assert asked(app, {**proxy, "x-original-principal": "alice"}).json() == ["proxy", "alice", "token"]
    for headers in (
        proxy,
        {**proxy, "x-original-principal": "proxy"},
        {**proxy, "x-original-principal": " "},
        {**proxy, "x-original-principal": "a" * 1025},
        {**proxy, "x-original-principal": "a\tb"},
        {**alice, "x-original-principal": "bob"},
        {**alice, "x-original-principal": "proxy"},
    ):
        assert asked(app, headers).status_code == 401


def test_a_revoked_original_principal_is_refused(tmp_path: Path) -> None:
    """Its credentials are not seen, so its name is looked up."""
    revoked = tmp_path / "revoked"
    revoked.write_text("sub alice\n")
    app = checked(proxyRoles="proxy", tokenRevocationListFile=str(revoked))
    proxy = bearer(signed({"sub": "proxy"}))
    assert asked(app, {**proxy, "x-original-principal": "bob"}).status_code == 200
    assert asked(app, {**proxy, "x-original-principal": "alice"}).status_code == 401


def test_refused_logins_are_recorded() -> None:
    """The audit log hears of them as of those on the wire, and never of credentials."""
    found = world(Settings(authorizationEnabled=True))
    authorizer = Authorizer(Grants(found.resources.tenants, found.resources.namespaces, Settings()))
    records: list[tuple[Caller, Access, Decision, str]] = []
    authorizer.audit = lambda *record: records.append(record)
    app = create_app(found.broker.ports(), found.resources, Settings(), service(), authorizer)
    forged = signed({"sub": "admin"})[:-4]
    for path, headers in (("/docs?token=x", {}), ("/admin/v2/tenants", bearer(forged)), ("/metrics", {})):
        asked(app, headers, path)
    assert authorizer.refusals == len(records) == 2
    assert [request for *_, request in records] == ["GET /docs", "GET /admin/v2/tenants"]
    for caller, access, decision, _ in records:
        assert (caller.role, caller.original_role, access) == (None, None, ClusterAccess("connect"))
        assert caller.address.startswith("/127.0.0.1:")
        assert decision.reason.startswith("login refused: ")
        assert not decision.allowed
        assert forged not in decision.reason


def test_what_is_open() -> None:
    """/metrics needs no credentials unless authenticateMetricsEndpoint, /status.html none; everything else does."""
    found = world(Settings())
    app = create_app(found.broker.ports(), found.resources, Settings(), service())
    assert asked(app, {}, "/metrics").status_code == 200
    assert asked(app, {}, "/status.html").status_code == 404  # there is no file: it was answered
    for path in (
        "/docs",
        "/openapi.json",
        "/admin/v2/clusters",
        "/nothing",
        "/%6detrics",
        "/metrics/../admin/v2/tenants",
    ):
        assert asked(app, {}, path).status_code == 401, path
    assert asked(app, bearer(signed({"sub": "alice"})), "/admin/v2/clusters").status_code == 200
    closed = create_app(found.broker.ports(), found.resources, Settings(authenticateMetricsEndpoint=True), service())
    assert asked(closed, {}, "/metrics").status_code == 401
    assert asked(closed, bearer(signed({"sub": "alice"})), "/metrics").status_code == 200
