"""The lines that remedies consist of, as the requests that ``pulsar-admin`` would make of them."""

from __future__ import annotations

import json
import shlex
from typing import Any, NamedTuple
from urllib.parse import quote

from magnetar.model.names import TopicName


class AdminRequest(NamedTuple):
    """One request of the REST interface."""

    method: str
    path: str
    body: Any


def requests_of(line: str, tenant_info: dict[str, Any]) -> list[AdminRequest]:
    """What the commands of a line ask for; ``tenant_info`` is what an update of a tenant keeps."""
    return [_request(shlex.split(command), tenant_info) for command in line.split(" && ")]


def _request(words: list[str], tenant_info: dict[str, Any]) -> AdminRequest:
    if words[0] == "curl":
        _, _, method, _, _, _, body, url = words
        assert url.startswith("$ADMIN_URL/")
        return AdminRequest(method, url.removeprefix("$ADMIN_URL"), json.loads(body))
    program, resource, verb, name, *rest = words
    assert program == "pulsar-admin"
    options = dict(zip(rest[::2], rest[1::2], strict=True))
    namespaces = f"/admin/v2/namespaces/{name}"
    if resource == "tenants":
        info = {**tenant_info, "adminRoles": options["--admin-roles"].split(",")}
        return AdminRequest({"create": "PUT", "update": "POST"}[verb], f"/admin/v2/tenants/{name}", info)
    if resource == "topics":
        assert verb == "grant-permission"
        path = f"/admin/v2/{TopicName.parse(name).rest_path}/permissions/{_quoted(options['--role'])}"
        return AdminRequest("POST", path, options["--actions"].split(","))
    if verb == "create":
        return AdminRequest("PUT", namespaces, None)
    if verb == "grant-permission":
        path = f"{namespaces}/permissions/{_quoted(options['--role'])}"
        return AdminRequest("POST", path, options["--actions"].split(","))
    if verb == "grant-subscription-permission":
        path = f"{namespaces}/permissions/subscription/{_quoted(options['--subscription'])}"
        return AdminRequest("POST", path, options["--roles"].split(","))
    assert verb == "set-subscription-auth-mode"
    return AdminRequest("POST", f"{namespaces}/subscriptionAuthMode", options["--subscription-auth-mode"])


def _quoted(part: str) -> str:
    return quote(part, safe="")
