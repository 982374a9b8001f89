"""The instruments, under the names, kinds and units of Apache Pulsar's OpenTelemetry metrics (PIP-264)."""

from __future__ import annotations

from typing import Final, NamedTuple


class Instrument(NamedTuple):
    """One metric."""

    name: str
    kind: str
    """``counter``, ``updown`` or ``gauge``."""
    unit: str
    description: str


def _instruments(prefix: str, rows: str) -> tuple[Instrument, ...]:
    made = []
    for row in filter(None, map(str.strip, rows.splitlines())):
        name, kind, unit, said = row.split(" ", 3)
        made.append(Instrument(prefix + name, kind, unit, said))
    return tuple(made)


INSTRUMENTS: Final = (
    *_instruments(
        "pulsar.broker.topic.",
        """
        subscription.count updown {subscription} Subscriptions of the topic.
        producer.count updown {producer} Connected producers.
        consumer.count updown {consumer} Connected consumers.
        message.incoming.count counter {message} Messages published since the topic was loaded.
        message.outgoing.count counter {message} Messages sent to consumers since the topic was loaded.
        message.incoming.size counter By Bytes published since the topic was loaded.
        message.outgoing.size counter By Bytes sent to consumers since the topic was loaded.
        publish.rate.limit.count counter {event} How often the publish rate made a connection wait.
        storage.size updown By Bytes of the retained entries.
        storage.logical.size updown By Bytes of the retained entries, without copies.
        storage.backlog.size updown By Bytes after what the slowest subscription has acknowledged.
        storage.offloaded.size updown By Bytes of the entries that have a copy in an object store.
        storage.backlog.quota.limit.size updown By The backlog quota in bytes, -1 without one.
        storage.backlog.quota.limit.time gauge s The backlog quota in seconds, -1 without one.
        storage.backlog.quota.eviction.count counter {eviction} Checks that found the quota exceeded and evicted.
        storage.backlog.age gauge s Age of the oldest unacknowledged message as of the last check, -1 if unknown.
        compaction.removed.message.count counter {message} Messages that the last run of compaction removed.
        compaction.operation.count counter {operation} Runs of compaction since the topic was loaded.
        compaction.compacted.entry.count counter {entry} Entries of the compacted view.
        compaction.compacted.entry.size counter By Bytes of the compacted view.
        transaction.count updown {transaction} Transactions that sent to the topic.
        subscription.delayed.entry.count updown {entry} Entries that wait for their time.
        """,
    ),
    *_instruments(
        "pulsar.broker.",
        """
        connection.count updown {connection} Connections of clients.
        connection.create.operation.count updown {operation} Handshakes of clients.
        managed_ledger.count updown {managed_ledger} Managed ledgers of loaded topics.
        managed_ledger.cache.eviction.count counter {eviction} Pieces of entries that made room for others.
        managed_ledger.cache.entry.count updown {entry} Entries in the cache, put into it, and gone from it.
        managed_ledger.cache.entry.size updown By Bytes of entries in memory.
        """,
    ),
)

_CONNECTION: Final = "pulsar.connection.status"
_CREATION: Final = "pulsar.connection.create.operation.status"
_CACHE: Final = "pulsar.managed_ledger.cache.entry.status"
MEASURED: Final = {
    "pulsar_active_connections": ("connection.count", ((_CONNECTION, "active"),)),
    "pulsar_connection_created_total_count": ("connection.count", ((_CONNECTION, "open"),)),
    "pulsar_connection_closed_total_count": ("connection.count", ((_CONNECTION, "close"),)),
    "pulsar_connection_create_success_count": ("connection.create.operation.count", ((_CREATION, "success"),)),
    "pulsar_connection_create_fail_count": ("connection.create.operation.count", ((_CREATION, "failure"),)),
    "pulsar_ml_cache_evictions": ("managed_ledger.cache.eviction.count", ()),
    "pulsar_ml_cache_entries": ("managed_ledger.cache.entry.count", ((_CACHE, "active"),)),
    "pulsar_ml_cache_inserted_entries_total": ("managed_ledger.cache.entry.count", ((_CACHE, "inserted"),)),
    "pulsar_ml_cache_evicted_entries_total": ("managed_ledger.cache.entry.count", ((_CACHE, "evicted"),)),
    "pulsar_ml_cache_used_size": ("managed_ledger.cache.entry.size", ()),
}
"""Families of /metrics, and the metric and attributes under which OpenTelemetry has the same number."""
