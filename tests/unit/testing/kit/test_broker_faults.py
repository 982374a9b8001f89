"""Accidents on purpose: each happens, as often as it was asked for, and nothing that was receipted is lost by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar import aio
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.testing import BrokerClosedError, PulsarBroker

Scenario = Callable[[PulsarBroker, aio.Client], Coroutine[Any, Any, None]]


def run(scenario: Scenario, seed: int = 7, **settings: object) -> None:
    async def main() -> None:
        async with PulsarBroker(seed=seed, settings=settings) as broker, broker.aio_client() as client:
            await scenario(broker, client)

    asyncio.run(main())


def test_a_lost_acknowledgement_brings_the_message_again() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t")
        consumer = await client.subscribe("t", "s")
        other = await client.subscribe("t", "other")
        await producer.send(b"x")
        fault = broker.faults.drop_ack(subscription="s")
        for each in (consumer, other):
            await each.acknowledge(await each.receive())
        await broker.clock.settle_async()
        await broker.topic("t").expect_backlog_async("other", 0)
        assert (fault.hits, fault.over, broker.topic("t").backlog("s")) == (1, True, 1)
        assert broker.faults.cut("t") == 1
        message = await consumer.receive()
        await consumer.acknowledge(message)
        await broker.topic("t").expect_backlog_async("s", 0)

    run(scenario)


@pytest.mark.parametrize("deduplication", [False, True])
def test_a_lost_receipt_makes_a_second_copy_unless_they_are_noticed(deduplication: bool) -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t", producer_name="p")
        with broker.faults.drop_receipt(topic="t") as fault:
            await producer.send(b"once")
        assert fault.hits == 1
        assert len(broker.topic("t").messages()) == (1 if deduplication else 2)

    run(scenario, brokerDeduplicationEnabled=deduplication)


def test_requests_are_refused_as_often_as_asked() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        faults = broker.faults
        faults.refuse("Producer", "TopicTerminatedError", message="no more")
        with pytest.raises(aio.RefusedError, match="no more"):
            await client.create_producer("t")
        producer = await client.create_producer("t")
        again = faults.refuse("LOOKUP_TOPIC", times=2), faults.refuse("PartitionedTopicMetadata", times=2)
        consumer = await client.subscribe("t", "s")
        assert [fault.hits for fault in again] == [2, 2], "the client tries again what is refused for the moment"
        faults.refuse("Send", ServerError.TopicTerminatedError)
        with pytest.raises(aio.ClientError):
            await producer.send(b"x")
        assert broker.topic("t").messages() == []
        faults.refuse("GetLastMessageId", ServerError.TopicNotFound)
        with pytest.raises(aio.RefusedError):
            await consumer.get_last_message_ids()

    run(scenario)


def test_delays_keep_the_order_and_run_on_the_brokers_clock() -> None:
    # the receipt of the second waits behind the first message: both are on one connection
    async def main() -> None:
        async with PulsarBroker() as broker, broker.aio_client() as one, broker.aio_client() as two:
            producer = await one.create_producer("t")
            consumer = await two.subscribe("t", "s")
            fault = broker.faults.delay(3600, "Message", times=1)
            await producer.send(b"1")
            await producer.send(b"2")
            await broker.clock.settle_async()
            assert consumer.receive_nowait() is None
            await broker.clock.advance_async(hours=1)
            assert [(await consumer.receive()).data() for _ in range(2)] == [b"1", b"2"]
            assert fault.hits == 1

    asyncio.run(main())


@pytest.mark.parametrize("end", ["kill", "power_off"])
def test_what_was_receipted_outlives_the_broker(end: str) -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t")
        consumer = await client.subscribe("t", "s")
        for number in range(20):
            await producer.send(b"%d" % number)
        await consumer.acknowledge(await consumer.receive())
        url = broker.service_url
        getattr(broker.faults, end)()
        assert not broker.running and "dead" in repr(broker)
        dead: list[Callable[[], object]] = [broker.topics, broker.faults.kill, lambda: broker.topic("t").messages()]
        for call in dead:
            with pytest.raises(BrokerClosedError, match="restart"):
                call()
        broker.restart()
        assert broker.running and broker.service_url == url
        with pytest.raises(InvalidValueError, match="runs"):
            broker.restart()
        assert [one.data() for one in broker.topic("t").messages()] == [b"%d" % n for n in range(20)]
        await producer.send(b"20")
        while (await consumer.receive()).data() != b"20":
            pass

    for seed in range(5):
        run(scenario, seed)


def test_a_full_disk_takes_nothing_until_it_has_room() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t", send_timeout_millis=3_600_000)
        await producer.send(b"before")
        with broker.faults.disk_full():
            sending = asyncio.get_running_loop().create_task(producer.send(b"while"))
            await broker.clock.advance_async(5)
            assert not sending.done() or sending.exception() is not None
            assert [one.data() for one in broker.topic("t").messages()] == [b"before"]
        await broker.clock.advance_async(5)
        await asyncio.wait([sending])
        await producer.send(b"after")
        assert broker.topic("t").messages()[-1].data() == b"after"

    run(scenario)


def test_chaos_loses_nothing() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t", producer_name="p")
        consumer = await client.subscribe("t", "s")
        with broker.faults.chaos(0.06) as chaos:
            for number in range(30):
                await producer.send(b"%d" % number)
            seen: list[bytes] = []
            while len(seen) < 30:
                message = await consumer.receive()
                await consumer.acknowledge(message)
                if message.data() not in seen:
                    seen.append(message.data())
        assert chaos.hits > 2
        assert seen == [b"%d" % number for number in range(30)]

    run(scenario, brokerDeduplicationEnabled=True)


def test_a_client_leaves_a_connection_on_which_nothing_comes_back() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        await client.create_producer("t")
        (first,) = (one.address for one in broker.topic("t").producers())
        await broker.clock.advance_async(hours=1)
        with broker.faults.drop("Pong", times=None) as lost:
            await broker.clock.advance_async(60)
            await broker.clock.advance_async(60)
        assert lost.hits
        await broker.clock.advance_async(60)
        (again,) = (one.address for one in broker.topic("t").producers())
        assert again != first

    run(scenario)


def test_absurd_faults_are_refused_and_change_nothing() -> None:
    with PulsarBroker() as broker:
        faults = broker.faults
        absurd: list[Callable[[], object]] = [
            lambda: faults.drop("Sned"),
            lambda: faults.drop(""),
            lambda: faults.drop("Send", 0),
            lambda: faults.drop("Send", chance=0),
            lambda: faults.drop("Send", chance=1.5),
            lambda: faults.refuse("Flow"),
            lambda: faults.refuse("Send", "NoSuchError"),
            lambda: faults.delay(-1, "Send"),
            lambda: faults.delay(float("nan"), "Send"),
        ]
        for each in absurd:
            with pytest.raises(InvalidValueError):
                each()
        with pytest.raises(InvalidValueError, match="send"):
            faults.drop("Sned")
        assert broker._embedded.faults.all == ()
        assert faults.cut() == 0 == faults.cut("no-such-topic")
        fault = faults.drop("Send")
        fault.stop()
        fault.stop()
        assert fault.over and "over" in repr(fault)
    with pytest.raises(BrokerClosedError):
        broker.faults.kill()
    with pytest.raises(BrokerClosedError):
        broker.restart()
