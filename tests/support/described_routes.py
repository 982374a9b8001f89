"""The described operations by route: each policy has operations of its own, while one route serves them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnetar.admin.routes.namespaces.namespace_policies import POLICIES as NAMESPACE_POLICIES
from magnetar.admin.routes.topics.topic_policies import POLICIES as TOPIC_POLICIES

_POLICIES = (
    ("/admin/v2/namespaces/{tenant}/{namespace}/", NAMESPACE_POLICIES),
    ("/admin/v2/{domain}/{tenant}/{namespace}/{topic}/", TOPIC_POLICIES),
)


def route_of(path: str) -> str:
    """The path of the route that serves an operation."""
    for before, words in _POLICIES:
        if path.startswith(before) and path.removeprefix(before) in words:
            return before + "{policy}"
    return path


def by_route(document: Mapping[str, Any]) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Return the parameters of what each route takes, by path, method and name; references are followed."""
    shared = document["components"]["parameters"]
    found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parameters = found.setdefault(route_of(path), {}).setdefault(method, {})
            for one in operation["parameters"]:
                whole = shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one
                parameters[whole["name"]] = whole
            if route_of(path) != path:
                parameters["policy"] = {"name": "policy", "in": "path", "schema": {"type": "string"}}
    return found
