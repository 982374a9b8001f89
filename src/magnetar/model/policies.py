"""Records stored and sent as JSON, with Pulsar's field names (rules 11.2, 11.3.2).

They stay plain JSON objects, so that a policy that has no effect yet is still kept and shown; what the broker acts on
is read through the small views at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = dict[str, Json]

PARTITIONS_MAX: Final = 10_000
"""The most partitions of a topic, whatever settings allow: each takes some ten kilobytes of memory while loaded."""

_HASHES: Final = 1 << 32


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CLUSTER_FIELDS: Final = _words(
    "serviceUrl serviceUrlTls brokerServiceUrl brokerServiceUrlTls proxyServiceUrl authenticationPlugin "
    "authenticationParameters proxyProtocol peerClusterNames brokerClientTlsEnabled tlsAllowInsecureConnection "
    "brokerClientTlsEnabledWithKeyStore brokerClientTlsTrustStoreType brokerClientTlsTrustStore "
    "brokerClientTlsTrustStorePassword brokerClientTlsKeyStoreType brokerClientTlsKeyStore "
    "brokerClientTlsKeyStorePassword brokerClientTrustCertsFilePath brokerClientCertificateFilePath "
    "brokerClientKeyFilePath brokerClientSslFactoryPlugin brokerClientSslFactoryPluginParams listenerName"
)

POLICY_FIELDS: Final = _words(
    "auth_policies replication_clusters allowed_clusters bundles backlog_quota_map clusterDispatchRate "
    "topicDispatchRate subscriptionDispatchRate replicatorDispatchRate clusterSubscribeRate publishMaxMessageRate "
    "persistence deduplicationEnabled deduplicationSnapshotIntervalSeconds autoTopicCreationOverride "
    "autoSubscriptionCreationOverride latency_stats_sample_rate message_ttl_in_seconds "
    "subscription_expiration_time_minutes retention_policies deleted antiAffinityGroup encryption_required "
    "delayed_delivery_policies inactive_topic_policies subscription_auth_mode max_producers_per_topic "
    "max_consumers_per_topic max_consumers_per_subscription max_unacked_messages_per_consumer "
    "max_unacked_messages_per_subscription max_subscriptions_per_topic max_topics_per_namespace "
    "compaction_threshold offload_threshold offload_threshold_in_seconds offload_deletion_lag_ms offload_policies "
    "schema_auto_update_compatibility_strategy schema_compatibility_strategy is_allow_auto_update_schema "
    "schema_validation_enforced subscription_types_enabled properties resource_group_name entryFilters migrated "
    "dispatcherPauseOnAckStatePersistentEnabled clusterThatCanDeleteNamespace"
)


def bundles(count: int) -> JsonObject:
    """Cut the 32-bit hash space into ``count`` even pieces (rule 14.16)."""
    boundaries: list[Json] = [f"0x{_HASHES * i // count:08x}" for i in range(count)]
    return {"boundaries": [*boundaries, "0xffffffff"], "numBundles": count}


def default_policies(cluster: str, bundle_count: int) -> JsonObject:
    """Return the policies of a namespace that was created without any."""
    return {
        "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
        "replication_clusters": [cluster],
        "allowed_clusters": [],
        "bundles": bundles(bundle_count),
        "backlog_quota_map": {},
        "clusterDispatchRate": {},
        "topicDispatchRate": {},
        "subscriptionDispatchRate": {},
        "replicatorDispatchRate": {},
        "clusterSubscribeRate": {},
        "publishMaxMessageRate": {},
        "latency_stats_sample_rate": {},
        "deleted": False,
        "encryption_required": False,
        "subscription_auth_mode": "None",
        "offload_threshold": -1,
        "offload_threshold_in_seconds": -1,
        "schema_compatibility_strategy": "UNDEFINED",
        "schema_validation_enforced": False,
        "subscription_types_enabled": [],
        "properties": {},
        "migrated": False,
        "clusterThatCanDeleteNamespace": cluster,
    }


@dataclass(frozen=True, slots=True)
class PartitionedTopic:
    """How many partitions a topic has, and its properties."""

    partitions: int
    properties: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        """Return what GET .../partitions shows."""
        shown: JsonObject = {"partitions": self.partitions, "deleted": False}
        if self.properties:
            shown["properties"] = dict(self.properties)
        return shown


class AutoTopicCreation(NamedTuple):
    """Namespace override of topic auto-creation (rule 2.12)."""

    allowed: bool
    partitions: int
    """0 for a topic without partitions."""


class Retention(NamedTuple):
    """How long acknowledged messages stay (rule 4.4)."""

    minutes: int
    megabytes: int


class NamespacePolicies:
    """What the broker asks of one namespace's policies; ``None``: the broker's setting counts."""

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, Json]) -> None:
        self.fields = fields

    @property
    def auto_topic_creation(self) -> AutoTopicCreation | None:
        """``autoTopicCreationOverride``."""
        found = self.fields.get("autoTopicCreationOverride")
        if not isinstance(found, dict):
            return None
        partitioned = found.get("topicType") == "partitioned"
        return AutoTopicCreation(
            found.get("allowAutoTopicCreation") is True,
            _int(found.get("defaultNumPartitions"), 1) if partitioned else 0,
        )

    @property
    def auto_subscription_creation(self) -> bool | None:
        """``autoSubscriptionCreationOverride``."""
        found = self.fields.get("autoSubscriptionCreationOverride")
        return found.get("allowAutoSubscriptionCreation") is True if isinstance(found, dict) else None

    @property
    def retention(self) -> Retention | None:
        """``retention_policies``."""
        found = self.fields.get("retention_policies")
        if not isinstance(found, dict):
            return None
        return Retention(_int(found.get("retentionTimeInMinutes"), 0), _int(found.get("retentionSizeInMB"), 0))

    @property
    def deduplication(self) -> bool | None:
        """``deduplicationEnabled``."""
        found = self.fields.get("deduplicationEnabled")
        return found if isinstance(found, bool) else None


def _int(value: Json, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
