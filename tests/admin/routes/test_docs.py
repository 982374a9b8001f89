"""docs/rest.md names exactly the routes and policies that exist."""

from __future__ import annotations

import re
from pathlib import Path

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.routes.namespaces.namespace_policies import POLICIES as NAMESPACE_POLICIES
from magnetar.admin.routes.topics.topic_policies import POLICIES as TOPIC_POLICIES
from magnetar.admin.websocket import routes as websocket
from magnetar.config.settings import Settings
from tests.admin.conftest import World
from tests.support.described_routes import by_route

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "rest.md").read_text("utf-8")
TOPIC_PATH = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"


def test_the_page_names_every_route_and_no_other(shared_world: World) -> None:
    routes = by_route(shared_world.rest.get("/openapi.json").json())
    built = {(method.upper(), path) for path, methods in routes.items() for method in methods}
    rows = re.findall(r"^\| ([A-Z ]+) \| `([^`]+)` \|", PAGE, re.MULTILINE)
    written = {
        (method, path.replace("{topic path}", TOPIC_PATH)) for methods, path in rows for method in methods.split()
    }
    assert {row for row in written if not row[1].startswith("/ws/")} == built
    # WebSockets have no place in an OpenAPI description: the application itself says which there are
    router = websocket.routes(shared_world.broker.ports().clients, Settings(), Permissions(None))
    sockets = {("GET", route.path_format) for route in router.routes}
    assert {row for row in written if row[1].startswith("/ws/")} == sockets


def test_the_page_names_every_policy_and_no_other() -> None:
    section = PAGE.partition("## Policies")[2].partition("## Statistics")[0]
    of_namespaces, _, rest = section.partition("Policies of namespaces:")[2].partition("Policies of topics:")
    of_topics = rest.partition("What a policy means")[0]
    for text, table in ((of_namespaces, NAMESPACE_POLICIES), (of_topics, TOPIC_POLICIES)):
        written = dict(re.findall(r"`(\w+)`(?:\s\((\w+)\))?", text))
        assert {name: method or "POST" for name, method in written.items()} == {
            name: policy.method for name, policy in table.items()
        }
