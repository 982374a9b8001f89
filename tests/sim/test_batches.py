"""Messages of a batch that were acknowledged one by one stay so: through redelivery, other consumers and crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from magnetar.broker.topic.dispatch.entry_sender import EntrySender
from magnetar.config.settings import Settings
from magnetar.model.ids import signed
from magnetar.protocol import commands as c
from magnetar.protocol.commands import SubType
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.log import cursor_records
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawConsumer
from tests.sim.clients import TROUBLE
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
ON = Settings(acknowledgmentAtBatchIndexLevelEnabled=True)
BATCHES = 14
PERMITS = 5_000
QUIET_S = 0.4

Key = tuple[int, int]


@dataclass
class Batch:
    """What the client knows of one entry."""

    size: int
    confirmed: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    """Acknowledged without having seen the answer: gone or not."""

    @property
    def done(self) -> bool:
        return len(self.confirmed) == self.size

    def judge(self, ack_set: tuple[int, ...]) -> int:
        """A delivery says which messages are live; how many."""
        live = set(range(self.size))
        if ack_set:
            live = {i for i in live if i // 64 < len(ack_set) and ack_set[i // 64] >> (i % 64) & 1}
        assert not live & self.confirmed, f"{sorted(live & self.confirmed)} came again after their ack was confirmed"
        missing = set(range(self.size)) - live - self.confirmed - self.asked
        assert not missing, f"{sorted(missing)} were never acknowledged and are not live"
        return len(live)


def batch(number: int, size: int) -> bytes:
    payload = join_batch([(SingleMessageMetadata(), b"%d-%d" % (number, i)) for i in range(size)])
    metadata = EntryMetadata("p", number * 100, 1, partition_key=f"k{number}", num_messages_in_batch=size)
    return build_entry(metadata, payload)


def words(bits: set[int]) -> tuple[int, ...]:
    value = sum(1 << bit for bit in bits)
    out = []
    while value:
        out.append(signed(value & (1 << 64) - 1))
        value >>= 64
    return tuple(out) or (0,)


class Reader:
    """One consumer, life after life; acknowledges parts of what it gets and says how it went."""

    def __init__(self, world: World, sub_type: SubType, batches: dict[Key, Batch]) -> None:
        self.world = world
        self.sub_type = sub_type
        self.batches = batches

    async def life(self, *, everything: bool = False) -> None:
        client = await RawClient.open(HOST, PORT, patience_s=5.0)
        try:
            await self._life(client, everything=everything)
        finally:
            client.transport.close()

    async def _life(self, client: RawClient, *, everything: bool) -> None:
        await client.connect()
        consumer = await client.subscribe(T, S, self.sub_type, consumer_name="c")
        consumer.flow(PERMITS)
        live = 0
        held: dict[Key, None] = {}
        for _ in range(1 if everything else self.world.rng.randint(1, 3)):
            live += await self.take(consumer, held)
            if self.sub_type is SubType.Shared:
                state = self.world.machine.broker.service.topics[T].subscriptions[S].consumers[0].state
                assert state.permits == PERMITS - live, "permits are charged for live messages only (5.7.8)"
            await self.acknowledge(consumer, list(held), everything=everything)
            if self.world.rng.random() < 0.6 and not everything:
                consumer.redeliver()
                held.clear()
        if everything:
            await self.take(consumer, held)

    async def take(self, consumer: RawConsumer, held: dict[Key, None]) -> int:
        live = 0
        while True:
            try:
                message = await asyncio.wait_for(consumer.receive(), QUIET_S)
            except TimeoutError:
                return live
            key = (message.message_id.ledger, message.message_id.entry)
            assert not self.batches[key].done, f"{key} came again after all of it was acknowledged"
            live += self.batches[key].judge(message.ack_set)
            held[key] = None

    async def acknowledge(self, consumer: RawConsumer, held: list[Key], *, everything: bool) -> None:
        rng = self.world.rng
        for key in held if everything else rng.sample(held, rng.randint(0, len(held))):
            known = self.batches[key]
            left = set(range(known.size)) - known.confirmed - known.asked
            picked = left if everything else set(rng.sample(sorted(left), rng.randint(0, len(left))))
            known.asked |= picked
            rest = set(range(known.size)) - known.confirmed - known.asked
            ack_set = words(rest) if rest or rng.random() < 0.5 else ()
            await consumer.ack(c.MessageIdData(*key, ack_set=ack_set, batch_size=known.size))
            known.confirmed |= known.asked
            known.asked.clear()


def batches(sub_type: SubType) -> Callable[[World], Coroutine[Any, Any, None]]:
    async def simulation(world: World) -> None:
        await world.boot()
        rng = world.rng
        client = await RawClient.open(HOST, PORT, patience_s=5.0)
        await client.connect()
        producer = await client.producer(T)
        await client.subscribe(T, S, sub_type, initial_position=c.InitialPosition.Earliest)
        known: dict[Key, Batch] = {}
        for number in range(BATCHES):
            size = rng.choice((1, 2, 10, 64, 65, 130))
            receipt = await producer.receipt(producer.send(b"", entry=batch(number, size), count=size))
            assert receipt.message_id is not None
            known[receipt.message_id.ledger, receipt.message_id.entry] = Batch(size)
        client.transport.close()
        reader = Reader(world, sub_type, known)
        for _ in range(6):
            try:
                await asyncio.wait_for(reader.life(), rng.choice((0.7, 3.0)))
            except TROUBLE:
                pass
            await asyncio.sleep(0.05)
            if rng.random() < 0.6:
                await (world.crash() if rng.random() < 0.8 else world.restart())
        await asyncio.sleep(1.0)
        for _ in range(3):
            await reader.life(everything=True)
            await asyncio.sleep(0.5)
        assert world.backlog(T, S) == 0

    simulation.__qualname__ = f"batches[{sub_type.name}]"
    return simulation


@pytest.mark.parametrize(
    "sub_type", [SubType.Exclusive, SubType.Shared, SubType.Key_Shared], ids=lambda kind: kind.name
)
def test_parts_of_batches_stay_acknowledged(sub_type: SubType) -> None:
    run_seeds(batches(sub_type), 8, settings=ON)


def test_parts_that_do_not_survive_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("restore", "replay"):
        take = getattr(Cursor, name)

        def forgetful(self: Cursor, state: cursor_records.CursorState, take: Any = take) -> None:
            take(self, state._replace(partial=[]))

        monkeypatch.setattr(Cursor, name, forgetful)
    caught(batches(SubType.Shared), lambda broker: None, settings=ON)


def test_an_ack_set_that_is_not_sent_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    send_marked = EntrySender._send_marked

    def careless(sender: EntrySender, consumer: Any, run: Any, low: int, high: int, counts: Any) -> None:
        if counts:
            send_marked(sender, consumer, run, low, high, counts)
        else:
            consumer.connection.deliver(run, low, high, consumer.epoch)

    monkeypatch.setattr(EntrySender, "_send_marked", careless)
    caught(batches(SubType.Exclusive), lambda broker: None, settings=ON)
