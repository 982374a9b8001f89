"""GET /metrics: the numbers are asked for in small pieces, between which the broker serves its clients.

A hundred thousand topics make millions of lines, which take seconds. The answer is sent as it is made, and compressed
if the client takes that. With ``metricsBufferResponse`` one answer serves all who ask within
``managedLedgerStatsPeriodSeconds``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import Streamed
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import BrokerPort
from magnetar.admin.routes.metrics import broker_families as families
from magnetar.admin.routes.metrics.compressed import KeptAnswer, compressed, takes_gzip
from magnetar.admin.routes.metrics.namespace_sums import Sums
from magnetar.admin.routes.metrics.text_format import Group, labelled, lines, quoted, shown
from magnetar.admin.routes.metrics.topic_series import TopicSeries, counter_options
from magnetar.admin.routes.namespaces.bundles import bundle_of
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources

_CREATED: Final = "_created"
_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ENCODED: Final = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
_PLAIN: Final = {"Vary": "Accept-Encoding"}


def routes(broker: BrokerPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    kept = KeptAnswer(settings.managedLedgerStatsPeriodSeconds) if settings.metricsBufferResponse else None

    @router.get("/metrics")
    async def metrics(request: Request) -> Response:
        encoded = takes_gzip(request.headers.get("accept-encoding", ""))
        headers = _ENCODED if encoded else _PLAIN
        if kept is not None:
            pieces = kept.pieces(lambda: scrape(broker, resources, settings), encoded=encoded)
            return Streamed(pieces, media_type=_TYPE, headers=headers)
        made = scrape(broker, resources, settings)
        return Streamed(compressed(made) if encoded else made, media_type=_TYPE, headers=headers)

    return router


async def scrape(broker: BrokerPort, resources: Resources, settings: Settings) -> AsyncIterator[str]:
    """The whole text in pieces; others have a turn after each."""
    host = broker.broker_id().rpartition(":")[0]
    series = TopicSeries(settings, host, lambda counters: bundle_of(resources, counters.topic))
    await series.add_all(broker.counters(counter_options(settings)))
    for piece in _all(broker, settings, series):
        if piece:
            yield piece
        await asyncio.sleep(0)


def _all(broker: BrokerPort, settings: Settings, topics: TopicSeries) -> Iterator[str]:
    cluster = f"cluster={quoted(settings.clusterName)}"
    yield "".join(_measured(broker, cluster))
    yield from lines(broker_sums(cluster, topics.sums.all))
    yield from topics.lines()


def _measured(broker: BrokerPort, cluster: str) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for one in broker.measurements():
        labels = f"{cluster},{labelled(one.labels)}" if one.labels else cluster
        # when counting began is a family of its own in this format, as Apache Pulsar's library has it
        family = one.family + _CREATED if one.suffix == _CREATED else one.family
        found.setdefault(family, []).append(f"{one.family}{one.suffix}{{{labels}}} {shown(one.value)}\n")
    for known in families.MEASURED:
        if known.name in found:
            yield known.head
            yield from found[known.name]
        if known.name + _CREATED in found:
            yield f"# TYPE {known.name}{_CREATED} gauge\n"
            yield from found[known.name + _CREATED]


def broker_sums(cluster: str, sums: Sums) -> Iterator[Group]:
    """What all topics together have."""
    group, number, stored = Group(families.SUMS), sums.number, sums.stored
    hits = max(0.0, stored.read_rate - stored.missed_rate)
    hit_bytes = max(0.0, stored.read_bytes_rate - stored.missed_bytes_rate)
    numbers = (
        sums.topics, number("subscription_count"), number("producers"), number("consumers"), number("rate_in"),
        number("rate_out"), number("throughput_in"), number("throughput_out"), number("backlog"),
        sums.number("storage_bytes"), number("storage_bytes"), stored.write_rate, stored.read_rate, stored.missed_rate,
        sums.ledgers, hits, hit_bytes, stored.missed_rate, stored.missed_bytes_rate,
    )  # fmt: skip
    group.add(cluster, numbers)
    yield group
    bytes_in = Group([families.BYTES_IN])
    bytes_in.add(f'{cluster},system_topic="true"', (sums.system_bytes_in,))
    bytes_in.add(f'{cluster},system_topic="false"', (number("bytes_in") - sums.system_bytes_in,))
    yield bytes_in
    bytes_out = Group([families.BYTES_OUT])
    bytes_out.add(f'{cluster},system_subscription="false"', (sums.bytes_out,))
    yield bytes_out
    evictions = Group([families.EVICTIONS])
    evictions.add(f'{cluster},quota_type="size"', (stored.evictions_size,))
    evictions.add(f'{cluster},quota_type="time"', (stored.evictions_time,))
    yield evictions
