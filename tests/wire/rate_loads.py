"""Loads on a broker whose rates are limited, and short ways to limit them (rule 14.6)."""

from __future__ import annotations

import asyncio

from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.testing.rawclient import RawClient, RawProducer, make_entry
from tests.support.at_once import at_once
from tests.wire.bench import Wires

T, N = "persistent://public/default/t", "public/default"
MSG, BYTE = "dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte"
SPAN = 10


def topic_policy(wires: Wires, name: str, value: Json, topic: str = T) -> None:
    at_once(wires.world.machine.broker.resources.topic_policies.update(TopicName.parse(topic), name, value))


def namespace_policy(wires: Wires, **policies: Json) -> None:
    at_once(wires.world.machine.broker.resources.namespaces.update(NamespaceName.parse(N), **policies))


def group(wires: Wires, name: str, **rates: int) -> None:
    at_once(wires.world.machine.broker.resources.resource_groups.put(name, dict(rates)))


def batch_of(producer: RawProducer, messages: int) -> bytes:
    """An entry of so many messages of one byte."""
    metadata = EntryMetadata(producer.name, producer.next_sequence_id, 1, num_messages_in_batch=messages)
    return build_entry(metadata, b"\x00\x00\x00\x02\x18\x01x" * messages)


class Flood:
    """A producer that has ``window`` entries on their way, ``total`` in all; counts messages and bytes stored."""

    def __init__(self, batch: int = 1, window: int = 200, size: int = 10, total: int = 1 << 60) -> None:
        self.left = total
        self.all_stored = asyncio.Event()
        self.batch = batch
        self.window = window
        self.payload = b"x" * size
        self.messages = 0
        self.bytes = 0
        self.order: list[int] = []
        self._sizes: dict[int, int] = {}

    async def start(self, client: RawClient, topic: str = T) -> Flood:
        producer = await client.producer(topic)
        client.on_command = lambda command: self._heard(producer, command)
        for _ in range(self.window):
            self._send(producer)
        return self

    def _send(self, producer: RawProducer) -> None:
        if not self.left:
            if not self._sizes:
                self.all_stored.set()
            return
        self.left -= 1
        if self.batch > 1:
            entry = batch_of(producer, self.batch)
        else:
            entry = make_entry(self.payload, producer=producer.name, sequence_id=producer.next_sequence_id)
        self._sizes[producer.next_sequence_id] = len(entry)
        producer.send(b"", entry=entry, count=self.batch)

    def _heard(self, producer: RawProducer, command: c.Command) -> None:
        if isinstance(command, c.CommandSendReceipt) and command.producer_id == producer.producer_id:
            self.order.append(command.sequence_id)
            self.messages += self.batch
            self.bytes += self._sizes.pop(command.sequence_id)
            self._send(producer)


class Drain:
    """A consumer with all permits there are; counts what it gets. ``batch``: messages of each entry."""

    def __init__(self, batch: int = 1) -> None:
        self.batch = batch
        self.messages = 0
        self.bytes = 0
        self.order: list[tuple[int, int]] = []

    async def start(
        self, client: RawClient, topic: str = T, name: str = "s", sub_type: c.SubType = c.SubType.Exclusive
    ) -> Drain:
        consumer = await client.subscribe(topic, name, sub_type, initial_position=c.InitialPosition.Earliest)
        client.on_command = lambda command: self._heard(consumer.consumer_id, command)
        consumer.flow(1 << 30)
        return self

    def _heard(self, consumer_id: int, command: c.Command) -> None:
        if isinstance(command, c.CommandMessage) and command.consumer_id == consumer_id:
            self.messages += self.batch
            self.bytes += len(command.entry)
            self.order.append((command.message_id.ledger, command.message_id.entry))


async def fill(wires: Wires, entries: int, batch: int = 1, topic: str = T) -> None:
    if entries:
        flood = await Flood(batch, total=entries).start(client := await wires.open(), topic)
        await flood.all_stored.wait()
        await client.close()


async def dispatched(wires: Wires, *floods: tuple[str, str], batch: int = 1, seconds: float = SPAN) -> list[Drain]:
    """What consumers of these topics and subscriptions get in so many seconds."""
    drains = [await Drain(batch).start(await wires.open(), topic, name) for topic, name in floods]
    await asyncio.sleep(seconds)
    return drains
