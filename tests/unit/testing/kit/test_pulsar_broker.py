"""The broker of a test as a thing: made, used by every client, seen into, closed, forgotten, inherited."""

from __future__ import annotations

import asyncio
import datetime
import gc
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest

import magnetar
from magnetar import aio
from magnetar.model.errors import InvalidValueError, NotFoundError
from magnetar.testing import BrokerClosedError, PulsarBroker, WouldBlockError
from magnetar.testing.kit.pulsar_broker import open_brokers


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_every_client_speaks_to_it_and_the_test_sees_what_they_did() -> None:
    with PulsarBroker() as broker:
        official = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        sender = official.create_producer("orders", producer_name="shop", properties={"city": "Rome"})
        with broker.client() as client:
            consumer = client.subscribe("orders", "billing", aio.ConsumerType.Shared, consumer_name="me")
            sender.send(b"1", partition_key="k")
            topic = broker.topic("orders")
            (stored,) = topic.expect(1)
            assert (stored.data(), stored.partition_key()) == (b"1", "k")
            assert topic.backlog("billing") == 1
            assert "waits" in str(broker.explain("orders", stored.message_id())) or "delivered" in str(
                broker.explain("orders", stored.message_id())
            )
            consumer.acknowledge(consumer.receive())
            topic.expect_backlog("billing", 0)
            assert "acknowledged" in str(broker.explain("orders", stored.message_id()))
            (seen,) = topic.subscriptions().values()
            assert (seen.name, seen.type, seen.backlog, seen.consumers) == ("billing", "Shared", 0, ("me",))
            (producer,) = topic.producers()
            assert (producer.name, producer.properties, producer.topic) == ("shop", {"city": "Rome"}, topic.name)
            assert broker.topics() == [topic.name] and topic.exists()
            assert set(broker.topics()) <= set(broker.topics(system=True))
        official.close()


def test_a_blocking_client_shares_the_time() -> None:
    with PulsarBroker() as broker, broker.client() as client:
        producer = client.create_producer("t")
        consumer = client.subscribe("t", "s", aio.ConsumerType.Shared, negative_ack_redelivery_delay_ms=3_600_000)
        producer.send(b"x")
        consumer.negative_acknowledge(consumer.receive())
        broker.clock.advance(minutes=59)
        assert broker.topic("t").backlog("s") == 1
        broker.clock.advance(minutes=2)
        assert consumer.receive(timeout_millis=1000).redelivery_count() == 1
        producer.send(b"later", deliver_after=datetime.timedelta(days=3))
        broker.clock.advance(days=3)
        assert consumer.receive(timeout_millis=1000).data() == b"later"


def test_batches_chunks_and_partitions_are_seen_message_by_message() -> None:
    async def main() -> None:
        async with PulsarBroker(settings={"maxMessageSize": 100_000}) as broker, broker.aio_client() as client:
            async with asyncio.TaskGroup() as group:
                producer = await client.create_producer("b", batching_enabled=True, compression_type=3)
                for number in range(5):
                    group.create_task(producer.send(b"%d" % number))
            assert sorted(one.data() for one in broker.topic("b").messages()) == [b"%d" % n for n in range(5)]
            assert [one.data() for one in broker.topic("b").messages(2)] == [b"0", b"1"]
            large = bytes(250_000)
            await (await client.create_producer("c", chunking_enabled=True)).send(large)
            assert [one.data() for one in broker.topic("c").messages()] == [large]
            await (await client.subscribe("b", "s", initial_position=aio.InitialPosition.Earliest)).close()
            assert broker.topic("b").backlog("s") == 5
            admin = await asyncio.to_thread(lambda: broker.admin)
            await asyncio.to_thread(admin.topics.create_partitioned, "p", 3)
            producer = await client.create_producer("p")
            await client.subscribe("p", "s")
            for _ in range(6):
                await producer.send(b"x")
            topic = broker.topic("p")
            assert len(await topic.expect_async(6)) == 6 and topic.backlog("s") == 6
            assert len(topic.producers()) == 3 and topic.subscriptions()["s"].backlog == 6
            with pytest.raises(WouldBlockError, match="expect_async"):
                topic.expect(6)
            with pytest.raises(WouldBlockError, match="expect_backlog_async"):
                topic.expect_backlog("s", 6)

    asyncio.run(main())


def test_what_is_not_there_is_named() -> None:
    with PulsarBroker() as broker, broker.client() as client:
        client.create_producer("orders").send(b"x")
        topic = broker.topic("order")
        looks: list[Callable[[], object]] = [topic.messages, topic.subscriptions, topic.producers]
        for look in looks:
            with pytest.raises(NotFoundError, match="there are: persistent://public/default/orders"):
                look()
        assert not topic.exists()
        with pytest.raises(NotFoundError, match="has no subscription 'x'; it has: none"):
            broker.topic("orders").backlog("x")
        with pytest.raises(AssertionError, match=r"2 messages .* within 0\.01 s, there are 1\n.*b'x'"):
            broker.topic("orders").expect(2, timeout=0.01)
        with pytest.raises(AssertionError, match="there are more"):
            broker.topic("orders").expect(0)
        with pytest.raises(AssertionError, match="no such subscription"):
            broker.topic("orders").expect_backlog("x", timeout=0.01)
        with pytest.raises(NotFoundError, match="7:0"):
            broker.explain("orders", aio.MessageId(-1, 7, 0))
        absurd: list[Callable[[], object]] = [
            lambda: broker.topic("orders").messages(0),
            lambda: broker.topic("orders").expect(-1),
            lambda: PulsarBroker(seed=-1),
            lambda: PulsarBroker(seed=True),
            lambda: PulsarBroker(settings={"brokerDeduplicationEnable": True}),
            lambda: PulsarBroker(settings={"brokerServicePortTls": 0}),
            broker.aio_client,
        ]
        for call in absurd:
            with pytest.raises(InvalidValueError):
                call()
        assert open_brokers() == {broker}


def test_nothing_is_left_of_many_that_ran_at_once() -> None:
    with PulsarBroker(with_rest=True) as broker, magnetar.Client(broker.service_url) as client:
        client.create_producer("t")
    gc.collect()
    before = threading.active_count(), descriptors()
    brokers = [PulsarBroker() for _ in range(5)]
    assert len({broker.service_url for broker in brokers}) == 5
    for broker in brokers:
        with magnetar.Client(broker.service_url) as client:
            client.create_producer("t").send(broker.service_url.encode())
        assert [one.data() for one in broker.topic("t").messages()] == [broker.service_url.encode()]
    for broker in brokers:
        broker.close()
        broker.close()
        assert broker.closed and "closed" in repr(broker)
    gc.collect()
    # other tests may have left something that ends meanwhile
    assert threading.active_count() <= before[0] and descriptors() <= before[1]
    closed: list[Callable[[], object]] = [
        brokers[0].topics, lambda: brokers[0].admin, lambda: brokers[0].topic("t").messages(), brokers[0].restart,
        brokers[0].faults.cut, brokers[0].clock.settle,
    ]  # fmt: skip
    for call in closed:
        with pytest.raises(BrokerClosedError, match="closed"):
            call()


def test_one_that_is_forgotten_says_so_and_ends() -> None:
    before = threading.active_count()
    broker: Any = PulsarBroker()
    thread = broker._thread._thread
    with pytest.warns(ResourceWarning, match=r"test_pulsar_broker\.py:\d+ was not closed: use `with`"):
        del broker
        gc.collect()
    thread.join(10)
    assert threading.active_count() <= before


def test_a_forked_child_is_told_and_can_let_go() -> None:
    with PulsarBroker() as broker:
        child = os.fork()
        if not child:
            code = 1
            try:
                broker.topics()
            except BrokerClosedError as error:
                broker.close()
                code = 0 if "forked" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert broker.topics() == []


def test_rest_is_there_when_it_is_asked_for_and_after_a_restart() -> None:
    with PulsarBroker(with_rest=True) as broker:
        url = broker.rest_url
        assert broker.admin.clusters.list() == ["standalone"]
        broker.faults.kill()
        broker.restart()
        assert broker.rest_url == url and broker.admin.clusters.list() == ["standalone"]


def test_it_is_made_and_closed_within_an_event_loop_too() -> None:
    async def main() -> None:
        async with PulsarBroker() as broker:
            assert broker.topics() == []
        with PulsarBroker() as broker:
            assert broker.topics() == []
        with pytest.raises(BrokerClosedError):
            await broker.clock.advance_async(1)

    asyncio.run(main())


def test_calls_come_from_several_threads() -> None:
    with PulsarBroker() as broker, broker.client() as client:
        producer = client.create_producer("t")
        stop = time.monotonic() + 0.2

        def look() -> None:
            while time.monotonic() < stop:
                broker.topics()

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            producer.send(b"x")
        broker.clock.advance(60)
        for thread in threads:
            thread.join()
        assert len(broker.topic("t").expect(20)) == 20
