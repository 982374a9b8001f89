"""Every policy that takes one of a few words refuses any other one, by the types of its description."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import pytest

from magnetar.admin_api.models.record import ApiModel
from magnetar.admin_api.operation import Operation
from magnetar.admin_api.operations.catalogue import OPERATIONS
from magnetar.config.settings import Settings
from magnetar.model.policies import Json
from tests.admin.conftest import World, world


def _with_other_words(kind: Any, example: Json) -> Iterator[Json]:
    """Yield the example with a word that there is not in each of the places that take only certain ones."""
    origin = get_origin(kind)
    if origin is Literal and all(isinstance(word, str) for word in get_args(kind)):
        yield "bogus"
    elif origin is list:
        for item in _with_other_words(get_args(kind)[0], None):
            yield [item]
    elif origin in (Union, types.UnionType):
        for one in get_args(kind):
            yield from _with_other_words(one, example)
    elif isinstance(kind, type) and issubclass(kind, ApiModel):
        for name, about in kind.model_fields.items():
            for wrong in _with_other_words(about.annotation, None):
                yield {**(example if isinstance(example, dict) else {}), about.alias or name: wrong}


CASES = [
    (operation, body)
    for operation in OPERATIONS
    if operation.group in ("namespaces", "topic_policies") and operation.verb.startswith("set_")
    for body in _with_other_words(operation.body, operation.example)
]


def test_there_are_such_policies() -> None:
    assert {operation.verb for operation, _ in CASES} >= {
        "set_inactive_topic_policies", "set_subscription_types_enabled", "set_schema_compatibility_strategy",
        "set_auto_topic_creation", "set_backlog_quota", "set_subscription_auth_mode",
    }  # fmt: skip


@pytest.mark.parametrize(("operation", "body"), CASES, ids=lambda one: one.name if isinstance(one, Operation) else "")
def test_a_word_that_there_is_not_is_refused(own_world: World, operation: Operation, body: Json) -> None:
    rest = own_world.rest
    assert rest.request("PUT", "/admin/v2/persistent/ref/main/t").status_code == 204
    path = operation.path.format(domain="persistent", tenant="ref", namespace="main", topic="t", subscription="s")
    before = rest.request("GET", path).content
    refused = rest.request(operation.method, path, json=body)
    assert refused.status_code in (400, 412), refused.text
    assert "bogus" in refused.json()["reason"] or "policy" in refused.json()["reason"]
    assert rest.request("GET", path).content == before


@pytest.mark.parametrize("kind", ["", "bogus"])
def test_an_unknown_type_of_topics_is_refused_where_they_are_created(own_world: World, kind: str) -> None:
    """Where none are, Apache Pulsar 4.0.8 takes and shows whatever comes; its Go client sends an empty one."""
    path, rest = "/admin/v2/namespaces/ref/main", own_world.rest
    refused = rest.request(
        "POST", path + "/autoTopicCreation", json={"allowAutoTopicCreation": True, "topicType": kind}
    )
    assert (refused.status_code, f"Unknown topic type [{kind}]" in refused.json()["reason"]) == (412, True)
    off = {"allowAutoTopicCreation": False, "topicType": kind, "defaultNumPartitions": 3}
    assert rest.request("POST", path + "/autoTopicCreation", json=off).status_code == 204
    assert rest.request("GET", path + "/autoTopicCreation").json() == off
    assert rest.request("PUT", "/admin/v2/persistent/ref/main/t").status_code == 204
    mode = {"inactive_topic_policies": {"inactiveTopicDeleteMode": "bogus"}}
    refused = own_world.rest.request("PUT", path + "2", json=mode)
    assert (refused.status_code, "inactiveTopicDeleteMode" in refused.json()["reason"]) == (400, True)


def test_topics_are_created_with_no_more_partitions_than_one_may_have() -> None:
    rest = world(Settings(maxNumPartitionsPerPartitionedTopic=10)).rest
    path = "/admin/v2/namespaces/ref/main/autoTopicCreation"
    ten = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 10}
    assert rest.post(path, json=ten).status_code == 204
    refused = rest.post(path, json={**ten, "defaultNumPartitions": 11})
    assert (refused.status_code, refused.json()["reason"]) == (
        406,
        "Number of partitions should be less than or equal to 10",
    )
    assert rest.get(path).json() == ten
    assert rest.post(path, json={**ten, "allowAutoTopicCreation": False, "defaultNumPartitions": 11}).is_success
