"""The table of operations and the routes of the application agree, one to one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from magnetar.admin.application import create_app
from magnetar.admin.http.router import RestRoute
from magnetar.admin.routes.namespaces import namespace_policies
from magnetar.admin.routes.not_implemented import V1_ANTI_AFFINITY
from magnetar.admin.routes.topics import topic_policies
from magnetar.admin_api.operations.catalogue import GROUPS, OPERATIONS
from magnetar.admin_api.path_parameters import PATH_PARAMETERS
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.config.settings import Settings
from tests.admin.conftest import World

UNDESCRIBED = {("GET", "/docs"), ("GET", "/openapi.json"), ("HEAD", "/openapi.json"), ("GET", V1_ANTI_AFFINITY)}
"""What describes the others, and one route that has its description at its path of v2;
WebSockets (/ws/...) are no requests with an answer, and OpenAPI has no words for them."""


def routes(world: World) -> Iterator[tuple[str, str]]:
    """Method and path of every request that a route answers; those of policies word by word."""
    app = create_app(world.broker.ports(), world.resources, Settings())
    for route in app.routes:
        if route.path_format != "/{path}":
            for method in route.methods:
                yield from _concrete(route, method)


def _concrete(route: RestRoute, method: str) -> Iterator[tuple[str, str]]:
    words: dict[str, tuple[str, bool]] = {}
    if "{policy:namespace_policy}" in route.path:
        words = {word: (about.method, about.removable) for word, about in namespace_policies.POLICIES.items()}
    elif "{policy:topic_policy}" in route.path:
        words = {word: (about.method, about.removable) for word, about in topic_policies.POLICIES.items()}
    if not words:
        yield method, route.path_format
    for word, (setting, removable) in words.items():
        # the others answer 405
        if method in ("GET", setting) or (method == "DELETE" and removable):
            yield method, route.path_format.replace("{policy}", word)


def test_every_route_has_its_row(shared_world: World) -> None:
    found = {(method, path) for method, path in routes(shared_world) if not path.startswith("/ws/")} - UNDESCRIBED
    described = {(operation.method, operation.path) for operation in OPERATIONS}
    assert sorted(found - described) == [], "add their rows to magnetar.admin_api.operations"
    assert sorted(described - found) == [], "rows of routes that are not there"


def test_rows_are_whole() -> None:
    assert [name for name, count in Counter(one.name for one in OPERATIONS).items() if count > 1] == []
    assert {one.group for one in OPERATIONS} == GROUPS.keys()
    for one in OPERATIONS:
        assert one.verb.isidentifier() and one.group.isidentifier(), one.name
        assert set(one.path_parameters) <= PATH_PARAMETERS.keys(), one.path
        assert one.summary and not one.summary.endswith("."), one.name
        assert one.body is None or one.example is not None, f"{one.name} has no example of its body"
    used = {name for one in OPERATIONS for name in one.path_parameters}
    assert used == PATH_PARAMETERS.keys()


def test_names_of_parameters_are_those_of_the_permission_table() -> None:
    """So that rows can be looked up there, which docs and explanations do."""
    guarded = {path for _, path in ROUTE_PERMISSIONS}
    words = {*namespace_policies.POLICIES, *topic_policies.POLICIES}
    for one in OPERATIONS:
        start, _, last = one.path.rpartition("/")
        assert one.path in guarded or (last in words and start + "/{policy}" in guarded), one.path
