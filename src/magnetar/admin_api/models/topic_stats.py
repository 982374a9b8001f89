"""Statistics of a topic, its producers, subscriptions and consumers.

Numbers are since the topic was loaded, rates over the last minute; points in time are milliseconds since 1970, 0 for
never.
"""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel
from magnetar.admin_api.models.topics import PartitionedTopicMetadata


class PublisherStatistics(ApiModel):
    """One producer."""

    access_mode: str | None = None
    """Shared, Exclusive, WaitForExclusive or ExclusiveWithFencing."""
    msg_rate_in: float = 0.0
    """Messages a second."""
    msg_throughput_in: float = 0.0
    """Bytes a second."""
    average_msg_size: float = 0.0
    chunked_message_rate: float = 0.0
    producer_id: int = 0
    supports_partial_producer: bool = False
    producer_name: str | None = None
    address: str | None = None
    connected_since: str | None = None
    client_version: str | None = None
    metadata: dict[str, str] | None = None
    msg_drop_rate: float | None = None
    """Of non-persistent topics: messages a second that no consumer took."""


class DrainingHashStatistics(ApiModel):
    """A hash of keys that waits until another consumer has acknowledged its messages (Key_Shared)."""

    hash: int = 0
    unack_msgs: int = 0
    blocked_attempts: int = 0


class ConsumerStatistics(ApiModel):
    """One consumer."""

    msg_rate_out: float = 0.0
    """Messages a second, over the last minute."""
    msg_throughput_out: float = 0.0
    """Bytes a second."""
    bytes_out_counter: int = 0
    """Bytes since the topic was loaded."""
    msg_out_counter: int = 0
    msg_rate_redeliver: float = 0.0
    message_ack_rate: float = 0.0
    chunked_message_rate: float = 0.0
    consumer_name: str = ""
    available_permits: int = 0
    """Messages that it may still be sent."""
    unacked_messages: int = 0
    """Messages that it has and did not acknowledge."""
    avg_messages_per_entry: int = 0
    blocked_consumer_on_unacked_msgs: bool = False
    """Whether it gets nothing because it has too many unacknowledged messages."""
    draining_hashes_count: int = 0
    draining_hashes_cleared_total: int = 0
    draining_hashes_unacked_messages: int = 0
    draining_hashes: list[DrainingHashStatistics] | None = None
    key_hash_range_arrays: list[tuple[int, int]] | None = None
    """Hashes of keys that it is served, first and last (Key_Shared)."""
    address: str | None = None
    connected_since: str | None = None
    client_version: str | None = None
    last_acked_timestamp: int = 0
    last_consumed_timestamp: int = 0
    last_consumed_flow_timestamp: int = 0
    metadata: dict[str, str] | None = None
    last_acked_time: str = ""
    last_consumed_time: str = ""
    read_position_when_joining: str | None = None
    key_hash_ranges: list[str] | None = None
    msg_drop_rate: float | None = None


class SubscriptionStatistics(ApiModel):
    """One subscription."""

    msg_rate_out: float = 0.0
    """Messages a second, over the last minute."""
    msg_throughput_out: float = 0.0
    """Bytes a second."""
    bytes_out_counter: int = 0
    """Bytes since the topic was loaded."""
    msg_out_counter: int = 0
    msg_rate_redeliver: float = 0.0
    message_ack_rate: float = 0.0
    chunked_message_rate: float = 0.0
    msg_backlog: int = 0
    """Entries that are not acknowledged."""
    backlog_size: int = 0
    """Their bytes; -1 if it was not asked for."""
    earliest_msg_publish_time_in_backlog: int = 0
    msg_backlog_no_delayed: int = 0
    blocked_subscription_on_unacked_msgs: bool = False
    msg_delayed: int = 0
    """Messages that are due later."""
    msg_in_replay: int = 0
    unacked_messages: int = 0
    """Messages that consumers have and did not acknowledge."""
    type: str = ""
    """Exclusive, Shared, Failover or Key_Shared; None without a consumer."""
    active_consumer_name: str | None = None
    msg_rate_expired: float = 0.0
    total_msg_expired: int = 0
    last_expire_timestamp: int = 0
    last_consumed_flow_timestamp: int = 0
    last_consumed_timestamp: int = 0
    last_acked_timestamp: int = 0
    last_mark_delete_advanced_timestamp: int = 0
    consumers: list[ConsumerStatistics] = []
    is_durable: bool = False
    is_replicated: bool = False
    entries_lost_to_trimming: int | None = None
    """magnetar's own: entries that went before they were acknowledged."""
    allow_out_of_order_delivery: bool = False
    key_shared_mode: str | None = None
    consumers_after_mark_delete_position: dict[str, str] = {}
    draining_hashes_count: int = 0
    draining_hashes_cleared_total: int = 0
    draining_hashes_unacked_messages: int = 0
    non_contiguous_deleted_messages_ranges: int = 0
    non_contiguous_deleted_messages_ranges_serialized_size: int = 0
    delayed_message_index_size_in_bytes: int = 0
    subscription_properties: dict[str, str] = {}
    filter_processed_msg_count: int = 0
    filter_accepted_msg_count: int = 0
    filter_rejected_msg_count: int = 0
    filter_rescheduled_msg_count: int = 0
    dispatch_throttled_msg_events_by_subscription_limit: int = 0
    dispatch_throttled_bytes_events_by_subscription_limit: int = 0
    dispatch_throttled_msg_events_by_topic_limit: int = 0
    dispatch_throttled_bytes_events_by_topic_limit: int = 0
    dispatch_throttled_msg_events_by_broker_limit: int = 0
    dispatch_throttled_bytes_events_by_broker_limit: int = 0
    msg_drop_rate: float | None = None
    durable: bool = False
    replicated: bool = False


class CompactionStatistics(ApiModel):
    """The runs of compaction."""

    last_compaction_removed_event_count: int = 0
    last_compaction_succeed_timestamp: int = 0
    last_compaction_failed_timestamp: int = 0
    last_compaction_duration_time_in_mills: int = 0


class TopicStatistics(ApiModel):
    """One topic."""

    msg_rate_in: float = 0.0
    """Messages a second that are published."""
    msg_throughput_in: float = 0.0
    """Bytes a second."""
    msg_rate_out: float = 0.0
    """Messages a second that are sent to consumers."""
    msg_throughput_out: float = 0.0
    bytes_in_counter: int = 0
    """Bytes since the topic was loaded."""
    msg_in_counter: int = 0
    system_topic_bytes_in_counter: int = 0
    bytes_out_counter: int = 0
    msg_out_counter: int = 0
    bytes_out_internal_counter: int = 0
    average_msg_size: float = 0.0
    msg_chunk_published: bool = False
    storage_size: int = 0
    """Bytes that are stored."""
    backlog_size: int = 0
    """Bytes from the oldest unacknowledged message on."""
    backlog_quota_limit_size: int = 0
    backlog_quota_limit_time: int = 0
    oldest_backlog_message_age_seconds: int = 0
    oldest_backlog_message_subscription_name: str | None = None
    publish_rate_limited_times: int = 0
    earliest_msg_publish_time_in_backlogs: int = 0
    offloaded_storage_size: int = 0
    last_offload_ledger_id: int = 0
    last_offload_success_time_stamp: int = 0
    last_offload_failure_time_stamp: int = 0
    ongoing_txn_count: int = 0
    aborted_txn_count: int = 0
    committed_txn_count: int = 0
    publishers: list[PublisherStatistics] = []
    waiting_publishers: int = 0
    subscriptions: dict[str, SubscriptionStatistics] = {}
    """By name."""
    replication: dict[str, dict[str, object]] = {}
    """By cluster."""
    deduplication_status: str | None = None
    topic_epoch: int | None = None
    non_contiguous_deleted_messages_ranges: int = 0
    non_contiguous_deleted_messages_ranges_serialized_size: int = 0
    delayed_message_index_size_in_bytes: int = 0
    last_publish_time_stamp: int | None = None
    topic_creation_time_stamp: int | None = None
    compaction: CompactionStatistics | None = None
    owner_broker: str | None = None
    """host:port of the broker that serves it."""
    msg_drop_rate: float | None = None


class PartitionedTopicStatistics(TopicStatistics):
    """All partitions of a topic together."""

    metadata: PartitionedTopicMetadata | None = None
    partitions: dict[str, TopicStatistics] = {}
    """By the partition's full name, unless perPartition=false."""
