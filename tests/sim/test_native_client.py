"""The native client against the simulated broker and network: crashes, cuts and cancellation at any await.

No message is lost, none is acknowledged that the application did not acknowledge, and order is kept.
"""

from __future__ import annotations

import asyncio

import pytest

from magnetar.app.node import Broker
from magnetar.client.aio.client import Client
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.aio.topics.receipt import tell_stored
from magnetar.client.aio.topics.topic_producer import TopicProducer
from magnetar.client.errors import ClientError
from magnetar.client.machines.acknowledgement import AckTracker
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.unconfirmed_entry import UnconfirmedEntry
from magnetar.protocol.commands import InitialPosition, SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.simloop import SimClock
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
TOTAL = 120
URL = f"pulsar://{HOST}:{PORT}"


def new_client(world: World) -> Client:
    return Client(URL, operation_timeout_seconds=20, clock=SimClock(world.loop), rng=world.rng)


class Application:
    """Sends numbers, consumes and acknowledges some of them, and cancels its own calls at random."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng
        self.client = new_client(world)
        self.confirmed: list[int] = []
        self.received: list[int] = []
        self.acknowledged: set[int] = set()
        self.may_be_acknowledged: set[int] = set()

    async def impatient(self, call: asyncio.Task[object]) -> object | None:
        """Wait for a call, and at random cancel it after a while; what it returned all the same counts."""
        if self.rng.random() < 0.3:
            await asyncio.wait([call], timeout=self.rng.uniform(0.0, 0.02))
            call.cancel()
        await asyncio.wait([call])
        return None if call.cancelled() else call.result()

    async def publish(self) -> None:
        rng = self.rng
        producer = await self.client.create_producer(
            T,
            send_timeout_millis=0,
            max_pending_messages=30,
            block_if_queue_full=True,
            batching_enabled=rng.random() < 0.7,
            batching_max_messages=rng.randint(1, 8),
            batching_max_publish_delay_ms=rng.choice((1, 20)),
        )
        receipts: list[asyncio.Task[MessageId]] = []
        for number in range(TOTAL):
            receipts.append(self.world.loop.create_task(self._send(producer, number)))
            await asyncio.sleep(0)  # the call has begun: from here on the message is on its way, or waits for room
            if rng.random() < 0.2:
                await asyncio.sleep(rng.uniform(0.0, 0.12))
            if rng.random() < 0.1:
                receipts[-1].cancel()
        await producer.flush()
        await asyncio.wait(receipts)
        await producer.close()

    async def _send(self, producer: Producer, number: int) -> MessageId:
        found = await producer.send(b"%d" % number, partition_key=f"k{number % 3}")
        self.confirmed.append(number)
        return found

    async def consume(self, consumer: Consumer, sub_type: SubType, seconds: float) -> None:
        rng = self.rng
        until = self.world.loop.time() + seconds
        while self.world.loop.time() < until:
            found = await self.impatient(self.world.loop.create_task(self._receive(consumer)))
            if not isinstance(found, Message):
                continue
            number = int(found.data())
            self.received.append(number)
            chance = rng.random()
            if chance < 0.6:
                self.acknowledged.add(number)
                self.may_be_acknowledged.add(number)
                await consumer.acknowledge(found)
            elif chance < 0.7:
                await consumer.negative_acknowledge(found)
            elif chance < 0.75 and sub_type is SubType.Failover:
                self.may_be_acknowledged.update(range(number + 1))
                await consumer.acknowledge_cumulative(found)

    async def _receive(self, consumer: Consumer) -> object:
        try:
            return await consumer.receive(2_000)
        except ClientError:
            return None


async def trouble(world: World, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(world.rng.uniform(0.05, 0.5))
        kind = world.rng.random()
        if kind < 0.4:
            await world.crash()
        elif kind < 0.6:
            await world.restart()
        else:
            for link in world.network.links:
                if world.rng.random() < 0.6:
                    link.cut()


async def the_whole_way(world: World) -> None:
    """Send, receive, acknowledge, refuse and cancel through crashes and cuts; what is left comes to the next consumer,
    and nothing else."""
    await world.boot()
    application = Application(world)
    sub_type = world.rng.choice((SubType.Shared, SubType.Failover, SubType.Key_Shared, SubType.Exclusive))
    batch_index_ack = world.rng.random() < 0.5
    consumer = await application.client.subscribe(
        T, S, sub_type, initial_position=InitialPosition.Earliest, negative_ack_redelivery_delay_ms=200,
        receiver_queue_size=world.rng.choice((1, 5, 100)), batch_index_ack_enabled=batch_index_ack,
    )  # fmt: skip
    publishing = world.loop.create_task(application.publish())
    troubles = world.loop.create_task(trouble(world, 4))
    consuming = world.loop.create_task(application.consume(consumer, sub_type, 8.0))
    await asyncio.gather(publishing, troubles, consuming)
    await consumer.close()
    await application.client.close()
    everything = await stored(world)
    trimmed = application.may_be_acknowledged & set(application.received)  # a whole ledger of these is removed
    assert set(application.confirmed) <= set(everything) | trimmed, "confirmed and not stored"
    assert everything == sorted(everything), "stored out of order"
    if sub_type is not SubType.Shared:
        for key in range(3):
            mine = [number for number in dict.fromkeys(application.received) if number % 3 == key]
            assert mine == sorted(mine), f"received out of order, key {key}: {mine}"
    left = await rest(world, sub_type)
    missing = set(everything) - set(left) - application.may_be_acknowledged
    assert not missing, f"acknowledged, but not by the application: {sorted(missing)}"
    world.check_tasks()


async def stored(world: World) -> list[int]:
    """All numbers in the log, of repeated ones the first."""
    async with new_client(world) as client:
        reader = await client.create_reader(T, MessageId.earliest)
        found: dict[int, None] = {}
        while await reader.has_message_available():
            found.setdefault(int((await reader.read_next(5_000)).data()))
        return list(found)


async def rest(world: World, sub_type: SubType) -> list[int]:
    """What a later consumer of the subscription gets."""
    async with new_client(world) as client:
        consumer = await client.subscribe(T, S, sub_type)
        found: list[int] = []
        while True:
            try:
                found.append(int((await consumer.receive(3_000)).data()))
            except ClientError:
                return found


def test_the_whole_way() -> None:
    run_seeds(the_whole_way, 8)


async def a_reader(world: World) -> None:
    """A reader sees every message once and in order, whatever the network does, also within batches."""
    await world.boot()
    application = Application(world)
    await application.publish()
    client = new_client(world)
    reader = await client.create_reader(T, MessageId.earliest, receiver_queue_size=world.rng.choice((1, 7, 50)))
    troubles = world.loop.create_task(trouble(world, 3))
    found: list[int] = []
    while len(found) < len(set(found) | set(application.confirmed)) or await reader.has_message_available():
        message = await application.impatient(world.loop.create_task(reader.read_next()))
        if isinstance(message, Message):
            found.append(int(message.data()))
            await asyncio.sleep(world.rng.uniform(0.0, 0.02))
    await troubles
    assert found == sorted(set(found)) and set(application.confirmed) <= set(found)
    await client.close()


def test_a_reader() -> None:
    run_seeds(a_reader, 4)


async def connected(world: World) -> None:
    """is_connected says what the broker has: nothing after a cut, and all of it, which works, once it is true again."""
    await world.boot()
    async with new_client(world) as client:
        producer, consumer = await client.create_producer(T, send_timeout_millis=0), await client.subscribe(T, S)
        for number in range(5):
            assert producer.is_connected() and consumer.is_connected()
            for link in world.network.links:
                link.cut()
            if world.rng.random() < 0.5:
                await world.crash()
            seen: list[tuple[bool, bool]] = []
            for _ in range(60_000):
                seen.append((producer.is_connected(), consumer.is_connected()))
                if seen[-1] == (True, True) and (False, False) in seen:
                    break
                await asyncio.sleep(0.0005)
            assert (False, False) in seen and seen[-1] == (True, True)
            await asyncio.wait_for(producer.send(b"%d" % number), 1.0)
            found = await consumer.receive(1_000)
            assert int(found.data()) == number
            await consumer.acknowledge(found)
            await asyncio.sleep(1.0)


def test_connected() -> None:
    run_seeds(connected, 3)


def as_it_is(_: Broker) -> None:
    """What is wrong in the last two simulations is the client."""


def test_a_client_that_forgets_what_it_sent_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TopicProducer.on_lost

    def forgetful(self: TopicProducer, error: Exception) -> None:
        queue = self._queue
        if queue is None:
            return whole(self, error)
        for one in queue._pending:  # pretends that they were stored
            one.fate.stored(self.topic, -1, 0, 0)
            tell_stored(one.fate)
            queue.messages -= one.messages
        queue._pending.clear()
        whole(self, error)
        return self._after_fates()

    monkeypatch.setattr(TopicProducer, "on_lost", forgetful)
    caught(the_whole_way, as_it_is, saying="confirmed and not stored")


def test_a_client_that_sends_again_in_another_order_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Publication.lost

    def backwards(self: Publication) -> list[UnconfirmedEntry]:
        failed = whole(self)
        self._pending.reverse()
        return failed

    monkeypatch.setattr(Publication, "lost", backwards)
    caught(the_whole_way, as_it_is, saying="stored out of order")


def test_a_client_that_hands_out_the_next_one_first_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Consumer.receive
    held: list[Message] = []

    async def swapped(self: Consumer, timeout_millis: int | None = None) -> Message:
        if held and self.options.durable:
            return held.pop()
        first = await whole(self, timeout_millis)
        if self.options.durable:
            try:
                second = await whole(self, 50)
            except ClientError:
                return first
            held.append(first)
            return second
        return first

    monkeypatch.setattr(Consumer, "receive", swapped)
    caught(the_whole_way, as_it_is, saying="received out of order")


def test_a_client_that_acknowledges_whole_batches_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = AckTracker.individual
    monkeypatch.setattr(AckTracker, "cross_off", lambda self, left, index: whole(self, left.place, -1, 0))
    caught(the_whole_way, as_it_is, saying="acknowledged, but not by the application")
