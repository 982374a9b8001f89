"""Limits of topics: consumers, subscriptions, types; the errors and their order."""

from __future__ import annotations

import time

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import subscribe


def answered(broker: Broker, *asked: tuple[str, str, str]) -> Json:
    """(topic, subscription, type) one after the other, all connected at the same time."""
    wire = broker.wire()
    said = []
    for number, (topic, subscription, kind) in enumerate(asked, 1):
        answer = subscribe(wire, broker.topic(topic), kind, number, subscription=subscription)
        said.append(answer.get("message") if answer.kind == "ERROR" else answer.kind)
    return said


def limited(broker: Broker, path: str, value: Json) -> int:
    """A topic with a policy of its own; the status that setting it was answered with."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", 99, subscription="first")
    wire.request("CLOSE_CONSUMER", consumer_id=99)
    status = broker.topic_rest("POST", "t", path, value).status
    time.sleep(1.0)
    return status


@probe("5.1.6")
def limit_consumers_of_subscription(broker: Broker) -> Json:
    """maxConsumersPerSubscription 1."""
    status = limited(broker, "/maxConsumersPerSubscription", 1)
    return [status, answered(broker, ("t", "first", "Shared"), ("t", "first", "Shared"), ("t", "other", "Shared"))]


@probe("5.1.6")
def limit_consumers_of_topic(broker: Broker) -> Json:
    """maxConsumers 1."""
    status = limited(broker, "/maxConsumers", 1)
    return [status, answered(broker, ("t", "first", "Shared"), ("t", "other", "Shared"))]


@probe("5.1.6")
def limit_subscriptions(broker: Broker) -> Json:
    """maxSubscriptionsPerTopic 2, by SUBSCRIBE and by REST."""
    status = limited(broker, "/maxSubscriptionsPerTopic", 2)
    said = answered(broker, ("t", "second", "Shared"), ("t", "third", "Shared"), ("t", "second", "Shared"))
    made = broker.topic_rest("PUT", "t", "/subscription/fourth")
    return [status, said, made.status, made.body]


@probe("5.1.5")
def limit_types(broker: Broker) -> Json:
    """subscriptionTypesEnabled: Exclusive and Failover only."""
    status = limited(broker, "/subscriptionTypesEnabled", ["Exclusive", "Failover"])
    return [status, answered(broker, ("t", "a", "Shared"), ("t", "b", "Key_Shared"), ("t", "c", "Failover"))]


@probe("14.6")
def subscribe_rate(broker: Broker) -> Json:
    """One consumer subscribes again and again where two times in ten seconds are allowed; others subscribe between."""
    broker.topic_rest("PUT", "t", "")
    broker.topic_rest(
        "POST", "t", "/subscribeRate", {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": 10}
    )
    time.sleep(1)  # Apache Pulsar's topic policies take a moment
    wire = broker.wire()
    said: dict[str, Json] = {}
    for attempt, (number, name) in enumerate([(1, "c"), (1, "c"), (1, "c"), (2, "c"), (1, "d"), (1, "c")]):
        answer = subscribe(wire, broker.topic(), "Shared", number, consumer_name=name)
        said[f"{attempt}: {number} {name}"] = broker.say(answer)
        wire.request("CLOSE_CONSUMER", consumer_id=number)
    return said
