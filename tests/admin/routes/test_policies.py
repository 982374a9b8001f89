"""Policies of namespaces and topics over REST: shown as set, refused as Pulsar does (rules of 4.4 to 4.6, 11.3).

Bodies, statuses and texts were seen on Apache Pulsar 4.0.8.
"""

from __future__ import annotations

from typing import Any

from magnetar.admin.routes.namespaces.namespace_policies import POLICIES as NAMESPACE_POLICIES
from magnetar.admin.routes.topics.topic_policies import POLICIES as TOPIC_POLICIES
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from tests.admin.conftest import World, world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once
from tests.support.policy_bodies import INACTIVE, NEVER_APPLIED, PERSISTENCE, RATE, VALUES

NAMESPACE = "/admin/v2/namespaces/ref/main"
TOPIC = "/admin/v2/persistent/ref/main/t"
NAME = TopicName.parse("persistent://ref/main/t")


def test_namespace_policies_are_set_shown_and_removed(rest: RestClient) -> None:
    for policy in NAMESPACE_POLICIES:
        _namespace_policy(rest, policy)


def _namespace_policy(rest: RestClient, policy: str) -> None:
    about, value = NAMESPACE_POLICIES[policy], VALUES.get(policy, 5)
    path = f"{NAMESPACE}/{policy}"
    before = rest.get(path)
    assert before.status_code in (200, 204)
    assert rest.request(about.method, path, json=value).status_code == about.status
    assert rest.get(path).json() == value
    other = "PUT" if about.method == "POST" else "POST"
    assert rest.request(other, path, json=value).status_code == 405
    if about.removable:
        assert rest.delete(path).status_code == 204
        assert rest.get(path).content == before.content
    else:
        assert rest.delete(path).status_code == 405


def test_topic_policies_are_set_shown_and_removed(rest: RestClient, broker: FakeBroker) -> None:
    """Each policy of a topic is set, shown, applied and removed, retention among them (rules 0.17, 4.4.5, 11.4.8)."""
    broker.topics = {NAME: {}}
    for policy in TOPIC_POLICIES.keys() - {"offloadPolicies"}:  # has a test of its own
        _topic_policy(rest, policy)


def _topic_policy(rest: RestClient, policy: str) -> None:
    about, value = TOPIC_POLICIES[policy], VALUES.get(policy, 5)
    path = f"{TOPIC}/{policy}"
    before = rest.get(path)
    assert before.status_code == (about.unset if about.default is None else 200)
    applied = rest.get(path + "?applied=true").content
    query = f"?messageTTL={value}" if policy == "messageTTL" else ""
    assert rest.request(about.method, path + query, json=value).status_code == 204
    assert rest.get(path).json() == rest.get(path + "?applied=true").json() == value
    assert rest.get(path + "?isGlobal=true").content == before.content
    if not about.removable:
        assert rest.delete(path).status_code == 405
        return
    assert rest.delete(path).status_code == 204
    assert rest.get(path).content == before.content
    assert rest.get(path + "?applied=true").content == applied


APPLIED = {
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": True},
    "compactionThreshold": 0,
    "deduplicationEnabled": False,
    "delayedDelivery": {"tickTime": 1000, "active": True, "maxDeliveryDelayInMillis": 0},
    "dispatchRate": {**RATE, "dispatchThrottlingRateInMsg": 0, "dispatchThrottlingRateInByte": 0},
    "inactiveTopicPolicies": {**INACTIVE, "maxInactiveDurationSeconds": 60},
    "maxConsumers": 0,
    "maxUnackedMessagesOnConsumer": 50000,
    "maxUnackedMessagesOnSubscription": 200000,
    "messageTTL": 0,
    "persistence": {**PERSISTENCE, "managedLedgerMaxMarkDeleteRate": 0.1},
    "replication": ["standalone"],
    "retention": {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0},
    "schemaCompatibilityStrategy": "FULL",
    "subscribeRate": {"subscribeThrottlingRatePerConsumer": 0, "ratePeriodInSecond": 30},
    "s/dispatchRate": {**RATE, "dispatchThrottlingRateInMsg": 0, "dispatchThrottlingRateInByte": 0},
}


def test_applied_policies_of_a_topic_without_its_own(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics = {NAME: {}}
    for policy, expected in APPLIED.items():
        assert rest.get(f"{TOPIC}/{policy}?applied=true").json() == expected, policy


def test_a_policy_of_a_topic_overrides_that_of_its_namespace(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics = {NAME: {}}
    assert rest.post(NAMESPACE + "/messageTTL", json=7).status_code == 204
    assert rest.get(TOPIC + "/messageTTL?applied=true").json() == 7
    assert rest.post(TOPIC + "/messageTTL?messageTTL=3&isGlobal=true").status_code == 204
    assert rest.post(TOPIC + "/messageTTL?messageTTL=5").status_code == 204
    assert rest.get(TOPIC + "/messageTTL?applied=true").json() == 5
    assert rest.get(TOPIC + "/messageTTL?isGlobal=true").json() == 3
    assert rest.delete(TOPIC + "/policies").status_code == 204
    assert rest.get(TOPIC + "/messageTTL?applied=true").json() == 7


OTHER_NAMES = {
    "deduplicationEnabled": "deduplication",
    "maxConsumers": "maxConsumersPerTopic",
    "maxProducers": "maxProducersPerTopic",
    "maxUnackedMessagesOnConsumer": "maxUnackedMessagesPerConsumer",
    "maxUnackedMessagesOnSubscription": "maxUnackedMessagesPerSubscription",
}
"""Policies of a topic that a namespace has by another name."""


def test_what_a_namespace_says_is_applied_to_its_topics(rest: RestClient, broker: FakeBroker) -> None:
    """Every policy that a topic may leave to its namespace is shown as the namespace has it."""
    broker.topics = {NAME: {}}
    for policy in sorted(TOPIC_POLICIES.keys() - NEVER_APPLIED - {"offloadPolicies"}):
        name = OTHER_NAMES.get(policy, policy)
        value = VALUES.get(name, 5)
        set_there = rest.request(NAMESPACE_POLICIES[name].method, f"{NAMESPACE}/{name}", json=value)
        assert set_there.status_code == NAMESPACE_POLICIES[name].status, policy
        assert rest.get(f"{TOPIC}/{policy}?applied=true").json() == value, policy


def test_partitions_share_the_policies_of_their_parent(rest: RestClient) -> None:
    """Policies set on a partition are those of its parent (rule 8.4)."""
    path = "/admin/v2/persistent/ref/main/pt"
    assert rest.put(path + "/partitions", json=2).status_code == 204
    assert rest.post(path + "/maxProducers", json=2).status_code == 204
    assert rest.get(path + "-partition-1/maxProducers").json() == 2


TOPIC_REFUSALS = [
    ("maxConsumers", -1, 412, "maxConsumers must be 0 or more"),
    ("maxProducers", -1, 412, "maxProducers must be 0 or more"),
    ("maxConsumersPerSubscription", -1, 412, "Invalid value for maxConsumersPerSubscription"),
    ("maxSubscriptionsPerTopic", -1, 412, "maxSubscriptionsPerTopic must be 0 or more"),
    ("maxUnackedMessagesOnConsumer", -1, 412, "maxUnackedNum must be 0 or more"),
    ("maxUnackedMessagesOnSubscription", -1, 412, "maxUnackedNum must be 0 or more"),
    ("compactionThreshold", -1, 412, "Invalid value for compactionThreshold"),
    ("messageTTL", None, 412, "Invalid value for message TTL"),
    ("deduplicationSnapshotInterval", -1, 412, "interval must be 0 or more"),
    ("maxMessageSize", -1, 412, "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller "
     "than that in the broker-level"),
    ("maxMessageSize", 99999999, 412, "topic-level maxMessageSize must be greater than or equal to 0 and must be "
     "smaller than that in the broker-level"),
    ("persistence", {**PERSISTENCE, "bookkeeperEnsemble": 0}, 400, "Bookkeeper-Ensemble must be <= 5 and > 0."),
    ("persistence", {**PERSISTENCE, "bookkeeperEnsemble": 6}, 400, "Bookkeeper-Ensemble must be <= 5 and > 0."),
    ("persistence", {**PERSISTENCE, "bookkeeperWriteQuorum": 0}, 400, "Bookkeeper-WriteQuorum must be <= 5 and > 0."),
    ("persistence", {**PERSISTENCE, "bookkeeperAckQuorum": 6}, 400, "Bookkeeper-AckQuorum must be <= 5 and > 0."),
    ("persistence", {**PERSISTENCE, "bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 4, "bookkeeperAckQuorum": 3}, 400,
     "Bookkeeper Ensemble (1) >= WriteQuorum (4) >= AckQuorum (3)"),
    ("persistence", {**PERSISTENCE, "bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 2}, 400,
     "Bookkeeper Ensemble (1) >= WriteQuorum (1) >= AckQuorum (2)"),
    ("entryFilters", {"entryFilterNames": "f1"}, 400, "Entry filter 'f1' not found"),
]  # fmt: skip


def test_topic_policies_are_refused_with_pulsars_reasons(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics = {NAME: {}}
    for policy, body, status, reason in TOPIC_REFUSALS:
        query = "?messageTTL=-1" if policy == "messageTTL" else ""
        refused = rest.post(f"{TOPIC}/{policy}{query}", json=body)
        assert (refused.status_code, refused.json()) == (status, {"reason": reason}), policy
        assert rest.get(f"{TOPIC}/{policy}").content == b""


ZERO = (
    "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has a "
    "non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both limits "
    "must be set to 0."
)
NAMESPACE_REFUSALS = [
    *(
        (policy, -1, 412, f"{policy} must be 0 or more")
        for policy in (
            *("maxConsumersPerTopic", "maxProducersPerTopic", "maxConsumersPerSubscription"),
            *("maxSubscriptionsPerTopic", "maxTopicsPerNamespace", "maxUnackedMessagesPerConsumer"),
            *("maxUnackedMessagesPerSubscription", "compactionThreshold"),
        )
    ),
    ("deduplicationSnapshotInterval", -1, 412, "interval must be greater than or equal to 0"),
    ("subscriptionExpirationTime", -1, 412, "Invalid value for subscription expiration time"),
    ("messageTTL", -1, 412, "Invalid value for message TTL, message TTL must >= 0"),
    ("replication", ["nope"], 403, "Invalid cluster id: nope"),
    ("retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5}, 400, ZERO),
    ("retention", {"retentionTimeInMinutes": 5}, 400, ZERO),
    ("retention", {"retentionTimeInMinutes": -2, "retentionSizeInMB": 1}, 400,
     "Invalid retention policy: time limit must be >= -1"),
    ("retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": -2}, 400,
     "Invalid retention policy: size limit must be >= -1"),
    ("autoTopicCreation", {"allowAutoTopicCreation": True, "topicType": "partitioned"}, 412,
     "Invalid configuration for autoTopicCreationOverride. the detail is [defaultNumPartitions] cannot be null when "
     "the type is partitioned."),
]  # fmt: skip


def test_namespace_policies_are_refused_with_pulsars_reasons(rest: RestClient) -> None:
    for policy, body, status, reason in NAMESPACE_REFUSALS:
        method = NAMESPACE_POLICIES[policy].method
        before = rest.get(f"{NAMESPACE}/{policy}").content
        refused = rest.request(method, f"{NAMESPACE}/{policy}", json=body)
        assert (refused.status_code, refused.json()) == (status, {"reason": reason}), policy
        assert rest.get(f"{NAMESPACE}/{policy}").content == before


def test_policies_of_an_unknown_namespace_are_404(shared_world: World) -> None:
    path = "/admin/v2/namespaces/ref/nope/"
    for method, policy, text in (
        ("GET", "retention", "Namespace does not exist"),
        ("POST", "retention", "Namespace policies does not exist"),
        ("GET", "replicatorDispatchRate", "Namespace policies does not exist"),
        ("POST", "replicatorDispatchRate", "Namespace does not exist"),
        ("GET", "dispatcherPauseOnAckStatePersistent", "Namespace policies does not exist"),
        ("POST", "messageTTL", "Namespace does not exist"),
        ("DELETE", "messageTTL", "Namespace does not exist"),
    ):
        refused = shared_world.rest.request(method, path + policy, json=VALUES.get(policy, 5))
        assert (refused.status_code, refused.json()) == (404, {"reason": text})


def test_policies_of_an_unknown_topic_are_404(shared_world: World) -> None:
    for method in ("GET", "POST", "DELETE"):
        refused = shared_world.rest.request(method, "/admin/v2/persistent/ref/main/nope/maxProducers", json=4)
        assert (refused.status_code, refused.json()["reason"]) == (404, "Topic persistent://ref/main/nope not found")
    refused = shared_world.rest.post("/admin/v2/persistent/ref/nope/nope/maxProducers", json=4)
    assert (refused.status_code, refused.json()["reason"]) == (404, "Namespace not found")


def test_topic_policies_switched_off() -> None:
    """Topics have no policies with topicLevelPoliciesEnabled=false; the Python test suite runs like that (rule 8.3)."""
    rest, broker, _ = world(Settings(topicLevelPoliciesEnabled=False))
    broker.topics = {NAME: {}}
    refused = rest.get(TOPIC + "/retention")
    assert (refused.status_code, refused.json()["reason"]) == (
        405,
        "Topic level policies is disabled, to enable the topic level policy and retry.",
    )


def quota(size: int, seconds: int) -> dict[str, Any]:
    return {"limitSize": size, "limitTime": seconds, "policy": "producer_request_hold"}


def test_quotas_of_a_namespace(rest: RestClient) -> None:
    """Only the size quota of a namespace is compared with its retention (rules 4.4.3, 4.6.1, 11.3.6)."""
    quotas, kept = NAMESPACE + "/backlogQuota", NAMESPACE + "/retention"
    assert rest.get(quotas + "Map").json() == {}
    assert rest.post(quotas + "?backlogQuotaType=message_age", json=quota(-1, 600)).status_code == 204
    assert rest.post(kept, json={"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}).status_code == 204
    assert rest.post(quotas, json=quota(1 << 20, -1)).status_code == 204
    assert rest.get(quotas + "Map").json() == {
        "message_age": {"limit": -1, **quota(-1, 600)},
        "destination_storage": {"limit": 1 << 20, **quota(1 << 20, -1)},
    }
    refused = rest.post(kept, json={"retentionTimeInMinutes": -1, "retentionSizeInMB": 1})
    assert refused.json()["reason"] == "Retention Quota must exceed configured backlog quota for namespace."
    assert refused.status_code == 412
    assert rest.post(kept, json={"retentionTimeInMinutes": -1, "retentionSizeInMB": 2}).status_code == 204
    refused = rest.post(quotas, json=quota(2 << 20, -1))
    assert refused.json()["reason"] == (
        "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota and retry"
    )
    assert rest.delete(quotas).status_code == 204
    assert list(rest.get(quotas + "Map").json()) == ["message_age"]
    refused = rest.post(quotas, json={"limitSize": 5, "policy": "x"})
    assert (refused.status_code, refused.json()["reason"]) == (
        400,
        "Set namespace[ref/main] backlog quota failed because the data validation failed. "
        "the attribute policy cannot be null",
    )


def test_quotas_of_a_topic(rest: RestClient, broker: FakeBroker) -> None:
    """All quotas that apply to a topic are compared with its retention."""
    broker.topics = {NAME: {}}
    quotas, kept = TOPIC + "/backlogQuota", TOPIC + "/retention"
    nothing = {"limit": -1, **quota(-1, -1)}
    assert rest.get(quotas + "Map").json() == {}
    assert rest.get(quotas + "Map?applied=true").json() == {"destination_storage": nothing, "message_age": nothing}
    assert rest.post(NAMESPACE + "/backlogQuota", json=quota(30, 10)).status_code == 204
    shown = rest.get(quotas + "Map?applied=true").json()
    assert shown == {"destination_storage": {"limit": 30, **quota(30, 10)}, "message_age": nothing}
    assert rest.delete(NAMESPACE + "/backlogQuota").status_code == 204
    assert rest.post(quotas + "?backlogQuotaType=message_age", json=quota(-1, 600)).status_code == 204
    refused = rest.post(kept, json={"retentionTimeInMinutes": 10, "retentionSizeInMB": 1000})
    assert refused.json()["reason"] == (
        "Retention Quota must exceed configured backlog quota for topic. Please increase retention quota and retry"
    )
    assert rest.post(kept, json={"retentionTimeInMinutes": 11, "retentionSizeInMB": 3}).status_code == 204
    refused = rest.post(quotas, json=quota(4 << 20, -1))
    assert refused.json()["reason"] == (
        "Backlog Quota exceeds configured retention quota for topic. Please increase retention quota and retry"
    )
    assert list(rest.get(quotas + "Map").json()) == ["message_age"]
    assert rest.delete(quotas + "?backlogQuotaType=message_age").status_code == 204
    assert rest.get(quotas + "Map").json() == {}


def test_dispatch_rate_of_one_subscription(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics = {NAME: {}}
    path = TOPIC + "/s/dispatchRate"
    assert rest.get(path).content == b""
    assert rest.post(path, json=RATE).status_code == 204
    assert rest.get(path).json() == RATE
    assert rest.get(TOPIC + "/other/dispatchRate").content == b""
    assert rest.delete(path).status_code == 204
    assert rest.get(path).content == b""


def test_a_time_to_live_in_the_body_removes_nothing(rest: RestClient) -> None:
    """That of a topic is read from the query, and without it the policy is removed."""
    assert rest.put(TOPIC).status_code == 204
    assert rest.post(TOPIC + "/messageTTL?messageTTL=98").status_code == 204
    for body in (b"99", b'"99"', b'{"messageTTL": 99}'):
        refused = rest.post(TOPIC + "/messageTTL", content=body)
        assert (refused.status_code, "?messageTTL=60" in refused.json()["reason"]) == (400, True)
        assert rest.get(TOPIC + "/messageTTL").json() == 98
    assert rest.post(TOPIC + "/messageTTL?messageTTL=97", content=b"99").status_code == 204
    assert rest.get(TOPIC + "/messageTTL").json() == 97
    assert rest.post(TOPIC + "/messageTTL", content=b"null").status_code == 204
    assert rest.get(TOPIC + "/messageTTL").content == b"", "nothing at all removes it, as in Apache Pulsar"


def test_rates_of_subscriptions_do_not_grow_with_each_request(rest: RestClient, own_world: World) -> None:
    """They are one record, which is written whole with each change, and a subscription need not exist."""
    own_world.broker.topics[NAME] = {}
    there: Any = {f"{number:04}" + "s" * 10_000: RATE for number in range(103)}
    at_once(own_world.resources.topic_policies.update(NAME, "subscriptionDispatchRates", there))
    assert rest.post(f"{TOPIC}/{'t' * 10_000}/dispatchRate", json=RATE).status_code == 412
    assert own_world.resources.topic_policies.get(NAME) == {"subscriptionDispatchRates": there}
    assert rest.delete(f"{TOPIC}/{next(iter(there))}/dispatchRate").status_code == 204
