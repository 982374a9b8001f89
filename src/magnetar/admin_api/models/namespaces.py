"""Namespaces: all policies in one object."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import ConfigDict

from magnetar.admin_api.models.policies import (
    AutoSubscriptionCreationOverride,
    AutoTopicCreationOverride,
    AutoUpdateChoice,
    BacklogQuotaLimit,
    CompatibilityChoice,
    DelayedDeliveryPolicies,
    DispatchRateLimit,
    EntryFilters,
    InactiveTopicPolicies,
    OffloadPolicies,
    PersistencePolicies,
    PublishRateLimit,
    RetentionPolicies,
    SubscribeRateLimit,
    SubscriptionTypeName,
)
from magnetar.admin_api.models.record import ApiModel, outside_name

_CAMEL: Final = frozenset(
    (
        "cluster_dispatch_rate", "topic_dispatch_rate", "subscription_dispatch_rate", "replicator_dispatch_rate",
        "cluster_subscribe_rate", "publish_max_message_rate", "deduplication_enabled",
        "deduplication_snapshot_interval_seconds", "auto_topic_creation_override",
        "auto_subscription_creation_override", "anti_affinity_group", "entry_filters",
        "dispatcher_pause_on_ack_state_persistent_enabled", "cluster_that_can_delete_namespace",
    )
)  # fmt: skip
"""The members of Policies whose outside names are in camel case; the others have underscores outside, too."""


class BundlesData(ApiModel):
    """The pieces of a namespace's hash space."""

    boundaries: list[str] = []
    """Ascending, from 0x00000000 to 0xffffffff."""
    num_bundles: int = 0


class AuthPolicies(ApiModel):
    """What is granted in a namespace."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=None)

    namespace_auth: dict[str, list[str]] = {}
    """Actions by role."""
    destination_auth: dict[str, dict[str, list[str]]] = {}
    """Actions by role, by topic."""
    subscription_auth_roles: dict[str, list[str]] = {}
    """Roles by subscription."""


class Policies(ApiModel):
    """Every policy of a namespace; what is missing or null is not set there."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=lambda name: outside_name(name) if name in _CAMEL else name
    )

    auth_policies: AuthPolicies | None = None
    replication_clusters: list[str] = []
    """Clusters that have the namespace."""
    allowed_clusters: list[str] = []
    bundles: BundlesData | None = None
    backlog_quota_map: dict[str, BacklogQuotaLimit] = {}
    """By type: destination_storage, message_age."""
    cluster_dispatch_rate: dict[str, DispatchRateLimit] = {}
    topic_dispatch_rate: dict[str, DispatchRateLimit] = {}
    """By cluster, as the other rates."""
    subscription_dispatch_rate: dict[str, DispatchRateLimit] = {}
    replicator_dispatch_rate: dict[str, DispatchRateLimit] = {}
    cluster_subscribe_rate: dict[str, SubscribeRateLimit] = {}
    publish_max_message_rate: dict[str, PublishRateLimit] = {}
    persistence: PersistencePolicies | None = None
    deduplication_enabled: bool | None = None
    deduplication_snapshot_interval_seconds: int | None = None
    auto_topic_creation_override: AutoTopicCreationOverride | None = None
    auto_subscription_creation_override: AutoSubscriptionCreationOverride | None = None
    latency_stats_sample_rate: dict[str, int] = {}
    message_ttl_in_seconds: int | None = None
    subscription_expiration_time_minutes: int | None = None
    retention_policies: RetentionPolicies | None = None
    deleted: bool = False
    anti_affinity_group: str | None = None
    encryption_required: bool = False
    delayed_delivery_policies: DelayedDeliveryPolicies | None = None
    inactive_topic_policies: InactiveTopicPolicies | None = None
    subscription_auth_mode: str = "None"
    max_producers_per_topic: int | None = None
    max_consumers_per_topic: int | None = None
    max_consumers_per_subscription: int | None = None
    max_unacked_messages_per_consumer: int | None = None
    max_unacked_messages_per_subscription: int | None = None
    max_subscriptions_per_topic: int | None = None
    max_topics_per_namespace: int | None = None
    compaction_threshold: int | None = None
    offload_threshold: int = -1
    offload_threshold_in_seconds: int = -1
    offload_deletion_lag_ms: int | None = None
    offload_policies: OffloadPolicies | None = None
    schema_auto_update_compatibility_strategy: AutoUpdateChoice | None = None
    schema_compatibility_strategy: CompatibilityChoice = "UNDEFINED"
    is_allow_auto_update_schema: bool | None = None
    schema_validation_enforced: bool = False
    subscription_types_enabled: list[SubscriptionTypeName] = []
    properties: dict[str, str] = {}
    resource_group_name: str | None = None
    entry_filters: EntryFilters | None = None
    migrated: bool = False
    dispatcher_pause_on_ack_state_persistent_enabled: bool | None = None
    cluster_that_can_delete_namespace: str | None = None
