"""/metrics in the Prometheus text format, with Pulsar's names (rule 14.11). No series is a placeholder.

A hundred thousand topics make millions of lines, which take seconds: the work is done in pieces, between which the
broker serves its clients (:mod:`magnetar.admin.routes.topic_metrics`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from magnetar import __version__
from magnetar.admin.ports import BrokerPort
from magnetar.admin.routes.topic_metrics import TopicSeries, quoted
from magnetar.config.settings import Settings
from magnetar.runtime.tasks import in_turns

_TOPICS_PER_TURN: Final = 50
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
"""Series of the journal; ``magnetar_journal_sync_data`` is 0 if receipts do not wait for the disk (journalSyncData)."""

_AUTHORIZATION: Final = {
    "magnetar_authorization_refusals_total": ("counter", "refusals"),
    "magnetar_audit_lost_total": ("counter", "lost"),
    "magnetar_audit_failing": ("gauge", "failing"),
}
"""Series of a broker with authorization; the last two of one with an audit log."""

_TLS: Final = {
    "magnetar_tls_handshakes_total": ("counter", "handshakes"),
    "magnetar_tls_handshake_failures_total": ("counter", "handshake_failures"),
    "magnetar_tls_handshakes_in_progress": ("gauge", "handshakes_in_progress"),
    "magnetar_tls_reload_failures_total": ("counter", "reload_failures"),
}
"""Series of a broker that has a port with TLS."""


def routes(broker: BrokerPort, settings: Settings) -> APIRouter:
    """Build the routes of this group."""
    router = APIRouter(tags=["metrics"])

    @router.get("/metrics")
    async def metrics() -> Response:
        return StreamingResponse(_pieces(broker, settings), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


async def _pieces(broker: BrokerPort, settings: Settings) -> AsyncIterator[str]:
    series = TopicSeries(settings.clusterName, per_topic=settings.exposeTopicLevelMetricsInPrometheus)
    async for counters in in_turns(broker.counters(), _TOPICS_PER_TURN):
        series.add(counters)
    for piece in _all(broker, settings, series):
        if piece:
            yield piece
        await asyncio.sleep(0)


def _all(broker: BrokerPort, settings: Settings, topics: TopicSeries) -> Iterator[str]:
    yield "".join(_of_broker(broker, settings, topics))
    yield from topics.lines()
    storage, own = broker.storage(), f"cluster={quoted(settings.clusterName)}"
    yield "".join(
        _single(name, own, int(getattr(storage, attribute)), kind) for name, (kind, attribute) in _STORAGE.items()
    )


def _of_broker(broker: BrokerPort, settings: Settings, topics: TopicSeries) -> Iterator[str]:
    cluster = quoted(settings.clusterName)
    own = f"cluster={cluster}"
    yield _single("pulsar_version_info", f'{own},version="{__version__}",commit=""', 1)
    yield _single("pulsar_broker_topics_count", own, topics.topics)
    yield _single("pulsar_broker_subscriptions_count", own, topics.subscriptions)
    yield _single("pulsar_broker_producers_count", own, topics.producers)
    yield _single("pulsar_broker_consumers_count", own, topics.consumers)
    active = f'{own},broker={quoted(broker.broker_id())},metric="active_connections"'
    yield _single("pulsar_active_connections", active, broker.connections())
    held = broker.held_by_connections()
    for name in ("unfinished_bytes", "unsent_bytes", "waiting"):
        yield _single(f"magnetar_connections_{name}", own, held[name])
    yield _single("magnetar_subscriptions_stuck_total", own, broker.stuck_total(), "counter")
    yield from _of_authentication(broker, own)
    counted = {**broker.authorization_counters(), **broker.tls_counters()}
    for name, (kind, word) in {**_AUTHORIZATION, **_TLS}.items():
        if word in counted:
            yield _single(name, own, int(counted[word]), kind)


def _of_authentication(broker: BrokerPort, own: str) -> Iterator[str]:
    counted = broker.authentication_counters()
    for place, name in enumerate(("pulsar_authentication_success_total", "pulsar_authentication_failures_total")):
        if counted:
            yield f"# TYPE {name} counter\n"
        for method, counts in counted.items():
            yield f"{name}{{{own},auth_method={quoted(method)}}} {counts[place]}\n"


def _single(name: str, labels: str, value: float, kind: str = "gauge") -> str:
    return f"# TYPE {name} {kind}\n{name}{{{labels}}} {value}\n"
