"""The numbers of /metrics under the names of Apache Pulsar's JSON: ``brk_…``, in groups with their dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from magnetar.admin.routes.metrics.broker_families import BUNDLE, LEDGER
from magnetar.admin.routes.metrics.namespace_sums import (
    LATENCY_BOUNDS,
    SIZE_BOUNDS,
    Sums,
    bundle_numbers,
    ledger_numbers,
)
from magnetar.admin.routes.metrics.scrape import broker_sums
from magnetar.admin.routes.metrics.topic_series import TopicSeries
from magnetar.admin.values.counters import Measured
from magnetar.model.policies import Json, JsonObject

_CACHE: Final = "pulsar_ml_cache_"
_GROUPS: Final = ("broker_connection", "broker_health", "pulsar_topic_load_times")


def metrics_json(topics: TopicSeries, measured: Iterable[Measured], cluster: str) -> Iterator[JsonObject]:
    """Every group, one after the other."""
    found = list(measured)
    yield _group(dict(_of_cache(topics, found)), {})
    for namespace, sums in topics.sums.by_namespace.items():
        dimensions: JsonObject = {"namespace": namespace}
        yield _group(dict(_of_namespace(sums)), dimensions)
        yield _group(dict(_of_ledgers(sums)), dimensions)
    for bundle, sums in topics.sums.by_bundle.items():
        names = (family.name.replace("pulsar_", "brk_", 1) for family in BUNDLE)
        numbers = dict(zip(names, bundle_numbers(sums), strict=True))
        yield _group(numbers, {"bundle": bundle, "metric": "bundle"})
    for word in _GROUPS:
        of_word = [one for one in found if ("metric", word) in one.labels]
        if of_word:
            numbers = {one.family.replace("pulsar_", "brk_", 1): one.value for one in of_word}
            yield _group(numbers, {**dict(of_word[0].labels), "cluster": cluster})


def _group(numbers: dict[str, float], dimensions: JsonObject) -> JsonObject:
    shown: JsonObject = {name: "NaN" if math.isnan(number) else number for name, number in sorted(numbers.items())}
    metrics: Json = shown
    return {"metrics": metrics, "dimensions": dimensions}


def _of_cache(topics: TopicSeries, measured: Iterable[Measured]) -> Iterator[tuple[str, float]]:
    for one in measured:
        if one.family.startswith(_CACHE) and not one.suffix:
            yield one.family.replace("pulsar_", "brk_", 1), one.value
    for family, number in next(iter(broker_sums("", topics.sums.all))).numbers():
        if family.name.startswith("pulsar_ml_"):
            yield family.name.replace("pulsar_", "brk_", 1), number


def _of_namespace(sums: Sums) -> Iterator[tuple[str, float]]:
    number = sums.number
    yield "brk_in_rate", number("rate_in")
    yield "brk_in_tp_rate", number("throughput_in")
    yield "brk_out_rate", number("rate_out")
    yield "brk_out_tp_rate", number("throughput_out")
    yield "brk_msg_backlog", number("backlog")
    yield "brk_no_of_consumers", number("consumers")
    yield "brk_no_of_producers", number("producers")
    yield "brk_no_of_subscriptions", number("subscription_count")
    yield "brk_storage_size", number("storage_bytes")
    yield from _buckets("brk_AddEntryLatencyBuckets", LATENCY_BOUNDS, sums.writes.latency)


def _of_ledgers(sums: Sums) -> Iterator[tuple[str, float]]:
    for family, number in zip(LEDGER, ledger_numbers(sums), strict=True):
        if not family.name.endswith("OVERFLOW"):
            yield family.name.replace("pulsar_", "brk_", 1), number
    writes = sums.writes
    yield from _buckets("brk_ml_AddEntryLatencyBuckets", LATENCY_BOUNDS, writes.latency)
    yield from _buckets("brk_ml_LedgerAddEntryLatencyBuckets", LATENCY_BOUNDS, writes.disk)
    yield from _buckets("brk_ml_EntrySizeBuckets", SIZE_BOUNDS, writes.sizes)


def _buckets(name: str, bounds: tuple[str, ...], counts: tuple[float, ...]) -> Iterator[tuple[str, float]]:
    for bound, number in zip((*bounds, "OVERFLOW"), counts[:-1], strict=True):
        yield f"{name}_{bound}", number
