"""Values of single policies, of namespaces and of topics."""

from __future__ import annotations

from typing import Literal

from magnetar.admin_api.models.record import ApiModel

CompatibilityChoice = Literal[
    "UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
    "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
]  # fmt: skip
"""How a new schema must fit the earlier ones; UNDEFINED: what the level above says."""
AutoUpdateChoice = Literal[
    "AutoUpdateDisabled", "Backward", "Forward", "Full", "AlwaysCompatible",
    "BackwardTransitive", "ForwardTransitive", "FullTransitive",
]  # fmt: skip
"""The older form of the same."""
SubscriptionTypeName = Literal["Exclusive", "Shared", "Failover", "Key_Shared"]
QuotaTypeName = Literal["destination_storage", "message_age"]


class DispatchRateLimit(ApiModel):
    """How fast messages are sent to consumers."""

    dispatch_throttling_rate_in_msg: int = -1
    """Messages in a period; -1 is no limit."""
    dispatch_throttling_rate_in_byte: int = -1
    """Bytes in a period; -1 is no limit."""
    relative_to_publish_rate: bool = False
    """Whether the limits come on top of the rate at which the topic is published to."""
    rate_period_in_second: int = 1
    """Length of a period in seconds."""


class PublishRateLimit(ApiModel):
    """How fast messages are taken from producers."""

    publish_throttling_rate_in_msg: int = -1
    """Messages a second; -1 is no limit."""
    publish_throttling_rate_in_byte: int = -1
    """Bytes a second; -1 is no limit."""


class SubscribeRateLimit(ApiModel):
    """How often a consumer may connect."""

    subscribe_throttling_rate_per_consumer: int = -1
    """Subscriptions in a period; -1 is no limit."""
    rate_period_in_second: int = 30
    """Length of a period in seconds."""


class RetentionPolicies(ApiModel):
    """How long and how much is kept of what every subscription acknowledged."""

    retention_time_in_minutes: int = 0
    """Minutes; 0 keeps nothing, -1 has no limit."""
    retention_size_in_mb: int = 0
    """Megabytes; 0 keeps nothing, -1 has no limit."""


class BacklogQuotaLimit(ApiModel):
    """How much or how old the backlog of a topic may be, and what happens then."""

    limit_size: int = -1
    """Bytes; -1 is no limit."""
    limit_time: int = -1
    """Seconds; -1 is no limit."""
    policy: Literal["producer_request_hold", "producer_exception", "consumer_backlog_eviction"] | None = None
    """Producers wait, producers are refused, or the oldest messages are dropped."""
    limit: int | None = None
    """An older name of limitSize."""


class PersistencePolicies(ApiModel):
    """Copies in Apache BookKeeper; magnetar keeps one, and stores and shows these numbers only."""

    bookkeeper_ensemble: int = 0
    bookkeeper_write_quorum: int = 0
    bookkeeper_ack_quorum: int = 0
    managed_ledger_max_mark_delete_rate: float = 0.0


class DelayedDeliveryPolicies(ApiModel):
    """Messages that are delivered later than they are sent."""

    tick_time: int = 0
    """Milliseconds between two looks at what is due."""
    active: bool = False
    max_delivery_delay_in_millis: int = 0
    """The longest delay; 0 is no limit."""


class InactiveTopicPolicies(ApiModel):
    """Deletion of unused topics."""

    inactive_topic_delete_mode: Literal["delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"] = (
        "delete_when_no_subscriptions"
    )
    max_inactive_duration_seconds: int = 0
    delete_while_inactive: bool = False


class AutoTopicCreationOverride(ApiModel):
    """Whether topics are created for the first client that names them."""

    allow_auto_topic_creation: bool = False
    topic_type: Literal["partitioned", "non-partitioned"] | None = None
    default_num_partitions: int | None = None
    """For topicType partitioned only."""


class AutoSubscriptionCreationOverride(ApiModel):
    """Whether subscriptions are created for the first consumer that names them."""

    allow_auto_subscription_creation: bool = False


class EntryFilters(ApiModel):
    """Filters that a broker has as plugins; magnetar has none."""

    entry_filter_names: str = ""
    """Names, with commas between them."""


class OffloadPolicies(ApiModel):
    """When ledgers are copied to an object store, and which; the rest of Pulsar's members are kept as they are."""

    managed_ledger_offload_driver: str | None = None
    """S3, aws-s3, google-cloud-storage, azureblob, aliyun-oss or filesystem."""
    managed_ledger_offload_bucket: str | None = None
    managed_ledger_offload_region: str | None = None
    file_system_uri: str | None = None
    file_system_driver: bool | None = None
    """In answers only, as the next two: which driver it is."""
    s3_driver: bool | None = None
    gcs_driver: bool | None = None
    file_system_profile_path: str | None = None
    offloaders_directory: str | None = None
    managed_ledger_offload_max_threads: int | None = None
    managed_ledger_offload_read_threads: int | None = None
    managed_ledger_offload_prefetch_rounds: int | None = None
    managed_ledger_offload_threshold_in_bytes: int | None = None
    managed_ledger_offload_threshold_in_seconds: int | None = None
    managed_ledger_offload_deletion_lag_in_millis: int | None = None
    managed_ledger_offloaded_read_priority: str | None = None
    managed_ledger_extra_configurations: dict[str, str] | None = None
    s3_managed_ledger_offload_max_block_size_in_bytes: int | None = None
    s3_managed_ledger_offload_read_buffer_size_in_bytes: int | None = None
    s3_managed_ledger_offload_role_session_name: str | None = None
    gcs_managed_ledger_offload_max_block_size_in_bytes: int | None = None
    gcs_managed_ledger_offload_read_buffer_size_in_bytes: int | None = None
