"""A request without a body, or with null, changes nothing unless Apache Pulsar's own route takes none (rule 11.1.4)."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from magnetar.admin_api.operation import Operation
from magnetar.admin_api.operations.catalogue import OPERATIONS
from magnetar.admin_api.path_parameters import PATH_PARAMETERS
from tests.admin.conftest import World
from tests.support.described_routes import route_of

TAKEN = {
    "clusters.set_peers": "none are left, as in Apache Pulsar",
    "namespaces.set_bookie_affinity_group": "there is none, and it has no effect",
    "namespaces.set_properties": "none are added",
    "topics.update_properties": "none are added",
    "subscriptions.set_properties": "none are left, as in Apache Pulsar",
    "topic_policies.set_backlog_quota": "null removes a policy",
    "topic_policies.set_dispatch_rate_of_subscription": "null removes a policy",
}
"""What does without the body that its description asks for.

For all other policies null is a removal, as in Apache Pulsar."""
NAMES = {
    "domain": "persistent", "tenant": "public", "namespace": "default", "topic": "t", "subscription": "s",
    "cluster": "standalone", "bundle": "0x00000000_0x40000000",
}  # fmt: skip
ASKED = [
    one
    for one in OPERATIONS
    if one.body is not None and one.body_required and one.name not in TAKEN and route_of(one.path) == one.path
    # the fake broker has no object store
    if one.name != "topics.adopt_compaction"
]


def _path(operation: Operation) -> str:
    path = operation.path
    for name in operation.path_parameters:
        value = NAMES.get(name, 0 if PATH_PARAMETERS[name].type is int else name)
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    return path


@pytest.mark.parametrize("operation", ASKED, ids=lambda one: str(one.name))
@pytest.mark.parametrize("body", [b"", b"  ", b"null"])
def test_what_needs_a_body_refuses_none(shared_world: World, operation: Operation, body: bytes) -> None:
    rest, topic = shared_world.rest, "/admin/v2/persistent/public/default/"
    rest.request("PUT", topic + "t/subscription/s")
    headers = {"content-type": "application/json"}
    refused = rest.request(operation.method, _path(operation), content=body, headers=headers)
    assert refused.status_code in (400, 412), refused.text
    assert refused.json()["reason"]


@pytest.mark.parametrize("route", ["resetcursor", "expireMessages"])
def test_a_missing_message_id_moves_no_cursor_and_is_said(own_world: World, route: str) -> None:
    rest, topic = own_world.rest, "/admin/v2/persistent/ref/main/t"
    assert rest.request("PUT", f"{topic}/subscription/s", json="earliest").status_code == 204
    before = {name: dict(cursors) for name, cursors in own_world.broker.topics.items()}
    refused = rest.request("POST", f"{topic}/subscription/s/{route}")
    assert (refused.status_code, own_world.broker.topics) == (400, before)
    assert "expected a message id as the body" in refused.json()["reason"]


@pytest.mark.parametrize("route", ["resetcursor", "expireMessages"])
def test_a_message_of_a_batch_is_named_by_a_number(own_world: World, route: str) -> None:
    rest, topic = own_world.rest, "/admin/v2/persistent/ref/main/t"
    assert rest.request("PUT", f"{topic}/subscription/s", json="earliest").status_code == 204
    target = {"ledgerId": 1, "entryId": 0, "batchIndex": "first"}
    refused = rest.request("POST", f"{topic}/subscription/s/{route}", json=target)
    assert (refused.status_code, refused.json()["reason"]) == (
        400,
        'expected "batchIndex" as a JSON number, got "first"',
    )
