"""Requests that may be repeated wait while the client connects again, up to the operation's time-out; others fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar import aio
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.reader import Reader
from magnetar.client.errors import AlreadyClosedError, ClientTimeoutError, ConnectionLostError, RefusedError
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import ServerError
from magnetar.protocol.commands import SubType, TxnSubscription
from magnetar.testing import PulsarBroker
from tests.sim.world import T
from tests.support.delivery_stage import Stage, play

ALL = [b"%d" % number for number in range(5)]
Ask = Callable[[Consumer, Reader], Coroutine[Any, Any, Any]]


async def sought(consumer: Consumer, _: Reader) -> list[bytes]:
    await consumer.seek(MessageId.earliest)
    return [(await consumer.receive(5_000)).data() for _ in ALL]


async def sought_time(consumer: Consumer, _: Reader) -> list[bytes]:
    await consumer.seek(0)
    return [(await consumer.receive(5_000)).data() for _ in ALL]


async def sought_reading(_: Consumer, reader: Reader) -> list[bytes]:
    await reader.seek(MessageId.earliest)
    return [(await reader.read_next(5_000)).data() for _ in ALL]


async def last(consumer: Consumer, _: Reader) -> int:
    return (await consumer.get_last_message_id()).entry_id()


async def available(_: Consumer, reader: Reader) -> bool:
    return await reader.has_message_available()


ASKS: dict[str, tuple[Ask, object]] = {
    "seek": (sought, ALL),
    "seek to a time": (sought_time, ALL),
    "seek of a reader": (sought_reading, ALL),
    "get_last_message_id": (last, len(ALL) - 1),
    "has_message_available": (available, False),
}


async def opened(stage: Stage) -> tuple[Consumer, Reader]:
    """A consumer and a reader that have had everything."""
    await stage.send(*ALL)
    consumer = await stage.subscribe(consumer_type=SubType.Exclusive)
    reader = await stage.client.create_reader(T, MessageId.earliest)
    for _ in ALL:
        await consumer.acknowledge(await consumer.receive(5_000))
        await reader.read_next(5_000)
    await asyncio.sleep(1)
    return consumer, reader


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("away", [False, True])
def test_what_may_be_repeated_waits_for_the_broker(name: str, away: bool) -> None:
    """Asked while the broker is away, and at the moment at which the connection breaks."""
    ask, expected = ASKS[name]

    async def story(stage: Stage) -> None:
        consumer, reader = await opened(stage)
        stage.world.machine.power_off()
        if away:
            await asyncio.sleep(1)
            assert not consumer.is_connected() and not reader.is_connected()
        asked = asyncio.ensure_future(ask(consumer, reader))
        await asyncio.sleep(5)
        assert not asked.done()
        await stage.world.machine.start()
        assert await asked == expected

    play(story)


@pytest.mark.parametrize("name", ASKS)
def test_one_deadline_for_all_attempts(name: str) -> None:
    """The broker is silent about the first question for four seconds, and gone then."""
    ask, _ = ASKS[name]

    async def story(stage: Stage) -> None:
        consumer, reader = await opened(stage)
        began = stage.now
        asked = asyncio.ensure_future(ask(consumer, reader))
        for link in stage.world.network.links:
            link.freeze()
        await asyncio.sleep(4)
        for link in stage.world.network.links:
            link.cut()
        stage.world.machine.power_off()
        with pytest.raises(ClientTimeoutError, match=f"{T} was not connected again within 20 s .*refused") as caught:
            await asked
        assert 19.9 < stage.now - began < 20.1, caught.value
        await stage.world.machine.start()
        await stage.send(b"after")
        assert (await consumer.receive(60_000)).data() in (b"after", ALL[0])

    play(story)


def test_what_may_not_be_repeated_fails_at_once() -> None:
    async def story(stage: Stage) -> None:
        consumer, _ = await opened(stage)
        stage.world.machine.power_off()
        await asyncio.sleep(1)
        began = stage.now
        with pytest.raises(ConnectionLostError, match="not connected at the moment"):
            await consumer.unsubscribe()
        assert stage.now == began
        await stage.world.machine.start()

    play(story)


def test_closing_ends_the_wait() -> None:
    async def story(stage: Stage) -> None:
        consumer, reader = await opened(stage)
        stage.world.machine.power_off()
        await asyncio.sleep(1)
        asked = [asyncio.ensure_future(ask(consumer, reader)) for ask, _ in ASKS.values()]
        await asyncio.sleep(1)
        await consumer.close()
        await reader.close()
        for one in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(one, AlreadyClosedError), one
        await stage.world.machine.start()

    play(story)


@pytest.mark.parametrize("deed", ["cut", "drop", "refuse"])
def test_a_reader_whose_seek_comes_to_nothing_goes_on_where_it_was(deed: str) -> None:
    """It began with its start again, and had everything twice."""
    with PulsarBroker(seed=1) as broker, broker.client(operation_timeout_seconds=1) as client:
        reader = client.create_reader("t", MessageId.earliest)
        with client.create_producer("t") as producer:
            for value in ALL:
                producer.send(value)
        assert [reader.read_next(5_000).data() for _ in ALL[:2]] == ALL[:2]
        if deed == "drop":
            with broker.faults.drop("SEEK", times=1), pytest.raises(ClientTimeoutError):
                reader.seek(MessageId.earliest)
        elif deed == "cut":
            with broker.faults.cut_at("SEEK", times=1_000), pytest.raises(ClientTimeoutError):
                reader.seek(MessageId.earliest)
        else:
            with broker.faults.refuse("SEEK", times=1), pytest.raises(RefusedError):
                reader.seek(MessageId.earliest)
        assert [reader.read_next(5_000).data() for _ in ALL[2:]] == ALL[2:]


def test_a_seek_that_is_not_connected_again_ends_in_time() -> None:
    with PulsarBroker(seed=1) as broker, broker.client(operation_timeout_seconds=2) as client:
        consumer = client.subscribe("t", "s")
        with broker.faults.drop("SUBSCRIBE", times=1_000), pytest.raises(ClientTimeoutError, match="it has moved"):
            consumer.seek(MessageId.earliest)
        with client.create_producer("t") as producer:
            producer.send(b"after")
        assert consumer.receive(60_000).data() == b"after"


def test_a_broker_that_has_let_go_of_the_consumer_is_asked_again() -> None:
    """A topic that is unloaded answers MetadataError about consumers that it has closed."""
    with PulsarBroker(seed=1) as broker, broker.client(operation_timeout_seconds=10) as client:
        consumer = client.subscribe("t", "s")
        with broker.faults.refuse("GetLastMessageId", ServerError.MetadataError, times=1), pytest.raises(RefusedError):
            consumer.get_last_message_id()  # it is open there: the broker means it
        for _ in range(5):
            broker.admin.topics.unload("persistent://public/default/t")
            assert consumer.get_last_message_id().entry_id() == -1
            consumer.seek(MessageId.latest)


@pytest.mark.parametrize("command", ["AddPartitionToTxn", "AddSubscriptionToTxn"])
def test_what_a_transaction_touches_is_said_again(command: str) -> None:
    async def main(broker: PulsarBroker) -> int:
        async with asyncio.timeout(30), aio.Client(broker.service_url) as client:
            consumer = await client.subscribe(T, "s")
            with broker.faults.cut_at(command, times=1) as fault:
                async with await client.new_transaction() as transaction:
                    await transaction._coordinator.add_partition(transaction.txn_id, T)
                    await transaction._coordinator.add_subscription(transaction.txn_id, TxnSubscription(T, "s"))
            await consumer.close()
            return fault.hits

    with PulsarBroker(seed=1, settings={"transactionCoordinatorEnabled": "true"}) as broker:
        assert asyncio.run(main(broker)) == 1
