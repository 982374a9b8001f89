"""/metrics in the Prometheus text format, with Pulsar's names (SEMANTICS 14.11). Only series that are true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from magnetar.admin.brokers import VERSION
from magnetar.admin.ports import Admin, TopicCounters

_PER_TOPIC = {
    "pulsar_subscriptions_count": "subscriptions",
    "pulsar_producers_count": "producers",
    "pulsar_consumers_count": "consumers",
    "pulsar_in_messages_total": "messages_in",
    "pulsar_in_bytes_total": "bytes_in",
    "pulsar_msg_backlog": "backlog",
    "pulsar_storage_size": "storage_size",
}


def routes(admin: Admin) -> APIRouter:
    """All routes of this group."""
    router = APIRouter(tags=["metrics"])

    @router.get("/metrics/", include_in_schema=False)
    @router.get("/metrics")
    async def metrics() -> Response:
        return PlainTextResponse("\n".join(_lines(admin)) + "\n", media_type="text/plain; version=0.0.4")

    return router


def _lines(admin: Admin) -> Iterator[str]:
    cluster = _quoted(admin.settings.clusterName)
    topics = list(admin.broker.counters())
    yield from _family("pulsar_version_info", [f'cluster={cluster},version="{VERSION}",commit=""'], [1])
    own = [f"cluster={cluster}"]
    yield from _family("pulsar_broker_topics_count", own, [len(topics)])
    yield from _family("pulsar_broker_subscriptions_count", own, [sum(topic.subscriptions for topic in topics)])
    yield from _family("pulsar_broker_producers_count", own, [sum(topic.producers for topic in topics)])
    yield from _family("pulsar_broker_consumers_count", own, [sum(topic.consumers for topic in topics)])
    active = [f'cluster={cluster},broker={_quoted(admin.broker.broker_id())},metric="active_connections"']
    yield from _family("pulsar_active_connections", active, [admin.broker.connections()])
    namespaces = Counter(topic.topic.namespace.text for topic in topics)
    labels = [f"cluster={cluster},namespace={_quoted(name)}" for name in namespaces]
    yield from _family("pulsar_topics_count", labels, namespaces.values())
    labels = [_topic_labels(cluster, topic) for topic in topics]
    for name, attribute in _PER_TOPIC.items():
        yield from _family(name, labels, [getattr(topic, attribute) for topic in topics])


def _family(name: str, labels: Iterable[str], values: Iterable[int]) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    for label, value in zip(labels, values, strict=True):
        yield f"{name}{{{label}}} {value}"


def _topic_labels(cluster: str, counters: TopicCounters) -> str:
    topic = counters.topic
    return f"cluster={cluster},namespace={_quoted(topic.namespace.text)},topic={_quoted(topic.fqn)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
