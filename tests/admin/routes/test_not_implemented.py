"""Routes of Pulsar that are not built answer 501, and no route with a parameter takes them.

``refused_routes.tsv`` gives the reason of each.
"""

from __future__ import annotations

import re

import pytest

from magnetar.admin.routes.not_implemented import KINDS, V1_ANTI_AFFINITY, known_routes, refusal_of, refusals
from tests.admin.conftest import World
from tests.support.described_routes import by_route

_ELSEWHERE = (
    *("/admin/broker-stats", "/admin/brokers", "/admin/clusters", "/admin/functions", "/admin/namespaces"),
    *("/admin/non-persistent", "/admin/persistent", "/admin/properties", "/admin/resource-quotas", "/admin/schemas"),
    *("/admin/v2/functions", "/admin/v2/worker", "/admin/v3/functions", "/admin/v3/packages", "/admin/v3/sink"),
    *("/admin/v3/source", "/lookup/v2/destination"),
)
"""The v1 interface, functions, connectors and packages."""
VALUES = {
    "tenant": "ref", "property": "ref", "namespace": "main", "topic": "t", "cluster": "standalone",
    "topic-domain": "persistent", "domain": "persistent", "bundle": "0x00000000_0x40000000",
}  # fmt: skip


def concrete(template: str) -> str:
    """A path of that form, whose parts exist or could exist."""
    return re.sub(r"\{([^}]*)\}", lambda found: VALUES.get(found[1], "7"), template)


def not_implemented(rest_world: World) -> list[str]:
    """Method and path of every route that answers 501 without a reason in the table."""
    found = []
    for _, template, methods in known_routes():
        for method in sorted(methods):
            if template.startswith(_ELSEWHERE):
                continue
            answered = rest_world.rest.request(method, concrete(template))
            if answered.status_code == 501:
                # the reason names the route that was asked for, not a similar one
                refusal = refusal_of(method, template)
                why = " yet in magnetar" if refusal is None else f" in magnetar: {refusal.reason}"
                assert answered.json() == {"reason": f"{method} {template} is not available{why}"}
                if refusal is None:
                    found.append(f"{method} {template}")
    return sorted(found)


def test_every_route_that_is_not_built_has_a_reason(own_world: World) -> None:
    assert not_implemented(own_world) == []


@pytest.mark.parametrize("path", ["configuration", "configuration/values", "internal-configuration"])
def test_no_list_of_brokers_for_other_questions(shared_world: World, path: str) -> None:
    brokers = shared_world.rest.get("/admin/v2/brokers/standalone").json()
    assert brokers == ["127.0.0.1:8080"]
    assert shared_world.rest.get(f"/admin/v2/brokers/{path}").json() != brokers


def test_every_route_of_v1_and_of_functions_is_refused_by_its_own_name(shared_world: World) -> None:
    asked = 0
    for _, template, methods in known_routes():
        if template.startswith(_ELSEWHERE):
            for method in methods:
                if template == V1_ANTI_AFFINITY:
                    continue
                asked += 1
                answered = shared_world.rest.request(method, concrete(template))
                said = answered.json()["reason"].partition(":")[0]
                assert (answered.status_code, said) == (501, f"{method} {template} is not available in magnetar")
    assert asked == 358


def test_every_row_of_the_table_of_reasons_is_about_a_route_of_pulsar() -> None:
    for row in refusals():
        assert row.kind in KINDS
        assert len(row.reason) > 20
        covered = [template for _, template, methods in known_routes() for one in methods if row.covers(one, template)]
        assert covered, row.path


def test_a_parameter_swallows_no_word_of_another_route(shared_world: World) -> None:
    """The route of a path has parameters only where Pulsar's has them, or a word that it takes itself."""
    routes = by_route(shared_world.rest.get("/openapi.json").json())
    shapes = {(method.upper(), _shape(path)) for path, found in routes.items() for method in found}
    policies = {(method, shape) for method, shape in shapes if shape.endswith("{policy}")}
    for _, template, methods in known_routes():
        for method in methods:
            if refusal_of(method, template) or template.startswith(("/status", "/ws", V1_ANTI_AFFINITY)):
                continue
            shape = _shape(template)
            taken = (method, shape) in shapes or any(
                method == of and re.fullmatch(re.escape(path).replace(r"\{policy\}", r"\w+"), shape)
                for of, path in policies
            )
            refused = shared_world.rest.request(method, concrete(template)).status_code in (404, 405)
            assert taken or refused, (method, template)


def _shape(path: str) -> str:
    """The path with its parameters unnamed, the domain of topics among them."""
    path = re.sub(r"(/admin/v2|/topics)/(non-)?persistent/", r"\1/{domain}/", path)
    return re.sub(r"\{(?!policy\})[^}]*\}", "{}", path)
