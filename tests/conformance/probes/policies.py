"""Policies, ends and upkeep of topics through REST, and what clients are notified of."""

from __future__ import annotations

import time
from collections.abc import Callable

import pulsar  # type: ignore[import-untyped]  # the official client carries no types

from tests.conformance.answers import Json
from tests.conformance.probe import NAMESPACE, Broker, probe
from tests.conformance.rest import Answer
from tests.conformance.roles import open_producer

RETENTION = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 1000}
RATE = {
    "dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": 7, "relativeToPublishRate": False,
    "ratePeriodInSecond": 2,
}  # fmt: skip
TOPIC_POLICIES: dict[str, Json] = {
    "maxConsumers": 5,
    "maxProducers": 5,
    "maxConsumersPerSubscription": 5,
    "maxSubscriptionsPerTopic": 5,
    "maxMessageSize": 1000,
    "maxUnackedMessagesOnConsumer": 5,
    "maxUnackedMessagesOnSubscription": 5,
    "compactionThreshold": 5,
    "deduplicationEnabled": True,
    "deduplicationSnapshotInterval": 5,
    "delayedDelivery": {"tickTime": 500, "active": True},
    "dispatchRate": RATE,
    "subscriptionDispatchRate": RATE,
    "inactiveTopicPolicies": {"maxInactiveDurationSeconds": 5, "deleteWhileInactive": True},
    "publishRate": {"publishThrottlingRateInMsg": 5},
    "subscribeRate": {"subscribeThrottlingRatePerConsumer": 5},
    "subscriptionTypesEnabled": ["Shared"],
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": False},
    "schemaValidationEnforced": True,
}
WRONG: dict[str, Json] = {
    "maxConsumers": -1,
    "maxConsumersPerSubscription": -1,
    "maxMessageSize": 99_999_999,
    "compactionThreshold": -1,
    "deduplicationSnapshotInterval": -1,
    "maxUnackedMessagesOnConsumer": -1,
    "retention": {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5},
}


def said(answer: Answer) -> Json:
    return answer.told()


def settled(broker: Broker, path: str, before: Json) -> Json:
    """Apache Pulsar's topic policies take a moment: the answer once it is another one."""
    answer = broker.topic_rest("GET", "t", path)
    for _ in range(50):
        if said(answer) != before:
            break
        time.sleep(0.1)
        answer = broker.topic_rest("GET", "t", path)
    return said(answer)


@probe("8.4", "8.5", "8.6")
def topic_policies(broker: Broker) -> Json:
    """Each policy of a topic: unset, set, and what holds without it."""
    broker.topic_rest("PUT", "t", "")
    seen: dict[str, Json] = {}
    for policy, value in TOPIC_POLICIES.items():
        path = f"/{policy}"
        unset = said(broker.topic_rest("GET", "t", path))
        applied = said(broker.topic_rest("GET", "t", path + "?applied=true"))
        stored = said(broker.topic_rest("POST", "t", path, value))
        shown = settled(broker, path, unset)
        gone = said(broker.topic_rest("DELETE", "t", path))
        seen[policy] = {"unset": unset, "applied": applied, "set": stored, "shown": shown, "removed": gone}
    return seen


@probe("8.5", "4.4.2")
def topic_policies_refused(broker: Broker) -> Json:
    """Values that no policy takes, and topics that are not there."""
    broker.topic_rest("PUT", "t", "")
    seen: dict[str, Json] = {name: said(broker.topic_rest("POST", "t", f"/{name}", WRONG[name])) for name in WRONG}
    seen["ttl"] = said(broker.topic_rest("POST", "t", "/messageTTL?messageTTL=-1"))
    seen["missing"] = said(broker.topic_rest("GET", "none", "/maxProducers"))
    return seen


@probe("4.4.3", "4.6.1", "11.3.4", "4.4.2", "4.5.1", "11.1.3")
def namespace_policies(broker: Broker) -> Json:
    """Retention against quotas, and values refused, in a namespace of its own."""
    path = f"namespaces/public/{broker.probe_id}"
    broker.rest("PUT", path, {})
    quota: Json = {"limitSize": 1 << 20, "limitTime": -1, "policy": "producer_request_hold"}
    steps: list[tuple[str, str, Json]] = [
        ("GET", "/backlogQuotaMap", None),
        ("POST", "/backlogQuota", quota),
        ("POST", "/backlogQuota?backlogQuotaType=message_age", {**quota, "limitSize": -1, "limitTime": 600}),
        ("GET", "/backlogQuotaMap", None),
        ("POST", "/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": 1}),
        ("POST", "/retention", RETENTION),
        ("POST", "/backlogQuota", {**quota, "limitSize": 1000 << 20}),
        ("POST", "/retention", {"retentionTimeInMinutes": -2, "retentionSizeInMB": 1}),
        ("GET", "/retention", None),
        ("DELETE", "/retention", None),
        ("GET", "/retention", None),
        ("POST", "/messageTTL", -1),
        ("POST", "/subscriptionExpirationTime", -1),
        ("POST", "/maxProducersPerTopic", -1),
        ("POST", "/replication", ["nope"]),
        ("GET", "/maxTopicsPerNamespace", None),
        ("GET", "/subscriptionTypesEnabled", None),
        ("PUT", "/properties", {"a": "b"}),
        ("GET", "/properties", None),
    ]
    return [[method, name, said(broker.rest(method, path + name, body))] for method, name, body in steps]


@probe("4.7.1", "5.9.11", "3.1.6")
def terminated(broker: Broker) -> Json:
    """A topic's end: who is notified of what."""
    wire = broker.wire()
    open_producer(wire, broker.topic(), 1)
    ended = broker.topic_rest("POST", "t", "/terminate")
    told = [broker.say(frame) for frame in wire.rest()]
    refused = open_producer(wire, broker.topic(), 2)
    again = broker.topic_rest("POST", "t", "/terminate")
    return {
        "told": told,
        "refused": broker.say(refused),
        "same": ended.body == again.body,
        "missing": said(broker.topic_rest("POST", "none", "/terminate")),
    }


@probe("11.4.9", "11.4.6", "8.2", "11.4.3")
def topic_life(broker: Broker) -> Json:
    """Partitioned and plain ends, properties, system names."""
    broker.topic_rest("PUT", "p", "/partitions", 2)
    broker.topic_rest("PUT", "t", "", {"a": "b"})
    steps: list[tuple[str, str, str, Json]] = [
        ("POST", "p", "/terminate", None),
        ("POST", "t", "/terminate/partitions", None),
        ("DELETE", "p", "/truncate", None),
        ("POST", "t", "/trim", None),
        ("PUT", "t", "/properties", {"c": "d"}),
        ("GET", "t", "/properties", None),
        ("DELETE", "t", "/properties?key=a", None),
        ("GET", "t", "/properties", None),
        ("POST", "t", "/createMissedPartitions", None),
        ("POST", "p", "/createMissedPartitions", None),
        ("PUT", "t", "/subscription/s", None),
        ("POST", "t", "/subscription/s/expireMessages/10", None),
        ("POST", "p", "/subscription/s/resetcursor", {"ledgerId": 1, "entryId": 0}),
        ("PUT", "t", "/subscription/s/properties", {"x": "y"}),
        ("GET", "t", "/subscription/s/properties", None),
    ]
    seen: list[Json] = [[*step[:3], said(broker.topic_rest(*step))] for step in steps]
    reserved = f"persistent/{NAMESPACE}/{broker.probe_id}__transaction_pending_ack"
    return [*seen, said(broker.rest("PUT", reserved))]


@probe("8.1", "8.2")
def change_events(broker: Broker) -> Json:
    """The topic that reports changed policies: keys and what is left of a deleted topic, and who sees it in a list."""
    space = f"public/{broker.probe_id}"
    broker.rest("PUT", f"namespaces/{space}", {})
    broker.rest("PUT", f"persistent/{space}/t")
    for path, value in (("maxConsumers", 5), ("maxProducers?isGlobal=true", 6), ("maxConsumers", 7)):
        broker.rest("POST", f"persistent/{space}/t/{path}", value)
        time.sleep(1)  # Apache Pulsar makes one event of what comes closely together
    broker.rest("DELETE", f"persistent/{space}/t")
    time.sleep(1)
    reader = broker.client().create_reader(f"persistent://{space}/__change_events", pulsar.MessageId.earliest)
    told: list[Json] = []
    while reader.has_message_available():
        message = reader.read_next(5000)
        told.append([message.partition_key(), bool(message.data())])
    reader.close()
    return {
        "told": told,
        "lists": [said(broker.rest("GET", path)) for path in (f"persistent/{space}", f"namespaces/{space}/topics")],
        "deleted": said(broker.rest("DELETE", f"namespaces/{space}")),
    }


@probe("8.1", "8.2")
def system_topics(broker: Broker) -> Json:
    """Names of the broker's own topics where there are none yet: looked up, opened and made."""
    found: dict[str, Json] = {}
    for name in ("__change_events", "__transaction_buffer_snapshot", "t-s__transaction_pending_ack"):
        for what, question in _OPENED.items():
            space = f"public/{broker.local(str(len(found)))}"
            broker.rest("PUT", f"namespaces/{space}", {})
            found[f"{name}, {what}"] = question(broker, f"{space}/{name}")
    return found


def _opened(broker: Broker, name: str, kind: str, **fields: Json) -> Json:
    wire, topic = broker.wire(), f"persistent://{name}"
    wire.request("LOOKUP", topic=topic)
    return broker.say(wire.request(kind, topic=topic, **fields))


_OPENED: dict[str, Callable[[Broker, str], Json]] = {
    "partitions": lambda broker, name: _opened(broker, name, "PARTITIONED_METADATA"),
    "producer": lambda broker, name: _opened(broker, name, "PRODUCER", producer_id=1),
    "consumer": lambda broker, name: _opened(broker, name, "SUBSCRIBE", consumer_id=1, subscription="s", subType=0),
    "PUT": lambda broker, name: said(broker.rest("PUT", f"persistent/{name}")),
    "PUT partitions": lambda broker, name: said(broker.rest("PUT", f"persistent/{name}/partitions", 2)),
    "PUT subscription": lambda broker, name: said(broker.rest("PUT", f"persistent/{name}/subscription/s")),
}
