"""What a producer and a consumer count: sums over partitions, percentiles, and a bound on what is kept."""

from __future__ import annotations

import asyncio
import logging

import pytest

from magnetar.client.aio.client import Client
from magnetar.client.aio.statistics.handle_stats import consumer_stats, producer_stats
from magnetar.client.machines.entry_intake import ConsumeCounters
from magnetar.client.machines.outgoing.entry_fate import PublishCounters
from magnetar.model.errors import InvalidValueError
from magnetar.testing.kit.pulsar_broker import PulsarBroker


def test_sums_and_percentiles_of_two_partitions() -> None:
    one, other = PublishCounters(), PublishCounters()
    for number in range(1, 100):
        one.stored(1, 10, number / 1000)
    other.stored(1, 100, 2.0)
    other.failed = 3
    found = producer_stats([one, other], 7, 10.0)
    assert (found.num_msgs_sent, found.num_bytes_sent, found.num_send_failed, found.pending_queue_size) == (
        100, 1090, 3, 7,
    )  # fmt: skip
    assert (found.send_msgs_rate, found.send_bytes_rate) == (10.0, 109.0)
    assert abs(found.send_latency_millis_50pct - 50) < 0.2 and found.send_latency_millis_99pct == 99.0
    assert (found.send_latency_millis_999pct, found.send_latency_millis_max) == (2000.0, 2000.0)


def test_nothing_is_no_division_by_zero() -> None:
    assert producer_stats([], 0, 0.0).send_msgs_rate == 0.0
    assert producer_stats([PublishCounters()], 0, 1.0).send_latency_millis_max == 0.0
    assert consumer_stats([ConsumeCounters()], 0, 0.0).rate_bytes_received == 0.0


def test_latencies_of_a_long_life_stay_few() -> None:
    counters = PublishCounters()
    for number in range(100_000):
        counters.stored(1, 1, number / 10_000)
    assert len(counters.latencies) < 4_200 and sum(counters.latencies.values()) == 100_000
    assert producer_stats([counters], 0, 1.0).send_latency_millis_max >= 9_999


def test_what_handles_have_counted() -> None:
    """A batch, a message of chunks' size, a failure, acknowledgements of entries and of messages of a batch."""

    async def all_of_it(broker: PulsarBroker) -> None:
        async with broker.aio_client() as client:
            consumer = await client.subscribe("t", "s", batch_index_ack_enabled=True)
            producer = await client.create_producer("t", batching_enabled=True)
            await asyncio.gather(*(producer.send(bytes(100)) for _ in range(10)))
            last = producer.send_nowait(b"-")
            assert producer.stats().pending_queue_size == 1
            await last
            got = [await consumer.receive() for _ in range(11)]
            assert consumer.stats().msg_num_in_receiver_queue == 0
            for message in got[5:]:
                await consumer.acknowledge(message)
            await asyncio.sleep(0.01)
            sent, received = producer.stats(), consumer.stats()
            assert (sent.num_msgs_sent, sent.num_send_failed, sent.pending_queue_size) == (11, 0, 0)
            assert sent.num_bytes_sent > 1_000 and sent.send_latency_millis_max >= sent.send_latency_millis_50pct >= 0
            assert (received.num_msgs_received, received.num_acks_sent, received.num_receive_failed) == (11, 2, 0)
            assert received.num_bytes_received > sent.num_bytes_sent

    with PulsarBroker() as broker:
        asyncio.run(all_of_it(broker))


def test_the_log_has_a_line_for_each_handle_and_interval(caplog: pytest.LogCaptureFixture) -> None:
    async def all_of_it(broker: PulsarBroker) -> None:
        async with broker.aio_client(stats_interval_in_seconds=0.01) as client:
            await client.create_producer("t", "p")
            await client.subscribe("t", "s")
            await asyncio.sleep(0.05)

    with PulsarBroker() as broker, caplog.at_level(logging.INFO):
        asyncio.run(all_of_it(broker))
        with pytest.raises(InvalidValueError, match="stats_interval_in_seconds"):
            asyncio.run(broken(broker.service_url))
    assert (
        "persistent://public/default/t: ProducerStatistics(" in caplog.text and "ConsumptionStatistics(" in caplog.text
    )


async def broken(url: str) -> None:
    Client(url, stats_interval_in_seconds=-1)
