"""/metrics in the Prometheus text format, with Pulsar's names (SEMANTICS 14.11). Only series that are true.

Ten thousand topics make some hundred thousand lines, a second's work: it is done in pieces, between which the broker
serves its clients.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from magnetar.admin.brokers import VERSION
from magnetar.admin.ports import Admin, TopicCounters

_TOPICS_PER_PIECE: Final = 100
_LINES_PER_PIECE: Final = 500
_PER_TOPIC: Final = {
    "pulsar_producers_count": "producers",
    "pulsar_consumers_count": "consumers",
    "pulsar_in_messages_total": "messages_in",
    "pulsar_in_bytes_total": "bytes_in",
    "pulsar_rate_in": "rate_in",
    "pulsar_rate_out": "rate_out",
    "pulsar_throughput_in": "throughput_in",
    "pulsar_throughput_out": "throughput_out",
    "pulsar_msg_backlog": "backlog",
    "pulsar_storage_backlog_size": "backlog_bytes",
    "pulsar_storage_size": "storage_bytes",
    "pulsar_storage_logical_size": "storage_bytes",
}
_PER_SUBSCRIPTION: Final = {
    "pulsar_subscription_back_log": "backlog",
    "pulsar_subscription_back_log_no_delayed": "backlog_due",
    "pulsar_subscription_unacked_messages": "unacked",
    "pulsar_subscription_consumers_count": "consumers",
    "pulsar_out_messages_total": "messages_out",
    "pulsar_out_bytes_total": "bytes_out",
    "pulsar_subscription_msg_rate_out": "rate_out",
    "pulsar_subscription_msg_throughput_out": "throughput_out",
    "pulsar_subscription_msg_rate_redeliver": "rate_redelivered",
    "pulsar_subscription_msg_ack_rate": "rate_acked",
}
_PER_COMPACTED: Final = {
    "pulsar_compaction_removed_event_count": "removed",
    "pulsar_compaction_succeed_count": "succeeded",
    "pulsar_compaction_failed_count": "failed",
    "pulsar_compaction_duration_time_in_mills": "duration_ms",
    "pulsar_compaction_compacted_entries_count": "entries",
    "pulsar_compaction_compacted_entries_size": "bytes",
}
_STORAGE: Final = {
    "pulsar_ml_cache_used_size": ("gauge", "cache_bytes"),
    "magnetar_cache_limit_bytes": ("gauge", "cache_bytes_max"),
    "magnetar_journal_writes_total": ("counter", "writes"),
    "magnetar_journal_syncs_total": ("counter", "syncs"),
    "magnetar_journal_written_bytes_total": ("counter", "bytes_written"),
    "magnetar_journal_pending_bytes": ("gauge", "pending_bytes"),
    "magnetar_journal_segment": ("gauge", "segment"),
    "magnetar_journal_failing": ("gauge", "failing"),
    "magnetar_journal_sync_data": ("gauge", "sync_data"),
}
"""``magnetar_journal_sync_data`` 0 is journalSyncData=false: receipts do not wait for the disk."""


def routes(admin: Admin) -> APIRouter:
    """All routes of this group."""
    router = APIRouter(tags=["metrics"])

    @router.get("/metrics/", include_in_schema=False)
    @router.get("/metrics")
    async def metrics() -> Response:
        return StreamingResponse(_pieces(admin), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


async def _pieces(admin: Admin) -> AsyncIterator[str]:
    topics = []
    for topic in admin.broker.counters():
        topics.append(topic)
        if len(topics) % _TOPICS_PER_PIECE == 0:
            await asyncio.sleep(0)
    piece: list[str] = []
    for line in _lines(admin, topics):
        piece.append(line)
        if len(piece) == _LINES_PER_PIECE:
            yield "".join(piece)
            piece.clear()
            await asyncio.sleep(0)
    yield "".join(piece)


def _lines(admin: Admin, topics: Sequence[TopicCounters]) -> Iterator[str]:
    cluster = _quoted(admin.settings.clusterName)
    yield from _family("pulsar_version_info", [f'cluster={cluster},version="{VERSION}",commit=""'], [1])
    own = [f"cluster={cluster}"]
    yield from _family("pulsar_broker_topics_count", own, [len(topics)])
    yield from _family("pulsar_broker_subscriptions_count", own, [sum(len(topic.subscriptions) for topic in topics)])
    yield from _family("pulsar_broker_producers_count", own, [sum(topic.producers for topic in topics)])
    yield from _family("pulsar_broker_consumers_count", own, [sum(topic.consumers for topic in topics)])
    active = [f'cluster={cluster},broker={_quoted(admin.broker.broker_id())},metric="active_connections"']
    yield from _family("pulsar_active_connections", active, [admin.broker.connections()])
    namespaces = Counter(topic.topic.namespace.text for topic in topics)
    labels = [f"cluster={cluster},namespace={_quoted(name)}" for name in namespaces]
    yield from _family("pulsar_topics_count", labels, namespaces.values())
    yield from _family("magnetar_subscriptions_stuck_total", own, [admin.broker.stuck_total()], "counter")
    yield from _of_topics(cluster, topics)
    storage = admin.broker.storage()
    for name, (kind, attribute) in _STORAGE.items():
        yield from _family(name, own, [int(getattr(storage, attribute))], kind)


def _of_topics(cluster: str, topics: Sequence[TopicCounters]) -> Iterator[str]:
    labels = [_topic_labels(cluster, topic) for topic in topics]
    yield from _family("pulsar_subscriptions_count", labels, [len(topic.subscriptions) for topic in topics])
    for name, attribute in _PER_TOPIC.items():
        yield from _family(name, labels, [getattr(topic, attribute) for topic in topics])
    sizes = [topic.throughput_in / topic.rate_in if topic.rate_in else 0.0 for topic in topics]
    yield from _family("pulsar_average_msg_size", labels, sizes)
    compacted = [(label, topic.compaction) for label, topic in zip(labels, topics, strict=True) if topic.compaction]
    for name, attribute in _PER_COMPACTED.items():
        yield from _family(name, [label for label, _ in compacted], [getattr(each, attribute) for _, each in compacted])
    pairs = [
        (f"{label},subscription={_quoted(each.name)}", each)
        for label, topic in zip(labels, topics, strict=True)
        for each in topic.subscriptions
    ]
    for name, attribute in _PER_SUBSCRIPTION.items():
        yield from _family(name, [label for label, _ in pairs], [getattr(each, attribute) for _, each in pairs])


def _family(name: str, labels: Iterable[str], values: Iterable[float], kind: str = "gauge") -> Iterator[str]:
    yield f"# TYPE {name} {kind}\n"
    for label, value in zip(labels, values, strict=True):
        yield f"{name}{{{label}}} {value}\n"


def _topic_labels(cluster: str, counters: TopicCounters) -> str:
    topic = counters.topic
    return f"cluster={cluster},namespace={_quoted(topic.namespace.text)},topic={_quoted(topic.fqn)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
