"""The families of the broker, of its bundles and of its namespaces."""

from __future__ import annotations

from typing import Final, get_args

from magnetar.admin.routes.metrics.family import Family, Kind

TOPICS_COUNT: Final = Family("pulsar_topics_count", "gauge", "namespace", "Loaded topics of the namespace.")


def _families(rows: str, labels: str = "", setting: str = "") -> tuple[Family, ...]:
    """One per line: name, kind, labels in brackets unless all have the same, what it says."""
    made = []
    for row in filter(None, map(str.strip, rows.splitlines())):
        name, kind, said = row.split(" ", 2)
        own = labels
        if said.startswith("["):
            own, _, said = said[1:].partition("] ")
        made.append(Family(name, _kind(kind), own, said, setting))
    return tuple(made)


def _kind(word: str) -> Kind:
    for kind in get_args(Kind):
        if kind == word:
            found: Kind = kind
            return found
    raise ValueError(word)


OF_NAMESPACE: Final = _families(
    """
    pulsar_out_messages_total gauge Messages sent to consumers since the topics were loaded.
    pulsar_out_bytes_total gauge Bytes sent to consumers since the topics were loaded.
    pulsar_subscription_delayed gauge Entries that wait for their time.
    """,
    "namespace",
)

LEDGER: Final = _families(
    """
    pulsar_ml_AddEntryBytesRate gauge Bytes stored per second, in the last period.
    pulsar_ml_AddEntryWithReplicasBytesRate gauge Bytes stored per second; there is one replica.
    pulsar_ml_AddEntryMessagesRate gauge Entries stored per second, in the last period.
    pulsar_ml_AddEntrySucceed gauge Entries stored in the last period.
    pulsar_ml_AddEntryErrors gauge Entries that the disk refused in the last period.
    pulsar_ml_AddEntryLatencyBuckets_OVERFLOW gauge Entries that waited longer than the last bound.
    pulsar_ml_LedgerAddEntryLatencyBuckets_OVERFLOW gauge Entries whose write took longer than the last bound.
    pulsar_ml_EntrySizeBuckets_OVERFLOW gauge Entries larger than the last bound.
    pulsar_ml_MarkDeleteRate gauge Records with acknowledgements per second, in the last period.
    pulsar_ml_NumberOfMessagesInBacklog gauge Entries that subscriptions have not acknowledged, added up.
    pulsar_ml_ReadEntriesBytesRate gauge Bytes read for consumers per second, in the last period.
    pulsar_ml_ReadEntriesErrors gauge Reads of the disk that failed in the last period.
    pulsar_ml_ReadEntriesOpsCacheMissesRate gauge Entries read from the disk per second, in the last period.
    pulsar_ml_ReadEntriesRate gauge Entries read for consumers per second, in the last period.
    pulsar_ml_ReadEntriesSucceeded gauge Reads of the disk that succeeded in the last period.
    pulsar_ml_StoredMessagesSize gauge Bytes of the retained entries.
    """,
    "namespace",
    "exposeManagedLedgerMetricsInPrometheus",
)
LEDGER_BUCKETS: Final = _families(
    """
    pulsar_ml_AddEntryLatencyBuckets gauge Entries by the milliseconds that they waited for the disk, in the last period.
    pulsar_ml_LedgerAddEntryLatencyBuckets gauge Entries by the milliseconds of the write that stored them, in the last period.
    pulsar_ml_EntrySizeBuckets gauge Entries by their size in bytes, in the last period.
    """,  # noqa: E501 - a family is a line
    "namespace quantile",
    "exposeManagedLedgerMetricsInPrometheus",
)
BUNDLE: Final = _families(
    """
    pulsar_bundle_msg_rate_in gauge Messages published per second.
    pulsar_bundle_msg_rate_out gauge Messages sent to consumers per second.
    pulsar_bundle_topics_count gauge Loaded topics of the bundle.
    pulsar_bundle_consumer_count gauge Connected consumers.
    pulsar_bundle_producer_count gauge Connected producers.
    pulsar_bundle_msg_throughput_in gauge Bytes published per second.
    pulsar_bundle_msg_throughput_out gauge Bytes sent to consumers per second.
    """,
    "broker bundle metric",
    "exposeBundlesMetricsInPrometheus",
)

SUMS: Final = _families(
    """
    pulsar_broker_topics_count gauge Loaded topics.
    pulsar_broker_subscriptions_count gauge Subscriptions of loaded topics.
    pulsar_broker_producers_count gauge Connected producers.
    pulsar_broker_consumers_count gauge Connected consumers.
    pulsar_broker_rate_in gauge Messages published per second, in the last period.
    pulsar_broker_rate_out gauge Messages sent to consumers per second, in the last period.
    pulsar_broker_throughput_in gauge Bytes published per second, in the last period.
    pulsar_broker_throughput_out gauge Bytes sent to consumers per second, in the last period.
    pulsar_broker_msg_backlog gauge Entries that subscriptions have not acknowledged, added up.
    pulsar_broker_storage_size gauge Bytes of the retained entries.
    pulsar_broker_storage_logical_size gauge Bytes of the retained entries, without copies.
    pulsar_broker_storage_write_rate gauge Entries stored per second, in the last period.
    pulsar_broker_storage_read_rate gauge Entries read for consumers per second, in the last period.
    pulsar_broker_storage_read_cache_misses_rate gauge Entries read from the disk per second, in the last period.
    pulsar_ml_count gauge Managed ledgers of loaded topics.
    pulsar_ml_cache_hits_rate gauge Entries that the cache gave per second, in the last period.
    pulsar_ml_cache_hits_throughput gauge Bytes that the cache gave per second, in the last period.
    pulsar_ml_cache_misses_rate gauge Entries read from the disk per second, in the last period.
    pulsar_ml_cache_misses_throughput gauge Bytes read from the disk per second, in the last period.
    """
)
BYTES_IN: Final = Family("pulsar_broker_in_bytes_total", "gauge", "system_topic", "Bytes published to loaded topics.")
BYTES_OUT: Final = Family(
    "pulsar_broker_out_bytes_total", "gauge", "system_subscription", "Bytes sent to consumers of loaded topics."
)
EVICTIONS: Final = Family(
    "pulsar_broker_storage_backlog_quota_exceeded_evictions_total", "gauge", "quota_type",
    "Checks that found a backlog quota of a loaded topic exceeded and evicted messages.",
)  # fmt: skip

_TRANSACTION_BOUNDS: Final = (
    10, 20, 50, 100, 500, 1000, 5000, 15_000, 30_000, 60_000, 300_000, 1_500_000, 3_000_000,
)  # fmt: skip

MEASURED: Final = (
    *_families(
        """
        pulsar_version_info gauge [version commit] 1, with the version of the broker.
        pulsar_broker_publish_latency summary [quantile] Milliseconds from the arrival of a group's oldest entry to its receipts.
        pulsar_broker_lookup summary [quantile] Milliseconds that lookups took.
        pulsar_broker_lookup_answers counter Lookups that were answered.
        pulsar_broker_lookup_failures counter Lookups that were refused.
        pulsar_broker_throttled_connections gauge Connections that are not read at the moment.
        pulsar_broker_pending_bytes_to_dispatch gauge Bytes that clients have not taken yet.
        pulsar_topic_load_times summary [quantile] Milliseconds that loading topics took.
        topic_load_failed counter Topics that could not be loaded.
        pulsar_health gauge [broker metric] 1 if the last health check succeeded, 0 if it failed.
        pulsar_storage_backlog_quota_check_duration_seconds histogram [le] Seconds that checks of backlog quotas took.
        pulsar_metadata_store_put_bytes counter [name] Bytes written to the metadata store.
        pulsar_metadata_store_ops_latency_ms histogram [name type status le] Milliseconds that writes of metadata took.
        pulsar_ml_cache_used_size gauge Bytes of entries in memory.
        pulsar_ml_cache_entries gauge Entries in memory.
        pulsar_ml_cache_inserted_entries_total gauge Entries that were put into the cache.
        pulsar_ml_cache_evicted_entries_total gauge Entries that made room for others.
        pulsar_ml_cache_evictions gauge Pieces of entries that made room for others.
        pulsar_ml_cache_pendingreads_matched counter Reads that were under way already when they were asked for.
        pulsar_ml_cache_pendingreads_missed counter Reads that were begun.
        pulsar_schema_get_ops_latency summary [namespace quantile] Milliseconds that finding a schema took.
        pulsar_schema_put_ops_latency summary [namespace quantile] Milliseconds that adding a schema took.
        pulsar_schema_del_ops_latency summary [namespace quantile] Milliseconds that deleting a schema took.
        pulsar_schema_get_ops_failed counter [namespace] Schemas that could not be found because of an error.
        pulsar_schema_put_ops_failed counter [namespace] Schemas that could not be added.
        pulsar_schema_del_ops_failed counter [namespace] Schemas that could not be deleted.
        pulsar_schema_compatible counter [namespace] New schemas that the strategy accepted.
        pulsar_schema_incompatible counter [namespace] New schemas that the strategy refused.
        pulsar_resource_group_messages_used counter [ResourceGroup MonitoringClass] Messages published to (Publish) and sent from (Dispatch) topics of a resource group, as of the end of the last period.
        pulsar_resource_group_bytes_used counter [ResourceGroup MonitoringClass] Bytes published to (Publish) and sent from (Dispatch) topics of a resource group, as of the end of the last period.
        pulsar_resource_group_updates counter [ResourceGroup] Changes of a resource group.
        pulsar_resource_group_namespace_registers counter [ResourceGroup] Namespaces that came into a resource group.
        pulsar_resource_group_namespace_unregisters counter [ResourceGroup] Namespaces that left a resource group.
        pulsar_txn_active_count gauge [coordinator_id] Open transactions.
        pulsar_txn_created_total gauge [coordinator_id] Transactions begun since the start.
        pulsar_txn_committed_total gauge [coordinator_id] Transactions committed since the start.
        pulsar_txn_aborted_total gauge [coordinator_id] Transactions aborted since the start.
        pulsar_txn_timeout_total gauge [coordinator_id] Transactions that were not ended in time, since the start.
        pulsar_txn_append_log_total gauge [coordinator_id] Changes written to the transaction log since the start.
        pulsar_authentication_success_total counter [auth_method] Logins that succeeded.
        pulsar_authentication_failures_total counter [auth_method] Logins that failed.
        brk_ledgeroffloader_offload_error counter Failures of offloading, and of deleting what was offloaded.
        brk_ledgeroffloader_delete_offload_ops counter Offloaded objects that were deleted.
        brk_ledgeroffloader_read_bytes counter Bytes read from offloaded ledgers.
        log4j2_appender counter [level] Lines logged.
        process_cpu_seconds counter Processor time, user and system.
        process_start_time_seconds gauge When the process began, in seconds since 1970.
        process_virtual_memory_bytes gauge Virtual memory.
        process_resident_memory_bytes gauge Resident memory.
        process_open_fds gauge Open file descriptors.
        process_max_fds gauge File descriptors that the process may open.
        magnetar_connections_unfinished_bytes gauge Bytes of frames that are not whole yet.
        magnetar_connections_unsent_bytes gauge Bytes that clients have not taken yet.
        magnetar_connections_waiting gauge Connections with commands that wait for their turn.
        magnetar_subscriptions_stuck_total counter Subscriptions that stood still and were healed.
        magnetar_cache_limit_bytes gauge Bytes of entries that may be in memory.
        magnetar_journal_writes_total counter Groups written.
        magnetar_journal_entries_total counter Entries written.
        magnetar_journal_syncs_total counter Syncs of the disk.
        magnetar_journal_written_bytes_total counter Bytes written.
        magnetar_journal_zeros_bytes_total counter Bytes of zeros written ahead of small groups, which go over them.
        magnetar_journal_pending_bytes gauge Bytes accepted and not on the disk yet.
        magnetar_journal_segment gauge Number of the segment that is being written.
        magnetar_journal_failing gauge 1 while the disk refuses writes.
        magnetar_journal_full gauge 1 while messages are refused because the disk is full.
        magnetar_journal_sync_data gauge 0 if receipts do not wait for the disk (journalSyncData=false).
        magnetar_space_used_bytes gauge Bytes of segments and their indexes, counted every few seconds.
        magnetar_space_living_bytes gauge What is needed of them.
        magnetar_space_over_bytes gauge Bytes beyond twice what is needed and five segments, which is what is promised.
        magnetar_space_moved_bytes_total counter Bytes that were written a second time to make room.
        magnetar_space_emptied_segments_total counter Segments that were emptied to make room.
        magnetar_offloaded_ledgers_total counter Ledgers that were copied to an object store.
        magnetar_authorization_refusals_total counter Requests and commands that were refused for want of a permission.
        magnetar_audit_lost_total counter Records that the audit log lost.
        magnetar_audit_failing gauge 1 while the file of the audit log cannot be written.
        magnetar_tls_handshakes_total counter TLS handshakes that succeeded.
        magnetar_tls_handshake_failures_total counter TLS handshakes that failed.
        magnetar_tls_handshakes_in_progress gauge TLS handshakes under way.
        magnetar_tls_reload_failures_total counter Certificates that could not be read again.
        """  # noqa: E501 - a family is a line
    ),
    *_families(
        """
        pulsar_active_connections gauge Open connections of clients.
        pulsar_connection_created_total_count gauge Connections since the start.
        pulsar_connection_create_success_count gauge Handshakes that succeeded since the start.
        pulsar_connection_create_fail_count gauge Connections that ended before a handshake succeeded, since the start.
        pulsar_connection_closed_total_count gauge Connections that ended since the start.
        pulsar_lb_cpu_usage gauge Percent of the machine's processors that the broker used, in the last period.
        pulsar_lb_memory_usage gauge Percent of the machine's memory that the broker holds.
        pulsar_topic_load_time_median_ms gauge Milliseconds within which half of the topics were loaded.
        pulsar_topic_load_time_75percentile_ms gauge Milliseconds within which 75 % of the topics were loaded.
        pulsar_topic_load_time_95percentile_ms gauge Milliseconds within which 95 % of the topics were loaded.
        pulsar_topic_load_time_99_percentile_ms gauge Milliseconds within which 99 % of the topics were loaded.
        pulsar_topic_load_time_99_9_percentile_ms gauge Milliseconds within which 99.9 % of the topics were loaded.
        pulsar_topic_load_time_99_99_percentile_ms gauge Milliseconds within which 99.99 % of the topics were loaded.
        pulsar_topic_load_time_mean_ms gauge Milliseconds that loading a topic took on average, since the start.
        pulsar_topic_load_rate_s gauge Topics loaded per second, in the last period.
        pulsar_topic_load_failed_count gauge Topics that could not be loaded, since the start.
        """,
        "broker metric",
    ),
    *(
        Family(
            f"pulsar_txn_execution_latency_le_{bound}", "gauge", "coordinator_id",
            f"Transactions committed since the start that took up to {bound} ms and more than the bound before.",
        )
        for bound in _TRANSACTION_BOUNDS
    ),
    Family(
        "pulsar_txn_execution_latency_le_overflow", "gauge", "coordinator_id",
        "Transactions committed since the start that took longer than the last bound.",
    ),
)  # fmt: skip
"""What :mod:`magnetar.admin.local_broker.stats.measurements` counts."""
