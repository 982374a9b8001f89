"""The numbers of the broker as a whole that /metrics shows, by family; those that are not counted yet are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf

from magnetar import __version__
from magnetar.admin.values.counters import Measured
from magnetar.broker.connection.listener import Connections
from magnetar.broker.service import BrokerService
from magnetar.broker.upkeep.rates import Rates
from magnetar.runtime.distributions import Buckets, Quantiles
from magnetar.runtime.log_counts import counted
from magnetar.runtime.process_figures import process_figures

_OF_LOADS = {
    "pulsar_topic_load_time_median_ms": 0.5,
    "pulsar_topic_load_time_75percentile_ms": 0.75,
    "pulsar_topic_load_time_95percentile_ms": 0.95,
    "pulsar_topic_load_time_99_percentile_ms": 0.99,
    "pulsar_topic_load_time_99_9_percentile_ms": 0.999,
    "pulsar_topic_load_time_99_99_percentile_ms": 0.9999,
}
_WITHOUT_BEGINNING = frozenset({"pulsar_broker_publish_latency", "pulsar_broker_lookup"})
"""Summaries of Apache Pulsar's own, not of its library."""
Labels = tuple[tuple[str, str], ...]


def measurements(service: BrokerService, rates: Rates, connections: Connections) -> Iterator[Measured]:
    """Everything but topics, at this moment; a few hundred numbers."""
    yield Measured("pulsar_version_info", 1, (("version", __version__), ("commit", "")))
    yield from _connections(service, connections)
    since = service.activity.since
    yield from _begun(since, _requests(service, rates))
    yield from _transactions(service)
    yield from _begun(since, _schemas(service))
    yield from _begun(since, _resource_groups(service))
    yield from _begun(since, _metadata(service))
    yield from _begun(since, _store(service))
    yield from _security(service)
    logged = [Measured("log4j2_appender", n, (("level", level),), "_total") for level, n in counted().by_level.items()]
    yield from _begun(since, logged)
    for word in ("cpu", "memory"):
        if word in rates.host:
            used, labels = rates.host[word], _named(service, "loadBalancing")
            yield Measured(f"pulsar_lb_{word}_usage", 100 * used.usage / used.limit, labels)
    for family, value in process_figures().items():
        yield Measured(family, value, (), "_total" if family == "process_cpu_seconds" else "")


def _begun(since: float, measured: Iterable[Measured]) -> Iterator[Measured]:
    """Add the time since which something is counted, where Apache Pulsar shows that."""
    for one in measured:
        yield one
        if one.suffix in ("_total", "_count") and one.family not in _WITHOUT_BEGINNING:
            yield one._replace(value=since, suffix="_created")


def _named(service: BrokerService, metric: str) -> Labels:
    return (("broker", service.broker_id.rpartition(":")[0]), ("metric", metric))


def _connections(service: BrokerService, connections: Connections) -> Iterator[Measured]:
    labels = _named(service, "broker_connection")
    yield Measured("pulsar_active_connections", len(connections), labels)
    yield Measured("pulsar_connection_created_total_count", connections.opened, labels)
    yield Measured("pulsar_connection_create_success_count", connections.accepted(), labels)
    yield Measured("pulsar_connection_create_fail_count", connections.refused, labels)
    yield Measured("pulsar_connection_closed_total_count", connections.closed, labels)
    yield Measured("pulsar_broker_throttled_connections", connections.throttled())
    held = connections.held()
    yield Measured("pulsar_broker_pending_bytes_to_dispatch", held["unsent_bytes"])
    for name, value in held.items():
        yield Measured(f"magnetar_connections_{name}", value)


def _requests(service: BrokerService, rates: Rates) -> Iterator[Measured]:
    activity = service.activity
    yield from _summary("pulsar_broker_publish_latency", service.store.journal.latency.summary)
    yield from _summary("pulsar_broker_lookup", activity.lookups)
    yield Measured("pulsar_broker_lookup_answers", activity.lookups.count - activity.lookup_failures, (), "_total")
    yield Measured("pulsar_broker_lookup_failures", activity.lookup_failures, (), "_total")
    yield from _summary("pulsar_topic_load_times", activity.loads)
    yield Measured("topic_load_failed", activity.load_failures, (), "_total")
    labels = _named(service, "pulsar_topic_load_times")
    for family, quantile in _OF_LOADS.items():
        yield Measured(family, activity.loads.of((quantile,))[0][1], labels)
    loads = activity.loads
    yield Measured("pulsar_topic_load_time_mean_ms", loads.sum / loads.count if loads.count else 0.0, labels)
    yield Measured("pulsar_topic_load_rate_s", rates.loads, labels)
    yield Measured("pulsar_topic_load_failed_count", activity.load_failures, labels)
    if activity.health is not None:
        yield Measured("pulsar_health", activity.health, _named(service, "broker_health"))
    yield from _histogram("pulsar_storage_backlog_quota_check_duration_seconds", activity.quota_check_seconds)
    yield Measured("magnetar_subscriptions_stuck_total", service.stuck_total)


def _transactions(service: BrokerService) -> Iterator[Measured]:
    coordinator = service.coordinator
    if not coordinator.running:
        return
    activity, labels = coordinator.activity, (("coordinator_id", "0"),)
    yield Measured("pulsar_txn_active_count", len(coordinator.open), labels)
    yield Measured("pulsar_txn_created_total", activity.created, labels)
    yield Measured("pulsar_txn_committed_total", activity.committed, labels)
    yield Measured("pulsar_txn_aborted_total", activity.aborted, labels)
    yield Measured("pulsar_txn_timeout_total", activity.timed_out, labels)
    yield Measured("pulsar_txn_append_log_total", activity.appended, labels)
    bounds = [*map(str, activity.durations.bounds), "overflow"]
    for bound, count in zip(bounds, activity.durations.counts, strict=True):
        yield Measured(f"pulsar_txn_execution_latency_le_{bound}", count, labels)


def _schemas(service: BrokerService) -> Iterator[Measured]:
    activity = service.activity.schemas
    for word, summaries in activity.operations.items():
        for namespace, quantiles in summaries.by_word.items():
            yield from _summary(f"pulsar_schema_{word}_ops_latency", quantiles, (("namespace", namespace),))
        yield from _by_namespace(f"pulsar_schema_{word}_ops_failed", activity.failures[word])
    yield from _by_namespace("pulsar_schema_compatible", activity.compatible)
    yield from _by_namespace("pulsar_schema_incompatible", activity.incompatible)


def _resource_groups(service: BrokerService) -> Iterator[Measured]:
    groups = service.policies.groups
    counts = {"updates": groups.updates, "namespace_registers": groups.joins, "namespace_unregisters": groups.leaves}
    for word, of_groups in counts.items():
        for name, number in of_groups.items():
            yield Measured(f"pulsar_resource_group_{word}", number, (("ResourceGroup", name),), "_total")
    for (name, way), used in groups.used.items():
        labels = (("ResourceGroup", name), ("MonitoringClass", way))
        for word, number in zip(("messages_used", "bytes_used"), used, strict=True):
            yield Measured(f"pulsar_resource_group_{word}", number, labels, "_total")


def _by_namespace(family: str, counts: Mapping[str, int]) -> Iterator[Measured]:
    for namespace, number in counts.items():
        yield Measured(family, number, (("namespace", namespace),), "_total")


def _metadata(service: BrokerService) -> Iterator[Measured]:
    store = service.metadata
    if store is None:
        return
    name = ("name", "metadata-store")
    yield Measured("pulsar_metadata_store_put_bytes", store.put_bytes, (name,), "_total")
    for (kind, status), buckets in store.operations.items():
        labels = (name, ("type", kind), ("status", status))
        yield from _histogram("pulsar_metadata_store_ops_latency_ms", buckets, labels)


def _store(service: BrokerService) -> Iterator[Measured]:
    store = service.store
    cache, reader, journal = store.cache, store.reader, store.journal
    yield Measured("pulsar_ml_cache_used_size", cache.bytes)
    yield Measured("pulsar_ml_cache_entries", cache.entries_put - cache.entries_gone)
    yield Measured("pulsar_ml_cache_inserted_entries_total", cache.entries_put)
    yield Measured("pulsar_ml_cache_evicted_entries_total", cache.entries_gone)
    yield Measured("pulsar_ml_cache_evictions", cache.evictions)
    yield Measured("pulsar_ml_cache_pendingreads_matched", reader.joined, (), "_total")
    yield Measured("pulsar_ml_cache_pendingreads_missed", reader.begun, (), "_total")
    yield Measured("magnetar_cache_limit_bytes", cache.bytes_max)
    yield Measured("magnetar_journal_writes_total", journal.writes)
    yield Measured("magnetar_journal_entries_total", journal.latency.entries)
    yield Measured("magnetar_journal_syncs_total", journal.writes if journal.sync_data else 0)
    yield Measured("magnetar_journal_written_bytes_total", journal.bytes_written)
    yield Measured("magnetar_journal_zeros_bytes_total", store.zeros_written)
    yield Measured("magnetar_journal_pending_bytes", journal.pending_bytes)
    yield Measured("magnetar_journal_segment", journal.segment)
    yield Measured("magnetar_journal_failing", int(journal.failing is not None))
    yield Measured("magnetar_journal_full", int(journal.full is not None))
    yield Measured("magnetar_journal_sync_data", int(journal.sync_data))
    space = store.cleaner.use.now
    yield Measured("magnetar_space_used_bytes", space.size)
    yield Measured("magnetar_space_living_bytes", space.living)
    yield Measured("magnetar_space_over_bytes", space.over)
    yield Measured("magnetar_space_moved_bytes_total", journal.moved_bytes)
    yield Measured("magnetar_space_emptied_segments_total", store.cleaner.emptied)
    offloaded = service.offloader.counters
    if service.offloader.url:
        yield Measured("brk_ledgeroffloader_offload_error", offloaded.failures, (), "_total")
        yield Measured("brk_ledgeroffloader_delete_offload_ops", offloaded.deleted, (), "_total")
        yield Measured("brk_ledgeroffloader_read_bytes", reader.copy_bytes_read, (), "_total")
        yield Measured("magnetar_offloaded_ledgers_total", offloaded.ledgers)


def _security(service: BrokerService) -> Iterator[Measured]:
    if service.authentication is not None:
        for method, (successes, failures) in service.authentication.counters().items():
            labels = (("auth_method", method),)
            yield Measured("pulsar_authentication_success_total", successes, labels)
            yield Measured("pulsar_authentication_failures_total", failures, labels)
    if service.authorizer is not None:
        yield Measured("magnetar_authorization_refusals_total", service.authorizer.refusals)
    if service.audit is not None:
        yield Measured("magnetar_audit_lost_total", service.audit.lost)
        yield Measured("magnetar_audit_failing", int(service.audit.failing))
    for name, value in service.surroundings.tls_counters().items():
        total = "" if name.endswith("_in_progress") else "_total"
        yield Measured(f"magnetar_tls_{name}{total}", value)


def _summary(family: str, quantiles: Quantiles, labels: Labels = ()) -> Iterator[Measured]:
    for quantile, value in quantiles.of():
        yield Measured(family, value, (*labels, ("quantile", f"{quantile}")))
    yield Measured(family, quantiles.count, labels, "_count")
    yield Measured(family, quantiles.sum, labels, "_sum")


def _histogram(family: str, buckets: Buckets, labels: Labels = ()) -> Iterator[Measured]:
    for bound, number in buckets.cumulative():
        yield Measured(family, number, (*labels, ("le", "+Inf" if bound == inf else f"{bound:g}")), "_bucket")
    yield Measured(family, buckets.count, labels, "_count")
    yield Measured(family, buckets.sum, labels, "_sum")
