"""A body may take its time, in which its sender loses what the head of the request was allowed for."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from magnetar.admin.application import create_app
from magnetar.authorization.caller import Caller
from magnetar.config.settings import Settings
from magnetar.model.names import NamespaceName
from tests.admin.fake_broker import FakeBroker
from tests.support.granted import granted

SETTINGS: Final = Settings(authorizationEnabled=True, superUserRoles="root")
PATH: Final = "/admin/v2/namespaces/ref/main/permissions/mallory"


def owned_by(role: str) -> Any:
    return {"adminRoles": [role], "allowedClusters": ["standalone"]}


@pytest.mark.parametrize(("owner", "status"), [("new", 403), ("old", 204)])
@pytest.mark.parametrize("parts", [(b'["prod', b'uce"]'), (b'["produce"]',)])
def test_a_body_that_comes_late_is_asked_for_again(parts: tuple[bytes, ...], owner: str, status: int) -> None:
    """Otherwise a request that began before its sender lost everything could still grant it back."""
    resources, authorizer = granted(SETTINGS, {"ref": "old"}, {"ref/main": {"namespace_auth": {}}})
    app = create_app(FakeBroker(resources, SETTINGS).ports(), resources, SETTINGS, None, authorizer)
    sent: list[Any] = []
    left = list(parts)

    async def receive() -> Any:
        if len(left) == 1:
            await resources.tenants.update("ref", owned_by(owner))
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": PATH, "raw_path": PATH.encode(), "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8080"), (b"content-type", b"application/json")], "scheme": "http",
        "http_version": "1.1", "root_path": "", "asgi": {"version": "3.0"}, "server": ("127.0.0.1", 8080),
        "client": ("127.0.0.1", 1), "state": {"caller": Caller("old")},
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == status and not left
    policies: Any = resources.namespaces.policies(NamespaceName.parse("ref/main"))["auth_policies"]
    assert ("mallory" in policies["namespace_auth"]) is (status == 204)
