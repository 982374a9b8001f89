"""Producers and consumers of one round. They go on until their connection ends, which is how a kill looks to them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine
from typing import Any

from magnetar.protocol import commands as c
from magnetar.protocol.frames import with_checksum
from magnetar.protocol.varints import varint
from magnetar.testing.rawclient import DisconnectedError, RawClient, RawConsumer, RawProducer, make_entry, payload_of
from tests.crash.broker_process import HOST
from tests.crash.client_history import NEVER, ClientHistory, Position, StatedMessage, Subscription, message

_WINDOW = 40
_PERMITS = 2000


class Round:
    """The clients of one life of the broker."""

    def __init__(self, history: ClientHistory, port: int, number: int, topics: list[str], rng: random.Random) -> None:
        self._story = history
        self._port = port
        self._number = number
        self._topics = topics
        self._rng = rng
        self._tasks: list[asyncio.Task[None]] = []
        self.first_receipt_at = 0.0

    def start(self) -> None:
        """Let them work."""
        for i, topic in enumerate(self._topics):
            for j in range(2):
                self._spawn(self._produce(topic, f"p{self._number}.{i}.{j}", random.Random(self._rng.random())))
            for j in range(2):
                self._spawn(self._consume(topic, "shared", c.SubType.Shared, j, random.Random(self._rng.random())))
            self._spawn(self._consume(topic, "alone", c.SubType.Exclusive, 0, random.Random(self._rng.random())))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def ended(self) -> None:
        """Wait until all have noticed that the broker is gone. Raises what any of them raised."""
        async with asyncio.timeout(30):
            await asyncio.gather(*self._tasks)

    async def _connected(self) -> RawClient:
        client = await RawClient.open(HOST, self._port)
        await client.connect()
        return client

    # producing ---------------------------------------------------------------------------------------------------

    async def _produce(self, topic: str, name: str, rng: random.Random) -> None:
        try:
            client = await self._connected()
            producer = await client.producer(f"persistent://public/default/{topic}", name)
            await self._publish(client, producer, topic, rng)
        except (DisconnectedError, OSError):
            return

    async def _publish(self, client: RawClient, producer: RawProducer, topic: str, rng: random.Random) -> None:
        history = self._story
        waiting: dict[int, StatedMessage] = {}
        sequence = 0
        room = asyncio.Event()

        def arrived(command: c.Command) -> None:
            if isinstance(command, c.CommandSendReceipt):
                at = command.message_id
                assert at is not None
                if not self.first_receipt_at:
                    self.first_receipt_at = time.monotonic()
                history.receipted(topic, (at.ledger, at.entry), waiting.pop(command.sequence_id))
                room.set()
            elif isinstance(command, c.CommandSendError):
                history.violated(f"{topic}: {producer.name} {command.sequence_id} was refused: {command.message}")
                waiting.pop(command.sequence_id, None)

        client.on_command = arrived
        client.lost.add_done_callback(lambda _: room.set())
        while not client.lost.done():
            if len(waiting) >= _WINDOW:
                room.clear()
                await room.wait()
                continue
            one = StatedMessage(producer.name, sequence, _size(rng))
            count = rng.choice((1, 1, 1, 7, 100))
            waiting[sequence] = one
            history.topic(topic).attempted.add((one.producer, sequence))
            producer.send(b"", sequence_id=sequence, count=count, entry=_entry(one, count))
            sequence += 1
            # bursts and pauses: groups of one and groups of many
            await asyncio.sleep(rng.choice((0, 0, 0, 0, 0.001, 0.004, 0.02)))

    # consuming ---------------------------------------------------------------------------------------------------

    async def _consume(self, topic: str, name: str, kind: c.SubType, number: int, rng: random.Random) -> None:
        try:
            client = await self._connected()
            # acknowledged a little late: something is always delivered and not acknowledged
            consumer = await client.subscribe(
                f"persistent://public/default/{topic}", name, kind, consumer_name=f"c{number}",
                initial_position=c.InitialPosition.Earliest,
            )  # fmt: skip
            self._story.subscription(topic, name)
            consumer.flow(_PERMITS)
            work = self._cumulative if kind == c.SubType.Exclusive else self._individual
            await work(client, consumer, topic, name, rng)
        except (DisconnectedError, OSError):
            return

    def _received(self, consumer: RawConsumer, message: c.CommandMessage, topic: str, name: str) -> Position:
        position = (message.message_id.ledger, message.message_id.entry)
        self._story.delivered(topic, name, position, payload_of(message.entry))
        consumer.flow(_messages(message.entry))
        return position

    async def _individual(
        self, client: RawClient, consumer: RawConsumer, topic: str, name: str, rng: random.Random
    ) -> None:
        subscription = self._story.subscription(topic, name)
        unsure: list[Position] = []
        while not client.lost.done():
            position = self._received(consumer, await consumer.receive(), topic, name)
            if rng.random() < 0.01:
                continue  # forgotten: it pins its ledger until another life acknowledges it
            at = c.MessageIdData(*position)
            subscription.said[position] = NEVER
            unsure.append(position)
            if rng.random() < 0.05:
                await consumer.ack(at)
                self._answered(subscription, unsure)
                continue
            consumer.ack_unconfirmed(at)
            if rng.random() < 0.02:
                await self._read(consumer, subscription, unsure)

    def _answered(self, subscription: Subscription, unsure: list[Position]) -> None:
        """An answered acknowledgment stands for everything said before it on this cursor and connection."""
        subscription.sure.update(unsure)
        self._story.counts["acks answered"] += 1
        unsure.clear()

    async def _read(self, consumer: RawConsumer, subscription: Subscription, unsure: list[Position]) -> None:
        """The answer to any question proves that the broker has read what was said before it."""
        await consumer.last_message_id()
        now = time.monotonic()
        for position in unsure:
            subscription.said[position] = min(subscription.said[position], now)

    async def _cumulative(
        self, client: RawClient, consumer: RawConsumer, topic: str, name: str, rng: random.Random
    ) -> None:
        subscription = self._story.subscription(topic, name)
        since: list[Position] = []
        unsure: list[Position] = []
        while not client.lost.done():
            since.append(self._received(consumer, await consumer.receive(), topic, name))
            if rng.random() > 0.1:
                continue
            subscription.said.update(dict.fromkeys(since, NEVER))
            unsure += since
            at = c.MessageIdData(*since[-1])
            since = []
            if rng.random() < 0.3:
                await consumer.ack(at, cumulative=True)
                self._answered(subscription, unsure)
                continue
            consumer.ack_unconfirmed(at, cumulative=True)
            if rng.random() < 0.2:
                await self._read(consumer, subscription, unsure)


def _size(rng: random.Random) -> int:
    return rng.choice((10, 100, 100, 1000, 1000, 20_000)) if rng.random() < 0.98 else rng.randint(60_000, 200_000)


def _entry(one: StatedMessage, count: int) -> bytes:
    payload = message(*one)
    if count == 1:
        return make_entry(payload, producer=one.producer, sequence_id=one.sequence)
    # publish_time_ms is the last field written before the batch size, which is what makes it a batch (field 11)
    return _batch(payload, one, count)


def _batch(payload: bytes, one: StatedMessage, count: int) -> bytes:
    plain = make_entry(b"", producer=one.producer, sequence_id=one.sequence)
    size = int.from_bytes(plain[6:10], "big")
    metadata = plain[10 : 10 + size] + b"\x58" + varint(count)
    return with_checksum(len(metadata).to_bytes(4, "big") + metadata + payload)


def _messages(entry: bytes) -> int:
    size = int.from_bytes(entry[6:10], "big")
    metadata = entry[10 : 10 + size]
    for count in (7, 100):
        if metadata.endswith(b"\x58" + varint(count)):
            return count
    return 1


async def look(port: int, topic: str) -> tuple[list[tuple[Position, bytes]], Position | None]:
    """Everything a topic holds, read without leaving a trace, and where it begins when all has been read.

    The broker trims while it is being read: what was before that beginning may have been skipped.
    """
    client = await RawClient.open(HOST, port)
    try:
        await client.connect()
        consumer = await _reader(client, topic)
        end = (await consumer.last_message_id()).last_message_id
        found: list[tuple[Position, bytes]] = []
        if end.entry < 0:
            return found, None
        consumer.flow(1 << 20)
        while not found or found[-1][0] < (end.ledger, end.entry):
            arrived = await consumer.receive()
            found.append(((arrived.message_id.ledger, arrived.message_id.entry), payload_of(arrived.entry)))
        again = await _reader(client, topic)
        again.flow(1)
        first = (await again.receive()).message_id
        return found, (first.ledger, first.entry)
    finally:
        client.transport.abort()


async def _reader(client: RawClient, topic: str) -> RawConsumer:
    return await client.subscribe(
        f"persistent://public/default/{topic}", f"look-{time.monotonic_ns()}", durable=False,
        initial_position=c.InitialPosition.Earliest, start_message_id=c.MessageIdData(-1, -1),
    )  # fmt: skip
