"""The families of topics, subscriptions and clients, each with the attribute that holds its number.

The groups differ in their labels, and in the value of :mod:`magnetar.admin.values.counters` that has the attributes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.admin.routes.metrics.family import Family

_TOPIC: Final = "namespace topic"
_SUBSCRIPTION: Final = "namespace topic subscription"


class Column(NamedTuple):
    """One family and where its number is found."""

    family: Family
    attribute: str


def _columns(labels: str, rows: str, setting: str = "") -> tuple[Column, ...]:
    made = []
    for row in filter(None, map(str.strip, rows.splitlines())):
        name, attribute, said = row.split(" ", 2)
        made.append(Column(Family(name, "gauge", labels, said, setting), attribute))
    return tuple(made)


TOPIC: Final = _columns(
    _TOPIC,
    """
    pulsar_subscriptions_count subscription_count Subscriptions of the topic.
    pulsar_producers_count producers Connected producers.
    pulsar_consumers_count consumers Connected consumers of all subscriptions.
    pulsar_rate_in rate_in Messages published per second, in the last period.
    pulsar_rate_out rate_out Messages sent to consumers per second, in the last period.
    pulsar_throughput_in throughput_in Bytes published per second, in the last period.
    pulsar_throughput_out throughput_out Bytes sent to consumers per second, in the last period.
    pulsar_average_msg_size average_size Bytes per published message, in the last period.
    pulsar_in_messages_total messages_in Messages published since the topic was loaded.
    pulsar_in_bytes_total bytes_in Bytes published since the topic was loaded.
    pulsar_msg_backlog backlog Entries that subscriptions have not acknowledged, added up.
    pulsar_publish_rate_limit_times publish_limited How often the publish rate made a connection wait.
    pulsar_storage_size storage_bytes Bytes of the retained entries.
    pulsar_storage_logical_size storage_bytes Bytes of the retained entries, without copies.
    pulsar_storage_backlog_size backlog_bytes Bytes after what the slowest subscription has acknowledged.
    """,
)
"""Of :class:`~magnetar.admin.values.counters.TopicCounters`, and two numbers made of them."""

STORED: Final = _columns(
    _TOPIC,
    """
    pulsar_storage_offloaded_size offloaded_bytes Bytes of the entries that have a copy in an object store.
    pulsar_storage_backlog_quota_limit quota_bytes The backlog quota in bytes, -1 without one.
    pulsar_storage_backlog_quota_limit_time quota_seconds The backlog quota in seconds, -1 without one.
    pulsar_storage_backlog_age_seconds oldest_seconds Age of the oldest unacknowledged message as of the last check, -1 if there was none to look at.
    pulsar_storage_write_rate write_rate Entries stored per second, in the last period.
    pulsar_storage_read_rate read_rate Entries read for consumers per second, in the last period.
    pulsar_storage_read_cache_misses_rate missed_rate Entries read from the disk per second, in the last period.
    pulsar_delayed_message_index_size_bytes delayed_index_bytes Memory of the index of delayed messages.
    """,  # noqa: E501 - a family is a line
)
"""Of :class:`~magnetar.admin.values.counters.StoredCounters`."""

EVICTIONS: Final = Family(
    "pulsar_storage_backlog_quota_exceeded_evictions_total", "gauge", "namespace topic quota_type",
    "Checks that found the backlog quota exceeded and evicted messages.",
)  # fmt: skip

_LATENCY_WORDS: Final = (
    "le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000", "overflow", "count", "sum",
)  # fmt: skip
_SIZE_WORDS: Final = (
    "le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb", "le_overflow", "count",
    "sum",
)  # fmt: skip


def _buckets(prefix: str, words: tuple[str, ...], what: str, unit: str) -> tuple[Family, ...]:
    made = []
    for word in words:
        said = f"{what}: "
        if word == "count":
            said += "number, in the last period."
        elif word == "sum":
            said += f"sum in {unit}, in the last period."
        elif word.endswith("overflow"):
            said += "number above the last bound, in the last period."
        else:
            said += f"number up to {word[3:].replace('_', '.' if word == 'le_0_5' else ' ')} and above the bound before"
            said += f"{', milliseconds' if unit == 'microseconds' else ''}, in the last period."
        made.append(Family(f"{prefix}_{word}", "gauge", _TOPIC, said))
    return tuple(made)


WRITES: Final = (
    *_buckets(
        "pulsar_storage_write_latency", _LATENCY_WORDS,
        "Time from the arrival of a group's first entry to the receipts of its entries", "microseconds",
    ),
    *_buckets(
        "pulsar_storage_ledger_write_latency", _LATENCY_WORDS, "Time of the write and sync that stored entries",
        "microseconds",
    ),
    *_buckets("pulsar_entry_size", _SIZE_WORDS, "Size of stored entries", "bytes"),
)  # fmt: skip
"""Of :class:`~magnetar.admin.values.counters.WriteCounters`, in this order."""

COMPACTION: Final = _columns(
    _TOPIC,
    """
    pulsar_compaction_removed_event_count removed Messages that the last run of compaction removed.
    pulsar_compaction_succeed_count succeeded Runs of compaction that succeeded since the topic was loaded.
    pulsar_compaction_failed_count failed Runs of compaction that failed since the topic was loaded.
    pulsar_compaction_duration_time_in_mills duration_ms Milliseconds that the last run took.
    pulsar_compaction_read_throughput read_rate Megabytes per second that the last run read.
    pulsar_compaction_write_throughput write_rate Megabytes per second that the last run wrote.
    pulsar_compaction_compacted_entries_count entries Entries of the compacted view.
    pulsar_compaction_compacted_entries_size bytes Bytes of the compacted view.
    """,
)
COMPACTION_LATENCY: Final = _buckets(
    "pulsar_compaction_latency", _LATENCY_WORDS, "Time until what the last run wrote was on the disk", "microseconds"
)

TRANSACTIONS: Final = _columns(
    _TOPIC,
    """
    pulsar_txn_tb_active_total active Open transactions that have sent to the topic.
    pulsar_txn_tb_committed_total committed Committed transactions that had sent to the topic, since it was loaded.
    pulsar_txn_tb_aborted_total aborted Aborted transactions that had sent to the topic, since it was loaded.
    """,
)

SUBSCRIPTION: Final = _columns(
    _SUBSCRIPTION,
    """
    pulsar_subscription_back_log backlog Entries that are not acknowledged.
    pulsar_subscription_back_log_no_delayed backlog_due Entries that are not acknowledged, without delayed ones.
    pulsar_subscription_delayed delayed Entries that wait for their time.
    pulsar_subscription_in_replay in_replay Entries that have to go out again.
    pulsar_subscription_unacked_messages unacked Messages that consumers have and have not acknowledged.
    pulsar_subscription_blocked_on_unacked_messages blocked 1 if nothing is sent because too much is unacknowledged.
    pulsar_subscription_consumers_count consumers Connected consumers.
    pulsar_subscription_msg_rate_out rate_out Messages sent per second, in the last period.
    pulsar_subscription_msg_throughput_out throughput_out Bytes sent per second, in the last period.
    pulsar_subscription_msg_rate_redeliver rate_redelivered Messages sent again per second, in the last period.
    pulsar_subscription_msg_ack_rate rate_acked Entries acknowledged per second, in the last period.
    pulsar_subscription_msg_rate_expired rate_expired Entries per second that time to live or a quota took, in the last period.
    pulsar_subscription_total_msg_expired expired Entries that time to live or a quota took, since the topic was loaded.
    pulsar_subscription_msg_drop_rate rate_dropped Messages per second that no consumer of a non-persistent topic could take, in the last period.
    pulsar_subscription_last_expire_timestamp last_expired_ms When entries last expired, in milliseconds since 1970.
    pulsar_subscription_last_acked_timestamp last_acked_ms When a consumer last acknowledged, in milliseconds since 1970.
    pulsar_subscription_last_consumed_flow_timestamp last_flow_ms When a consumer last asked for messages, in milliseconds since 1970.
    pulsar_subscription_last_consumed_timestamp last_sent_ms When messages were last sent, in milliseconds since 1970.
    pulsar_subscription_last_mark_delete_advanced_timestamp last_mark_ms When the first unacknowledged entry last changed, in milliseconds since 1970.
    pulsar_out_messages_total messages_out Messages sent to consumers since the topic was loaded.
    pulsar_out_bytes_total bytes_out Bytes sent to consumers since the topic was loaded.
    """,  # noqa: E501 - a family is a line
)

DISPATCH_THROTTLED: Final = tuple(
    Family(
        f"pulsar_subscription_dispatch_throttled_{word}_events", "gauge", f"{_SUBSCRIPTION} reason",
        f"How often a limit of {what} held up a subscription that has limits of rates; a resource group's is broker.",
    )
    for word, what in (("msg", "messages"), ("bytes", "bytes"))
)  # fmt: skip

SUBSCRIPTION_BACKLOG: Final = _columns(
    _SUBSCRIPTION,
    "magnetar_subscription_backlog_bytes backlog_bytes Bytes after what the subscription has acknowledged.",
    "exposeSubscriptionBacklogSizeInPrometheus",
)

CONSUMER: Final = _columns(
    _SUBSCRIPTION + " consumer_name consumer_id",
    """
    pulsar_consumer_msg_rate_redeliver rate_redelivered Messages sent again per second, in the last period.
    pulsar_consumer_unacked_messages unacked Messages it has not acknowledged.
    pulsar_consumer_blocked_on_unacked_messages blocked 1 if it gets nothing because too much is unacknowledged.
    pulsar_consumer_msg_rate_out rate_out Messages sent per second, in the last period.
    pulsar_consumer_msg_ack_rate rate_acked Entries acknowledged per second, in the last period.
    pulsar_consumer_msg_throughput_out throughput_out Bytes sent per second, in the last period.
    pulsar_consumer_available_permits permits Messages that it is ready to take.
    pulsar_out_messages_total messages_out Messages sent to consumers since the topic was loaded.
    pulsar_out_bytes_total bytes_out Bytes sent to consumers since the topic was loaded.
    """,
    "exposeConsumerLevelMetricsInPrometheus",
)

PRODUCER: Final = _columns(
    "namespace topic producer_name producer_id",
    """
    pulsar_producer_msg_rate_in rate_in Messages published per second, in the last period.
    pulsar_producer_msg_throughput_in throughput_in Bytes published per second, in the last period.
    pulsar_producer_msg_average_Size average_size Bytes per published message, in the last period.
    """,
    "exposeProducerLevelMetricsInPrometheus",
)

CURSOR: Final = _columns(
    "namespace ledger_name cursor_name",
    """
    pulsar_ml_cursor_nonContiguousDeletedMessagesRange ranges Ranges of acknowledged entries after a gap.
    pulsar_ml_cursor_persistLedgerSucceed written Records with acknowledgements that were written since the start.
    pulsar_ml_cursor_persistLedgerErrors lost Records with acknowledgements that the disk refused since the start.
    pulsar_ml_cursor_writeLedgerSize bytes Bytes of the records with acknowledgements since the start.
    pulsar_ml_cursor_writeLedgerLogicalSize bytes Bytes of the records with acknowledgements, without copies.
    """,
    "exposeManagedCursorMetricsInPrometheus",
)
