"""The compacted view is whole at every moment: the last message of every key up to its horizon, crashes or not."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from magnetar.broker.topic.compaction.compacted_view import CompactedView
from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.topic import Topic
from magnetar.compaction.survivors import Survivors
from magnetar.config.settings import Settings
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType, compress, decompress
from magnetar.protocol.entries import (
    EntryMetadata,
    SingleMessageMetadata,
    build_entry,
    join_batch,
    metadata_of,
    payload_of,
    split_batch,
)
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.history import MessagePosition
from magnetar.testing.rawclient import RawClient, RawConsumer
from tests.sim.clients import TROUBLE, place_of
from tests.sim.world import T, World, caught, run_seeds

SETTINGS = Settings(brokerServiceCompactionThresholdInBytes=800, brokerServiceCompactionMonitorIntervalInSeconds=2)
RARELY = Settings(brokerServiceCompactionThresholdInBytes=800, brokerServiceCompactionMonitorIntervalInSeconds=25)
EARLIEST = c.MessageIdData(-1, -1)
KEYS = tuple("abcdefgh")


class Message(NamedTuple):
    place: MessagePosition
    number: int
    key: str
    value: bytes


def entry_of(world: World, number: int) -> tuple[bytes, int]:
    """A batch, compressed or not; empty values delete their key."""
    rng = world.rng
    inside = []
    for i in range(rng.randint(1, 4)):
        value = b"" if rng.random() < 0.25 else b"%d-%d" % (number, i)
        inside.append((SingleMessageMetadata(partition_key=rng.choice(KEYS)), value))
    plain = join_batch(inside)
    kind = rng.choice((CompressionType.NONE, CompressionType.LZ4, CompressionType.ZLIB))
    metadata = EntryMetadata(
        "p", number, 1, num_messages_in_batch=len(inside), compression=kind, uncompressed_size=len(plain)
    )
    return build_entry(metadata, compress(kind, plain)), len(inside)


def inside_of(place: MessagePosition, entry: bytes) -> list[Message]:
    metadata = metadata_of(entry)
    assert metadata.num_messages_in_batch is not None
    plain = decompress(metadata.compression, payload_of(entry), metadata.uncompressed_size, 1 << 20)
    return [
        Message(place, index, single.partition_key or "", value)
        for index, (single, value) in enumerate(split_batch(plain, metadata.num_messages_in_batch))
        if not single.compacted_out
    ]


def last_per_key(messages: list[Message]) -> list[Message]:
    """Return what compaction leaves of them, computed as naively as possible."""
    last = {message.key: message for message in messages}
    return sorted(message for message in last.values() if message.value)


def table(messages: list[Message]) -> dict[str, bytes]:
    """What a table view makes of them."""
    return {message.key: message.value for message in last_per_key(messages)}


class Watcher:
    """Reads everything there is and acknowledges it, so that the front of the log is trimmed: the truth."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log: dict[MessagePosition, list[Message]] = {}

    async def run(self) -> None:
        while True:
            try:
                client = await RawClient.open(HOST, PORT, patience_s=5.0)
                await client.connect()
                await self._read(await client.subscribe(T, "all", initial_position=c.InitialPosition.Earliest))
            except TROUBLE:
                await asyncio.sleep(0.1)

    async def _read(self, consumer: RawConsumer) -> None:
        consumer.flow(1)
        while True:
            message = await next_message(consumer)
            self.log[place_of(message.message_id)] = inside_of(place_of(message.message_id), message.entry)
            consumer.ack_unconfirmed(message.message_id, cumulative=True)

    def entries(self) -> list[list[Message]]:
        """Entries by ordinal; the log never skips one."""
        return [self.log[place] for place in sorted(self.log)]


class Follower:
    """A table view that stays connected while views come and go; after a lost connection it begins anew.

    It is never so slow that the log is trimmed before it: then deletions may escape it.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.got: list[Message] = []
        self._pause = world.rng.uniform(0.0, 0.1)

    async def run(self) -> None:
        while True:
            self.got = []
            try:
                consumer = await compacted_reader("follower")
                consumer.flow(1)
                while True:
                    message = await next_message(consumer)
                    self.got += inside_of(place_of(message.message_id), message.entry)
                    await asyncio.sleep(self._pause * self.world.rng.random())
            except TROUBLE:
                await asyncio.sleep(0.1)


async def next_message(consumer: RawConsumer) -> c.CommandMessage:
    """However long it takes, as long as the broker is alive."""
    while True:
        try:
            message = await consumer.receive()
            consumer.flow(metadata_of(message.entry).num_messages_in_batch or 1)
            return message
        except TimeoutError:
            consumer.client.say(c.CommandPing())
            try:
                await consumer.client.hear(c.CommandPong)
            except TimeoutError:
                consumer.client.transport.close()
                raise


async def compacted_reader(name: str) -> RawConsumer:
    client = await RawClient.open(HOST, PORT, patience_s=5.0)
    await client.connect()
    return await client.subscribe(
        T, name, c.SubType.Exclusive, durable=False, read_compacted=True, start_message_id=EARLIEST
    )


async def publish(world: World, total: int) -> None:
    sent = 0
    while sent < total:
        try:
            client = await RawClient.open(HOST, PORT, patience_s=5.0)
            await client.connect()
            producer = await client.producer(T)
            while sent < total:
                numbers = []
                for _ in range(world.rng.randint(1, 8)):
                    entry, count = entry_of(world, sent)
                    sent += 1
                    numbers.append(producer.send(b"", entry=entry, count=count))
                await producer.receipt(numbers[-1])
                await asyncio.sleep(world.rng.uniform(0, 0.05))
        except TROUBLE:
            await asyncio.sleep(0.1)


def view_of(world: World) -> CompactedView | None:
    topic = world.machine.broker.service.topics.get(T)
    return None if topic is None or topic.compactor is None else topic.compactor.view


async def read_all(world: World, count: int) -> list[Message]:
    """What a compacted reader gets from the start on, until it has ``count`` messages or nothing more comes."""
    consumer = await compacted_reader("check")
    consumer.flow(10_000)
    got: list[Message] = []
    for _ in range(60):
        await asyncio.sleep(0.5)
        heard = [m for m in consumer.client.heard(c.CommandMessage) if m.consumer_id == consumer.consumer_id]
        got = [one for message in heard for one in inside_of(place_of(message.message_id), message.entry)]
        if len(got) >= count:
            break
    await asyncio.sleep(0.5)
    await consumer.close()
    await consumer.client.close()
    return got


async def check(world: World, watcher: Watcher, horizon_min: int) -> int:
    """Exactly the survivors below the horizon and the whole log after it; the horizon."""
    end = -1
    for _ in range(20):
        await asyncio.sleep(1.0)
        view = view_of(world)
        horizon = 0 if view is None else view.horizon
        entries = watcher.entries()
        end = world.machine.broker.service.topics[T].log.end
        if len(entries) != end:
            continue
        after = [message for entry in entries[horizon:] for message in entry]
        expected = [*last_per_key([message for entry in entries[:horizon] for message in entry]), *after]
        got = await read_all(world, len(expected))
        if view_of(world) is not view or len(watcher.entries()) != end:
            continue
        assert got == expected, f"up to {horizon} of {end}"
        assert horizon >= horizon_min, f"the view went back from {horizon_min} to {horizon}"
        return horizon
    raise AssertionError(f"the log and what was read of it never agree: {len(watcher.entries())} entries of {end}")


async def compaction(world: World) -> None:
    """Publish, compact whenever the threshold is reached, trim, crash; read again and again."""
    await world.boot()
    watcher, follower = Watcher(world), Follower(world)
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    await client.subscribe(T, "all", initial_position=c.InitialPosition.Earliest)
    await client.close()
    world.start(watcher.run(), follower.run())
    horizon = 0
    for _ in range(4):
        publishing = asyncio.ensure_future(publish(world, world.rng.randint(10, 50)))
        if world.rng.random() < 0.8:
            await asyncio.sleep(world.rng.uniform(0.0, 6.0))
            await world.crash()
        await publishing
        horizon = await check(world, watcher, horizon)
        if world.rng.random() < 0.3:
            await world.restart()
            horizon = await check(world, watcher, horizon)
    await asyncio.sleep(40)
    horizon = await check(world, watcher, horizon)
    world.check_tasks()
    assert horizon > 0, "nothing was ever compacted"
    log = world.machine.broker.service.topics[T].log
    assert log.first > 0 or horizon < 100, "the log itself is trimmed"
    whole = [message for entry in watcher.entries() for message in entry]
    assert table(follower.got) == table(whole), "a table view that stayed"
    leftovers = [name for name in world.machine.broker.store.names() if name.startswith("internal://compacted/")]
    assert len(leftovers) == 1, "old views are gone"


def test_the_compacted_view_is_whole_at_every_moment() -> None:
    run_seeds(compaction, 5, settings=SETTINGS)


def test_with_long_waits_between_runs() -> None:
    run_seeds(compaction, 2, settings=RARELY)


def test_keeping_the_first_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(self: Survivors, place: int, message: object) -> None:
        key = message[0]  # type: ignore[index]
        self._latest.setdefault(key, place)

    monkeypatch.setattr(Survivors, "_message", first)
    caught(compaction, lambda broker: None, settings=SETTINGS)


def test_removing_the_old_view_first_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    compact = Compactor._compact

    async def removing(self: Compactor, retain_keyless: bool, keep_index: bool) -> int:
        self._delete(self._generation)
        await asyncio.sleep(1.5)  # a run takes that long, so that some crash meets it whatever the schedule is
        return await compact(self, retain_keyless, keep_index)

    monkeypatch.setattr(Compactor, "_compact", removing)
    caught(compaction, lambda broker: None, settings=SETTINGS)


def test_trimming_what_is_not_compacted_yet_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowest(self: Topic) -> int:
        marks = [
            s.cursor.mark_delete for s in self.subscriptions.values() if s.durable and s.name != COMPACTION_SUBSCRIPTION
        ]
        return min(marks, default=self.log.end - 1)

    monkeypatch.setattr(Topic, "slowest", slowest)
    caught(compaction, lambda broker: None, settings=RARELY)


def test_a_switch_in_two_steps_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark moves (and the log may be trimmed) long before the new view is named."""
    switch = Compactor._switch

    async def late(self: Compactor, view: CompactedView) -> None:
        self._subscriptions[COMPACTION_SUBSCRIPTION].skip_until(view.horizon - 1)
        await asyncio.sleep(11)
        await switch(self, view)

    monkeypatch.setattr(Compactor, "_switch", late)
    caught(compaction, lambda broker: None, settings=SETTINGS)
