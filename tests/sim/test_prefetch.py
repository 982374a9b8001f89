"""A prefetch of 0 or 1, counted at every entry that comes: over partitions, through cuts, crashes, seeks, refusals and
cancelled calls, and with other consumers that are to get what one does not wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from magnetar.app.node import Broker
from magnetar.client.aio.client import Client
from magnetar.client.aio.consumers import prefetch
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.topics.demanded_consumer import DemandedConsumer
from magnetar.client.aio.topics.due_timer import DueTimer
from magnetar.client.errors import ClientError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.prefetch.prefetch_budget import PrefetchBudget
from magnetar.client.machines.prefetch.resent_entries import ResentEntries
from magnetar.model.names import TopicName
from magnetar.protocol.commands import CommandMessage, InitialPosition, SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.simloop import SimClock
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
TOTAL = 90
PARTITIONS = 4


def new_client(world: World) -> Client:
    url = f"pulsar://{HOST}:{PORT}"
    return Client(url, operation_timeout_seconds=20, clock=SimClock(world.loop), rng=world.rng)


async def trouble(world: World, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(world.rng.uniform(0.1, 2.0))
        if world.rng.random() < 0.3:
            await world.crash()
        else:
            for link in world.network.links:
                if world.rng.random() < 0.6:
                    link.cut()


def as_it_is(_: Broker) -> None:
    """What is wrong is the client."""


class Watched:
    """A consumer whose entries are counted: those that wait here, against the receives that wait."""

    def __init__(self, consumer: Consumer, size: int) -> None:
        self.consumer = consumer
        self.size = size
        self.receives = 0
        self.most = 0
        for one in consumer._members.values():
            one.on_message = self._counted(one.on_message)  # type: ignore[assignment,method-assign]

    def _counted(self, whole: Callable[[CommandMessage], None]) -> Callable[[CommandMessage], None]:
        def on_message(message: CommandMessage) -> None:
            whole(message)
            self.check()

        return on_message

    def check(self) -> None:
        untouched = begun = 0
        for one in self.consumer._members.values():
            queue = one.consumption.queue
            untouched += sum(not each.begun for each in queue._entries)
            begun += sum(each.begun for each in queue._entries) + bool(queue.at_hand or queue._rest)
        self.most = max(self.most, untouched + begun)
        assert untouched + begun <= self.size if self.size else untouched <= self.receives, (untouched, begun)

    async def receive(self, timeout_millis: int) -> Message | None:
        self.receives += 1
        try:
            return await self.consumer.receive(timeout_millis)
        except ClientError:
            return None
        finally:
            self.receives -= 1
            self.check()


async def publish(world: World, client: Client, *, batches: bool = True) -> set[int]:
    """Send numbers, some in batches; returns those that are stored."""
    rng = world.rng
    producer = await client.create_producer(
        T, send_timeout_millis=0, batching_enabled=batches and rng.random() < 0.5,
        batching_max_messages=rng.randint(2, 6), batching_max_publish_delay_ms=rng.choice((1, 20)),
    )  # fmt: skip
    receipts = []
    for number in range(TOTAL):
        receipts.append(producer.send_nowait(b"%d" % number))
        if rng.random() < 0.3:
            await asyncio.sleep(rng.choice((0.0, 0.01, 0.2)))
    await asyncio.gather(*receipts)
    await producer.close()
    return set(range(TOTAL))


class Worker:
    """Takes messages as slowly as it likes, and is impatient at times."""

    def __init__(self, world: World, watched: Watched, had: dict[int, int]) -> None:
        self.world, self.watched, self.had = world, watched, had
        self.rng = world.rng

    async def work(self, wanted: asyncio.Future[set[int]]) -> None:
        consumer = self.watched.consumer
        while not wanted.done() or not wanted.result() <= self.had.keys():
            message = await self._one()
            if message is None:
                continue
            chance = self.rng.random()
            if chance < 0.1:
                await consumer.negative_acknowledge(message)
                continue
            if chance < 0.5:
                await asyncio.sleep(self.rng.choice((0.001, 0.05, 0.5)))
            if chance > 0.98 and consumer.options.sub_type is not SubType.Shared:
                await consumer.redeliver_unacknowledged_messages()
                continue
            if chance > 0.96 and consumer.options.sub_type is SubType.Exclusive:
                with suppress(ClientError):
                    await consumer.seek(MessageId.earliest)
                continue
            await consumer.acknowledge(message)
            number = int(message.data())
            self.had[number] = self.had.get(number, 0) + 1

    async def _one(self) -> Message | None:
        call = self.world.loop.create_task(self.watched.receive(self.rng.choice((5, 500))))
        if self.rng.random() < 0.2:
            await asyncio.wait([call], timeout=self.rng.uniform(0.0, 0.05))
            call.cancel()
        await asyncio.wait([call])
        return None if call.cancelled() else call.result()


async def never_more(world: World) -> None:
    """Everything stored is handled, whatever happens, and at no time does a consumer hold more than it may."""
    await world.boot()
    rng = world.rng
    partitions = rng.choice((0, PARTITIONS))
    if partitions:
        await world.machine.broker.resources.partitioned.create(TopicName.parse(T), partitions, to_make=True)
    size = rng.choice((0, 1))
    sub_type = rng.choice((SubType.Shared, SubType.Key_Shared, SubType.Failover, SubType.Exclusive))
    clients = [new_client(world) for _ in range(1 if sub_type is SubType.Exclusive else 2)]
    workers: list[Worker] = []
    had: dict[int, int] = {}
    for client in clients:
        consumer = await client.subscribe(
            T, S, sub_type, initial_position=InitialPosition.Earliest, receiver_queue_size=size,
            negative_ack_redelivery_delay_ms=200, batch_index_ack_enabled=rng.random() < 0.5,
        )  # fmt: skip
        watched = Watched(consumer, size)
        workers += [Worker(world, watched, had) for _ in range(rng.choice((1, 3)))]
    publisher = new_client(world)
    stored = world.loop.create_task(publish(world, publisher))
    troubles = world.loop.create_task(trouble(world, 3) if rng.random() < 0.6 else asyncio.sleep(0))
    await asyncio.wait_for(asyncio.gather(*(one.work(stored) for one in workers)), 600)
    await troubles
    for client in (*clients, publisher):
        await client.close()
    world.check_tasks()


def test_never_more() -> None:
    run_seeds(never_more, 24)


async def once(world: World) -> None:
    """Without trouble, what is handed back on an ordered subscription comes again alone: nothing is received twice, and
    partitions keep their order."""
    await world.boot()
    rng = world.rng
    await world.machine.broker.resources.partitioned.create(TopicName.parse(T), PARTITIONS, to_make=True)
    client = new_client(world)
    stored = world.loop.create_task(publish(world, client))
    size = rng.choice((0, 1))
    reader = None
    if rng.random() < 0.5:
        reader = await client.create_reader(T, MessageId.earliest, receiver_queue_size=size)
        consumer = reader.consumer
    else:
        sub_type = rng.choice((SubType.Failover, SubType.Exclusive))
        earliest = InitialPosition.Earliest
        consumer = await client.subscribe(T, S, sub_type, initial_position=earliest, receiver_queue_size=size)
    watched, found = Watched(consumer, size), list[tuple[str, int]]()
    unacknowledged: list[Message] = []
    while len(found) < TOTAL:
        message = await watched.receive(rng.choice((5, 500)))
        if message is None:
            continue
        found.append((message.topic_name(), int(message.data())))
        unacknowledged.append(message)
        await asyncio.sleep(rng.choice((0.0, 0.01, 0.3)))
        if reader is None and rng.random() < 0.2:
            for each in unacknowledged:
                await consumer.acknowledge(each)
            unacknowledged.clear()
    await stored
    assert sorted(number for _, number in found) == list(range(TOTAL))
    for topic in consumer.topics:
        numbers = [number for where, number in found if where == topic]
        assert numbers == sorted(numbers)
    await client.close()
    world.check_tasks()


def test_once() -> None:
    run_seeds(once, 12)


async def idle_workers(world: World) -> None:
    """A worker that is busy takes nothing from the others: of all that waits it holds one at most, and none without a
    prefetch."""
    await world.boot()
    await world.machine.broker.resources.partitioned.create(TopicName.parse(T), PARTITIONS, to_make=True)
    size = world.rng.choice((0, 1))
    clients = [new_client(world) for _ in range(2)]
    busy, idle = [
        await client.subscribe(
            T, S, SubType.Shared, initial_position=InitialPosition.Earliest, receiver_queue_size=size
        )
        for client in clients
    ]
    waiting = world.loop.create_task(busy.receive())
    await asyncio.sleep(5)  # by now it listens everywhere
    await publish(world, clients[1], batches=False)
    await waiting  # and goes on with this one for ever
    found = {int((await waiting).data())}
    for _ in range(TOTAL - 1 - size):
        found.add(int((await idle.receive(30_000)).data()))
    assert len(found) == TOTAL - size
    for client in clients:
        await client.close()
    world.check_tasks()


def test_idle_workers() -> None:
    run_seeds(idle_workers, 4)


async def wherever_it_comes(world: World) -> None:
    """One receive waits, and the message comes to the topic that one would ask last."""
    await world.boot()
    names = [f"{T}-{number}" for number in range(PARTITIONS)]
    client = new_client(world)
    consumer = await client.subscribe(names, S, receiver_queue_size=world.rng.choice((0, 1)))
    for name in (names[0], names[-1], names[1]):
        waiting = world.loop.create_task(consumer.receive())
        await asyncio.sleep(world.rng.choice((0.0, 5.0)))
        producer = await client.create_producer(name)
        await producer.send(name.encode())
        assert (await asyncio.wait_for(waiting, 20)).data() == name.encode()
    await client.close()
    world.check_tasks()


def test_wherever_it_comes() -> None:
    run_seeds(wherever_it_comes, 4)


def test_a_client_that_keeps_what_it_has_no_room_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrefetchBudget, "excess", property(lambda _: False))
    caught(never_more, as_it_is)
    caught(idle_workers, as_it_is)


def test_a_client_that_asks_one_topic_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for ever where nothing comes."""

    class Silent(DueTimer):
        def by(self, due: float) -> None:
            pass

    monkeypatch.setattr(prefetch, "DueTimer", Silent)
    caught(wherever_it_comes, as_it_is)


def test_a_client_that_does_not_know_what_the_application_has_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResentEntries, "leaves_out", lambda *_: False)
    caught(once, as_it_is)


def test_a_client_that_forgets_what_it_handed_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def hand_back(self: DemandedConsumer) -> bool:
        self.consumption.queue.clear()
        return True

    monkeypatch.setattr(DemandedConsumer, "hand_back", hand_back)
    caught(idle_workers, as_it_is)
