"""The routes of broker-stats."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import Response

from magnetar.admin.http.bodies import Streamed, answer
from magnetar.admin.http.parameters import PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import BrokerPort, StatisticsPort
from magnetar.admin.routes.broker_stats.load_report import load_report
from magnetar.admin.routes.broker_stats.metrics_json import metrics_json
from magnetar.admin.routes.broker_stats.topics_json import topics_json
from magnetar.admin.routes.metrics.topic_series import TopicSeries
from magnetar.admin.routes.namespaces.bundles import bundle_of
from magnetar.admin.values.counters import CounterOptions
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import ConflictError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.runtime.clock import SystemClock
from magnetar.runtime.host_load import HostLoad

_JSON: Final = "application/json"


def routes(broker: BrokerPort, statistics: StatisticsPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/broker-stats")
    host, clock = HostLoad(), SystemClock()
    # sums alone, of bundles as well, whatever /metrics is to show
    summed = dataclasses.replace(
        settings, exposeTopicLevelMetricsInPrometheus=False, exposeBundlesMetricsInPrometheus=True
    )

    def bundle(topic: TopicName) -> str:
        return bundle_of(resources, topic)

    async def sums() -> TopicSeries:
        series = TopicSeries(summed, "", lambda counters: bundle(counters.topic))
        await series.add_all(broker.counters(CounterOptions()))
        return series

    @router.get("/metrics")
    async def metrics() -> Response:
        return Streamed(_metrics(broker, await sums(), settings.clusterName), media_type=_JSON)

    @router.get("/topics")
    async def topics() -> Response:
        names = [counters.topic async for counters in broker.counters(CounterOptions())]
        pieces = topics_json(names, bundle, statistics, publishers=settings.exposePublisherStats)
        return Streamed(pieces, media_type=_JSON)

    @router.get("/load-report")
    async def load() -> Response:
        return answer(load_report(broker, await sums(), host, clock.now_ms()))

    @router.get("/broker-resource-availability/{tenant}/{namespace}")
    async def availability(tenant: PathText, namespace: PathText) -> Response:
        NamespaceName.parse(f"{tenant}/{namespace}")
        raise ConflictError("org.apache.pulsar.broker.loadbalance.NoopLoadManager does not support this operation")

    return router


async def _metrics(broker: BrokerPort, series: TopicSeries, cluster: str) -> AsyncIterator[str]:
    begin = "["
    for group in metrics_json(series, broker.measurements(), cluster):
        yield begin + json.dumps(group)
        begin = ","
    yield "]"
