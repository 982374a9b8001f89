"""Clients of a simulation: they publish, consume, break off and come back, and write down what they see."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.history import (
    AckConfirmed,
    Acked,
    ActiveChanged,
    ConsumerLeft,
    ConsumerOpened,
    Delivered,
    MessagePosition,
    Receipted,
    RedeliveryAsked,
    Sent,
)
from magnetar.testing.network import Link
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, RawProducer, payload_of
from tests.sim.world import World

TROUBLE = (ConnectionError, RawClientError, TimeoutError)


def place_of(message_id: c.MessageIdData) -> MessagePosition:
    return MessagePosition(message_id.ledger, message_id.entry)


@dataclass(slots=True)
class _Connection:
    """One life of a client."""

    client: RawClient
    link: Link
    over: bool = False


async def _connect(world: World) -> _Connection:
    client = await RawClient.open(HOST, PORT, patience_s=8.0)
    link = next(link for link in world.network.links if link.client is client.transport)
    await client.connect()
    return _Connection(client, link)


class Publisher:
    """Publishes ``total`` values; what was not receipted when a connection broke is not sent again."""

    def __init__(
        self, world: World, name: str, topic: str, *, keys: tuple[str, ...] = (), window: int = 16, size: int = 20
    ) -> None:
        self.world = world
        self.name = name
        self.topic = topic
        self.keys = keys
        self.window = window
        self.size = size
        self.sent = 0
        self.receipts = 0
        self.errors: list[c.CommandSendError] = []
        self.link: Link | None = None
        self._waiting: dict[int, str] = {}
        self._wake = asyncio.Event()
        self._over = False
        self._pause = world.rng.uniform(0.0, 0.01)

    async def run(self, total: int) -> None:
        while self.sent < total:
            try:
                await self._life(total)
            except TROUBLE:
                await asyncio.sleep(self.world.rng.uniform(0.02, 0.2))

    async def _life(self, total: int) -> None:
        rng = self.world.rng
        connection = await _connect(self.world)
        client, self.link = connection.client, connection.link
        self._over = False
        self._waiting = {}
        waiting = self._waiting
        client.on_command = lambda command: self._heard(command, waiting)
        producer = await client.producer(self.topic)
        while self.sent < total and not self._over:
            for _ in range(rng.randint(1, 6)):
                if self.sent < total and len(waiting) < self.window:
                    value = f"{self.name}-{self.sent}"
                    key = rng.choice(self.keys) if self.keys else ""
                    self.sent += 1
                    self.world.add(Sent(self.topic, self.name, value, key or None))
                    waiting[producer.next_sequence_id] = value
                    self._send(producer, value, key)
            if rng.random() < 0.7:
                await asyncio.sleep(self._pause * rng.random())
            if len(waiting) >= self.window or self.sent == total:
                await self._room(client, self.window if self.sent < total else 1)
            if client.lost.done():
                return
        client.transport.close()

    def _send(self, producer: RawProducer, value: str, key: str) -> None:
        producer.send(value.encode().ljust(self.size, b"."), key=key)

    async def _room(self, client: RawClient, below: int) -> None:
        while len(self._waiting) >= below and not self._over and not client.lost.done():
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), 0.5)
            except TimeoutError:
                pass

    def _heard(self, command: c.Command, waiting: dict[int, str]) -> None:
        if isinstance(command, c.CommandSendReceipt):
            value = waiting.pop(command.sequence_id, None)
            if value is not None:
                assert command.message_id is not None
                self.receipts += 1
                self.world.add(Receipted(self.topic, self.name, value, place_of(command.message_id)))
        elif isinstance(command, c.CommandSendError):
            self.errors.append(command)
            waiting.pop(command.sequence_id, None)
            self._over = True
        elif isinstance(command, c.CommandCloseProducer):
            self._over = True
        self._wake.set()


@dataclass(frozen=True, slots=True)
class Habit:
    """What a consumer does with what it gets."""

    permits: int = 40
    confirmed: float = 0.5
    """Share of acks that ask for an answer."""
    cumulative: bool = False
    nacks: float = 0.0
    leaves: float = 0.0
    """Probability to close instead of dealing with a handful, and to come back."""
    keeps: float = 0.0
    """Share that is never acknowledged in this life of the consumer."""
    think_s: float = 0.01
    options: dict[str, object] = field(default_factory=dict)


class Subscriber:
    """One consumer of a subscription, again and again until :attr:`stopped`."""

    def __init__(
        self, world: World, name: str, topic: str, subscription: str, sub_type: c.SubType, habit: Habit | None = None
    ) -> None:
        self.world = world
        self.name = name
        self.topic = topic
        self.subscription = subscription
        self.sub_type = sub_type
        self.habit = habit or Habit()
        self.stopped = False
        self.lives = 0
        self.got: list[tuple[MessagePosition, str, int]] = []
        """Everything delivered in the present life, in order: place, value, redelivery count."""
        self.connection: _Connection | None = None
        self.consumer: RawConsumer | None = None
        self.acked: list[MessagePosition] = []
        """What an ack was sent for in the present life."""
        self._todo: list[c.MessageIdData] = []
        self._asked: dict[int, tuple[c.MessageIdData, ...]] = {}
        self._permits = 0
        self._rewinds = 0
        """Requests for redelivery of everything whose effect was not seen yet."""
        self._wake = asyncio.Event()

    @property
    def label(self) -> str:
        return f"{self.name}#{self.lives}"

    async def run(self) -> None:
        while not self.stopped:
            try:
                await self._life()
            except TROUBLE:
                pass
            self.leave()
            await asyncio.sleep(self.world.rng.uniform(0.02, 0.3))

    def leave(self) -> None:
        """Stop counting this life: its entries may go to others."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.over = True
            self.world.add(ConsumerLeft(self.topic, self.subscription, self.label))
            connection.client.transport.close()
            self._wake.set()

    def break_off(self, *, frozen: bool) -> None:
        """The network ends this life: cut, or silent for ever."""
        connection = self.connection
        if connection is not None and connection.link.open:
            if frozen:
                connection.link.freeze()
                connection.over = True
                self.world.add(ConsumerLeft(self.topic, self.subscription, self.label))
                self.connection = None
            else:
                self.world.add(ConsumerLeft(self.topic, self.subscription, self.label))
                connection.over = True
                self.connection = None
                connection.link.cut()
            self._wake.set()

    def acknowledge_all_unanswered(self) -> None:
        """One ACK for everything this life got, without a request id."""
        assert self.consumer is not None
        ids = [c.MessageIdData(place.ledger, place.entry) for place, _, _ in self.got]
        self.consumer.ack_unconfirmed(*ids)

    async def _life(self) -> None:
        connection = await _connect(self.world)
        client = connection.client
        self.lives += 1
        self.got, self.acked, self._todo, self._asked = [], [], [], {}
        self._rewinds = 0
        self.connection = connection
        self.world.add(ConsumerOpened(self.topic, self.subscription, self.label))
        client.on_command = lambda command: self._heard(connection, command)
        self.consumer = consumer = await client.subscribe(
            self.topic, self.subscription, self.sub_type, consumer_name=self.name,
            initial_position=c.InitialPosition.Earliest, **self.habit.options,
        )  # fmt: skip
        self._permits = self.habit.permits
        consumer.flow(self._permits)
        rng = self.world.rng
        while not connection.over and not client.lost.done() and not self.stopped:
            self._wake.clear()
            if not self._todo:
                try:
                    await asyncio.wait_for(self._wake.wait(), 0.5)
                except TimeoutError:
                    pass
            await asyncio.sleep(self.habit.think_s * rng.random())
            if self.connection is not connection or client.lost.done():
                return
            if self._todo and rng.random() < self.habit.leaves:
                return
            self._work(consumer)

    def _work(self, consumer: RawConsumer) -> None:
        rng, habit = self.world.rng, self.habit
        if self._permits <= habit.permits // 2:
            consumer.flow(habit.permits - self._permits)
            self._permits = habit.permits
        if not self._todo:
            return
        ids: tuple[c.MessageIdData, ...]
        if habit.cumulative:
            upto = rng.randrange(len(self._todo))
            ids = (self._todo[upto],)
            del self._todo[: upto + 1]
        else:
            taken = rng.randint(1, min(len(self._todo), 8))
            picked = rng.sample(self._todo, taken)
            self._todo = [one for one in self._todo if one not in picked]
            if rng.random() < habit.nacks:
                self._nack(consumer, picked)
                return
            ids = tuple(one for one in picked if rng.random() >= habit.keeps)
        if ids:
            self._ack(consumer, ids)

    def _nack(self, consumer: RawConsumer, picked: list[c.MessageIdData]) -> None:
        places = frozenset(map(place_of, picked))
        if self.sub_type in (c.SubType.Exclusive, c.SubType.Failover):
            # whatever is named, everything comes again (rule 5.8.2)
            places = frozenset()
            self._todo.clear()
            self._rewinds += 1
        self.world.add(RedeliveryAsked(self.topic, self.subscription, self.label, places))
        consumer.redeliver(picked)

    def _ack(self, consumer: RawConsumer, ids: tuple[c.MessageIdData, ...]) -> None:
        for one in ids:
            self.acked.append(place_of(one))
            self.world.add(Acked(self.topic, self.subscription, self.label, place_of(one), self.habit.cumulative))
        kind = c.AckType.Cumulative if self.habit.cumulative else c.AckType.Individual
        if self.world.rng.random() < self.habit.confirmed:
            request_id = consumer.client.new_id()
            self._asked[request_id] = ids
            consumer.client.say(c.CommandAck(consumer.consumer_id, kind, ids, request_id=request_id))
        else:
            consumer.client.say(c.CommandAck(consumer.consumer_id, kind, ids))

    def _heard(self, connection: _Connection, command: c.Command) -> None:
        if connection.over:
            return
        if isinstance(command, c.CommandMessage):
            place, value = place_of(command.message_id), payload_of(command.entry).rstrip(b".").decode()
            if self._rewinds and self.got and place <= self.got[-1][0]:
                # what was on the wire when the request was written arrived as well
                self._rewinds -= 1
                self.world.add(RedeliveryAsked(self.topic, self.subscription, self.label))
            self.world.add(Delivered(self.topic, self.subscription, self.label, place, value, command.redelivery_count))
            self.got.append((place, value, command.redelivery_count))
            self._todo.append(command.message_id)
            self._permits -= 1
        elif isinstance(command, c.CommandAckResponse) and command.error is None and command.request_id is not None:
            for one in self._asked.pop(command.request_id, ()):
                self.world.add(AckConfirmed(self.topic, self.subscription, place_of(one), self.habit.cumulative))
        elif isinstance(command, c.CommandActiveConsumerChange) and command.is_active:
            self.world.add(ActiveChanged(self.topic, self.subscription, self.label))
        elif isinstance(command, c.CommandCloseConsumer):
            self.leave()
        self._wake.set()
