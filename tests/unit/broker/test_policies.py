"""The policies in effect for a topic: the resolver against a naive model, and who is notified of changes (rule 8.4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.broker.policies.broker_policies import of_broker
from magnetar.broker.policies.effective_policies import EffectivePolicies
from magnetar.broker.policies.policy_rules import resolve
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import AutoTopicCreation, Json, Retention
from magnetar.model.topic_policies import BacklogQuota, DispatchRate, QuotaPolicy, TopicPolicies
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once

NAMESPACE = NamespaceName.parse("public/default")
TOPIC = TopicName.parse("persistent://public/default/t")

COUNTS = {
    "maxProducers": ("max_producers_per_topic", "max_producers"),
    "maxConsumers": ("max_consumers_per_topic", "max_consumers"),
    "maxSubscriptionsPerTopic": ("max_subscriptions_per_topic", "max_subscriptions"),
    "maxConsumersPerSubscription": ("max_consumers_per_subscription", "max_consumers_per_subscription"),
    "maxUnackedMessagesOnConsumer": ("max_unacked_messages_per_consumer", "max_unacked_per_consumer"),
    "maxUnackedMessagesOnSubscription": ("max_unacked_messages_per_subscription", "max_unacked_per_subscription"),
    "messageTTL": ("message_ttl_in_seconds", "message_ttl_s"),
    "compactionThreshold": ("compaction_threshold", "compaction_threshold"),
}
"""Name of the topic's policy to the name of the namespace's and the field of TopicPolicies."""

level = st.dictionaries(st.sampled_from(sorted(COUNTS)), st.none() | st.integers(0, 5))


@given(level, level, level, st.booleans(), st.none() | st.booleans(), st.none() | st.booleans())
def test_strongest_word_holds(
    local: dict[str, Json], shared: dict[str, Json], named: dict[str, Json], broker_dedup: bool,
    namespace_dedup: bool | None, topic_dedup: bool | None,
) -> None:  # fmt: skip
    broker = TopicPolicies(max_producers=9, message_ttl_s=7, deduplication_enabled=broker_dedup)
    namespace: dict[str, Json] = {COUNTS[name][0]: value for name, value in named.items()}
    namespace["deduplicationEnabled"] = namespace_dedup
    resolved = resolve(broker, namespace, {**local, "deduplicationEnabled": topic_dedup}, shared)
    for name, (_, field) in COUNTS.items():
        said = [value for value in (local.get(name), shared.get(name), named.get(name)) if value is not None]
        assert getattr(resolved, field) == (said[0] if said else getattr(broker, field)), name
    said_dedup = [value for value in (topic_dedup, namespace_dedup) if value is not None]
    assert resolved.deduplication_enabled == (said_dedup[0] if said_dedup else broker_dedup)


def test_nothing_said_is_the_broker_s_own_object() -> None:
    """A hundred thousand topics without policies of their own share one value."""
    broker = of_broker(Settings())
    assert resolve(broker, {}) is broker
    assert broker == TopicPolicies()


JSON_KEYS = ["limitSize", "limitTime", "policy", "retentionTimeInMinutes", "c", "destination_storage", "tickTime"]
scalars = (
    st.none() | st.booleans() | st.integers(-2, 1 << 40) | st.sampled_from(["", "x", "producer_exception", "FULL"])
)
flat = st.dictionaries(st.sampled_from(JSON_KEYS), scalars, max_size=3)
json_values = (
    scalars | flat | st.lists(scalars, max_size=2) | st.dictionaries(st.sampled_from(JSON_KEYS), flat, max_size=2)
)
NAMES = [
    *("retention", "retention_policies", "backlogQuotaMap", "backlog_quota_map", "delayedDelivery"),
    *("delayed_delivery_policies", "publishRate", "publishMaxMessageRate", "dispatchRate", "topicDispatchRate"),
    *("subscribeRate", "clusterSubscribeRate", "inactiveTopicPolicies", "inactive_topic_policies"),
    *("subscriptionTypesEnabled", "subscription_types_enabled", "autoSubscriptionCreation"),
    *("schemaCompatibilityStrategy", "encryption_required", "subscriptionDispatchRates"),
]


@given(st.dictionaries(st.sampled_from(NAMES), json_values), st.dictionaries(st.sampled_from(NAMES), json_values))
def test_nonsense_is_never_an_error(namespace: dict[str, Json], topic: dict[str, Json]) -> None:
    """A namespace may be created with anything; types stay what the features rely on."""
    resolved = resolve(TopicPolicies(), namespace, topic, cluster="c")
    for was, now in zip(TopicPolicies(), resolved, strict=True):
        assert isinstance(now, dict | type(was))


def quota(limit: str, value: int, policy: str) -> dict[str, Json]:
    return {limit: value, "policy": policy}


def test_quotas_are_resolved_each_for_itself() -> None:
    """A topic's quota of one type leaves the namespace's quota of the other type in force (rule 4.6.1)."""
    namespace: dict[str, Json] = {
        "backlog_quota_map": {"destination_storage": quota("limitSize", 100, "producer_exception")}
    }
    topic: dict[str, Json] = {"backlogQuotaMap": {"message_age": quota("limitTime", 5, "consumer_backlog_eviction")}}
    resolved = resolve(of_broker(Settings(backlogQuotaDefaultLimitGB=10)), namespace, topic)
    assert resolved.size_quota == BacklogQuota(100, QuotaPolicy.EXCEPTION)
    assert resolved.age_quota == BacklogQuota(5, QuotaPolicy.EVICT)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        (Settings(), -1),
        (Settings(backlogQuotaDefaultLimitGB=10), 10 << 30),
        (Settings(backlogQuotaDefaultLimitGB=0.5), 1 << 29),
        (Settings(backlogQuotaDefaultLimitGB=10, backlogQuotaDefaultLimitBytes=7), 7),
    ],
)
def test_broker_s_quota(settings: Settings, limit: int) -> None:
    assert of_broker(settings).size_quota.limit == limit


def test_rates_are_those_of_our_cluster() -> None:
    rate: dict[str, Json] = {"dispatchThrottlingRateInMsg": 3, "dispatchThrottlingRateInByte": 4}
    namespace: dict[str, Json] = {"topicDispatchRate": {"c": rate, "other": {"dispatchThrottlingRateInMsg": 9}}}
    topic: dict[str, Json] = {"subscriptionDispatchRates": {"s": rate}}
    resolved = resolve(TopicPolicies(), namespace, topic, cluster="c")
    assert resolved.dispatch_rate == DispatchRate(3, 4, 1, False)
    assert resolved.dispatch_rate_of("s") == DispatchRate(3, 4)
    assert resolved.dispatch_rate_of("other") == DispatchRate()


def test_a_namespace_cannot_take_back_what_the_broker_enforces() -> None:
    strict = of_broker(Settings(encryptionRequireOnProducer=True, isSchemaValidationEnforced=True))
    namespace: dict[str, Json] = {"encryption_required": False, "schema_validation_enforced": False}
    resolved = resolve(strict, namespace)
    assert resolved.encryption_required
    assert resolved.schema_validation_enforced
    assert not resolve(strict, namespace, {"schemaValidationEnforced": False}).schema_validation_enforced


def stand(**settings: Any) -> tuple[Resources, EffectivePolicies, list[str]]:
    resources = Resources(MemoryMetadataStore(), Settings(**settings))
    at_once(resources.ensure_defaults())
    policies = EffectivePolicies(resources, Settings(**settings))
    notified: list[str] = []
    policies.on_namespace = lambda namespace: notified.append(namespace.text)
    policies.on_topic = lambda topic: notified.append(topic.fqn)
    return resources, policies, notified


def test_changes_are_seen_at_once_and_told() -> None:
    resources, policies, notified = stand()
    partition = TOPIC.partition(3)
    assert policies.of(partition).retention == Retention(0, 0)
    at_once(
        resources.namespaces.update(
            NAMESPACE,
            retention_policies={"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
            max_producers_per_topic=4,
        )
    )
    assert policies.of(partition).retention == Retention(5, -1)
    at_once(resources.topic_policies.update(partition, "maxProducers", 2))
    assert (policies.of(TOPIC).max_producers, policies.of(TOPIC).retention) == (2, Retention(5, -1))
    at_once(resources.namespaces.update(NAMESPACE, retention_policies=None))
    assert (policies.of(partition).max_producers, policies.of(partition).retention) == (2, Retention(0, 0))
    at_once(resources.topic_policies.delete(TOPIC))
    assert policies.of(partition).max_producers == 4
    assert notified == ["public/default", TOPIC.fqn, "public/default", TOPIC.fqn]


def test_local_before_global() -> None:
    resources, policies, _ = stand()
    at_once(resources.topic_policies.update(TOPIC, "maxConsumers", 7, is_global=True))
    assert policies.of(TOPIC).max_consumers == 7
    at_once(resources.topic_policies.update(TOPIC, "maxConsumers", 3))
    assert policies.of(TOPIC).max_consumers == 3
    at_once(resources.topic_policies.update(TOPIC, "maxConsumers", None))
    assert policies.of(TOPIC).max_consumers == 7


def test_topic_policies_may_be_switched_off() -> None:
    resources, policies, _ = stand(topicLevelPoliciesEnabled=False)
    at_once(resources.topic_policies.update(TOPIC, "maxConsumers", 3))
    assert policies.of(TOPIC).max_consumers == 0


def test_topic_policies_survive_a_restart() -> None:
    store = MemoryMetadataStore()
    at_once(Resources(store, Settings()).topic_policies.update(TOPIC.partition(1), "messageTTL", 3))
    resources = Resources(store, Settings())
    at_once(resources.ensure_defaults())
    assert EffectivePolicies(resources, Settings()).of(TOPIC).message_ttl_s == 3
    at_once(resources.topic_policies.update(TOPIC, "messageTTL", None))
    assert Resources(store, Settings()).topic_policies.get(TOPIC) == {}


def test_system_topics_are_subject_to_no_policy() -> None:
    """No limits, no expiry and no removal as inactive apply to system topics (rule 8.2)."""
    resources, policies, _ = stand()
    at_once(resources.namespaces.update(NAMESPACE, message_ttl_in_seconds=1, max_producers_per_topic=1))
    system = policies.of(TopicName.parse("persistent://public/default/__change_events"))
    assert (system.message_ttl_s, system.max_producers, system.inactive_topics.delete) == (0, 0, False)
    assert system.schema_compatibility_strategy == "ALWAYS_COMPATIBLE"


def test_auto_creation_and_topics_per_namespace() -> None:
    """A namespace's override of automatic creation replaces the broker's settings as a whole (rule 2.12)."""
    resources, policies, _ = stand(maxTopicsPerNamespace=8)
    assert policies.auto_topic_creation(NAMESPACE) == AutoTopicCreation(True, 0)
    assert policies.max_topics(NAMESPACE) == 8
    override: dict[str, Json] = {
        "allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3,
    }  # fmt: skip
    at_once(resources.namespaces.update(NAMESPACE, autoTopicCreationOverride=override, max_topics_per_namespace=2))
    assert policies.auto_topic_creation(NAMESPACE) == AutoTopicCreation(True, 3)
    assert policies.max_topics(NAMESPACE) == 2


def test_automatic_creation_keeps_to_the_most_partitions_that_are_allowed() -> None:
    """As in Apache Pulsar where one of the two is changed at run time; without a maximum the default counts alone."""
    for most, made in ((2, 2), (0, 6), (9, 6)):
        _, policies, _ = stand(
            allowAutoTopicCreationType="partitioned", defaultNumPartitions=6, maxNumPartitionsPerPartitionedTopic=most
        )
        assert policies.auto_topic_creation(NAMESPACE) == AutoTopicCreation(True, made)
