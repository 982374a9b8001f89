"""A topic's subscription is quoted twice in a path, because Apache Pulsar's broker reads it twice; other names once."""

from __future__ import annotations

from magnetar.admin_api.operations.catalogue import OPERATIONS
from magnetar.admin_client.request import request_of


def test_the_subscription_of_a_topic_is_quoted_twice() -> None:
    twice = 0
    for operation in OPERATIONS:
        if {"topic", "subscription"} <= {*operation.path_parameters}:
            place: dict[str, object] = dict.fromkeys(operation.path_parameters, 1)
            path = request_of(operation.name, place | {"topic": "a+b", "subscription": "s +/"}, {}).path
            below = "/subscription/{subscription}" in operation.path
            assert "/a%2Bb/" in path
            assert ("/s%2B%252B%252F" in path, "/s%20%2B%2F" in path) == (below, not below), path
            twice += below
    assert twice
