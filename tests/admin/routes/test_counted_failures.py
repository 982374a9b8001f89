"""What goes wrong is counted where it does, and stands under its family; settings leave families out or add them."""

from __future__ import annotations

import asyncio
import gzip
from random import Random
from typing import Any

import pytest

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.routes.metrics.compressed import KeptAnswer, takes_gzip
from magnetar.admin.routes.metrics.topic_series import TopicSeries, counter_options
from magnetar.admin.values.counters import (
    ConsumerCounters,
    CounterOptions,
    CursorCounters,
    ProducerCounters,
    StoredCounters,
    SubscriptionCounters,
    TopicCounters,
    WriteCounters,
)
from magnetar.app.node import Broker
from magnetar.broker.activity import Activity
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.runtime.clock import SystemClock
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.memory_metadata import MemoryMetadataStore

STORED = StoredCounters(*range(100, 100 + len(StoredCounters._fields)))
WRITES = WriteCounters((1,) * 9 + (7, 5.0), (2,) * 9 + (8, 6.0), (3,) * 8 + (9, 70), 4)


def page(topic: str = "persistent://a/b/t", /, **settings: Any) -> str:
    subscription = SubscriptionCounters(
        "s", 1, 2, 1, 0, 7, 70, 0.5, 5.0, 0.0, 0.0, in_replay=11, backlog_bytes=12,
        clients=[ConsumerCounters("c", 3, 1.0, 2.0, 0.0, 0.0, 5, 1, 9, 4, 40)], cursor=CursorCounters(21, 22, 23, 24),
    )  # fmt: skip
    series = TopicSeries(Settings(clusterName="c", **settings), "host", lambda counters: "0x0_0xf")
    counters = TopicCounters(
        TopicName.parse(topic), 1, 1, 5, 10, 2.0, 1.0, 30.0, 3.0, 2, 20, 40, [subscription], writes=WRITES,
        stored=STORED, clients=[ProducerCounters("p", 8, 2.0, 30.0)],
    )  # fmt: skip
    list(series.add(counters))
    return "".join(series.lines())


def test_failures_and_what_is_above_the_last_bound_stand_under_their_families() -> None:
    shown = page(exposeManagedCursorMetricsInPrometheus=True)
    of = 'cluster="c",namespace="a/b"'
    assert f"pulsar_ml_AddEntryErrors{{{of}}} 4\n" in shown
    assert f"pulsar_ml_ReadEntriesErrors{{{of}}} {STORED.read_failures}\n" in shown
    assert f"pulsar_ml_AddEntryLatencyBuckets_OVERFLOW{{{of}}} 7\n" in shown
    assert f"pulsar_ml_LedgerAddEntryLatencyBuckets_OVERFLOW{{{of}}} 8\n" in shown
    assert f"pulsar_ml_EntrySizeBuckets_OVERFLOW{{{of}}} 9\n" in shown
    cursor = 'ledger_name="persistent://a/b/t",cursor_name="s"'
    assert f"pulsar_ml_cursor_persistLedgerErrors{{{of},{cursor}}} 22\n" in shown
    assert f'pulsar_subscription_in_replay{{{of},topic="persistent://a/b/t",subscription="s"}} 11\n' in shown


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("exposeConsumerLevelMetricsInPrometheus", True, 'consumer_name="c",consumer_id="3"'),
        ("exposeProducerLevelMetricsInPrometheus", True, 'producer_name="p",producer_id="8"'),
        ("exposeSubscriptionBacklogSizeInPrometheus", True, "magnetar_subscription_backlog_bytes"),
        ("exposeBundlesMetricsInPrometheus", True, 'bundle="a/b/0x0_0xf"'),
        ("exposeManagedLedgerMetricsInPrometheus", False, "pulsar_storage_size"),
        ("exposeTopicLevelMetricsInPrometheus", False, 'pulsar_entry_size_count{cluster="c",namespace="a/b"}'),
    ],
)  # fmt: skip
def test_settings_shape_what_is_shown(setting: str, value: bool, text: str) -> None:
    assert text in page(**{setting: value})


def test_what_takes_longer_is_counted_only_if_somebody_wants_it() -> None:
    assert counter_options(Settings()) == CounterOptions()
    names = ("ProducerLevel", "ConsumerLevel", "ManagedCursor")
    settings = [f"expose{name}MetricsInPrometheus" for name in names] + ["exposeSubscriptionBacklogSizeInPrometheus"]
    for place, name in enumerate(settings):
        options = counter_options(Settings(**{name: True}))  # type: ignore[arg-type]  # all of them are switches
        assert [i for i, wanted in enumerate(options) if wanted] == [place]


def test_managed_ledgers_are_left_out() -> None:
    assert "pulsar_ml_Add" in page()
    assert "pulsar_ml_Add" not in page(exposeManagedLedgerMetricsInPrometheus=False)


def test_a_partition_is_a_label_of_its_own() -> None:
    shown = page("persistent://a/b/t-partition-3", splitTopicAndPartitionLabelInPrometheus=True)
    assert 'topic="persistent://a/b/t",partition="3"' in shown
    assert 'partition="-1"' in page(splitTopicAndPartitionLabelInPrometheus=True)


def test_one_answer_serves_all_who_ask_for_a_while() -> None:
    made: list[int] = []

    async def make() -> Any:
        made.append(1)
        yield "text " * 100

    async def run() -> None:
        kept = KeptAnswer(3600)
        plain = [b"".join([piece async for piece in kept.pieces(make, encoded=False)]) for _ in range(3)]
        packed = b"".join([piece async for piece in kept.pieces(make, encoded=True)])
        assert set(plain) == {b"text " * 100} == {gzip.decompress(packed)}
        assert made == [1]
        old = KeptAnswer(0)
        for _ in range(2):
            assert [piece async for piece in old.pieces(make, encoded=True)]
        assert len(made) == 3

    asyncio.run(run())


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [("gzip, br", True), ("deflate", False), ("gzip;q=0", False), ("*", True), ("", False), ("br, GZIP;q=0.5", True)],
)  # fmt: skip
def test_whoever_takes_gzip_gets_it(accepted: str, taken: bool) -> None:
    assert takes_gzip(accepted) is taken


def test_what_fails_is_counted() -> None:
    activity = Activity()
    for _ in range(2):
        with pytest.raises(OSError, match="no"), activity.load():
            raise OSError("no")
        for word in ("get", "put", "del"):
            with pytest.raises(OSError, match="no"), activity.schemas.operation(word, "a/b"):
                raise OSError("no")
    assert activity.load_failures == 2
    assert activity.schemas.failures == {word: {"a/b": 2} for word in ("get", "put", "del")}


def test_a_disk_that_refuses_is_counted_for_the_topic_and_its_cursor() -> None:
    async def run() -> None:
        files = FaultFileSystem(Random(1))
        broker = Broker(files, MemoryMetadataStore(), Settings(), SystemClock(), Random(1))
        await broker.start()
        topic = broker.service.topic_for(TopicName.parse("persistent://public/default/t"), create=True)
        topic.create_subscription("s", 0)
        await broker.store.journal.drain()
        files.fail("sync", times=1)
        topic.log.append(build_entry(EntryMetadata("p", 0, 1), b"x"), 1, None)
        topic.subscriptions["s"].cursor.acknowledge_until(0)
        topic.log.on_failed = lambda extent, error: topic.results.counted().refused(extent)
        await broker.store.journal.drain()
        await asyncio.sleep(0.001)
        await broker.rates.look()
        ports = local_ports(broker.service, broker.rates, broker.connections)
        (counted,) = [one async for one in ports.broker.counters(CounterOptions(cursors=True))]
        assert counted.writes is not None
        assert counted.writes.failed == 1
        cursor = counted.subscriptions[0].cursor
        assert cursor is not None
        assert cursor.lost >= 1
        topic.log.append(build_entry(EntryMetadata("p", 0, 1), b"x"), 1, None)
        topic.log.on_durable = lambda extent: None
        await broker.store.journal.drain()
        broker.store.cache.clear(topic.log.cached_runs)
        read: list[Any] = []
        both = asyncio.get_running_loop().create_future()

        def done(result: Any) -> None:
            read.append(result)
            if len(read) == 2:
                both.set_result(True)

        for _ in range(2):
            topic.log.read(topic.log.first, 1, 1 << 20, done)
        assert await asyncio.wait_for(both, 30)
        assert (broker.store.reader.begun, broker.store.reader.joined) == (1, 1)
        await broker.stop()

    asyncio.run(run())
