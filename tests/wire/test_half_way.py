"""Commands that fail half-way: an exception at every step of every one, and afterwards everything works for others.

The steps are the calls of what a command needs from others: cursors, the log, states of features, the journal, the
socket. For each command the k-th of them raises, before or after it did its work, for every k until the command gets
through. No one expects an answer then; a client on another connection, and the next one on the same topic, must not
notice.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from magnetar.broker.connection.session import Session
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.feature_state import FeatureState
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log.journal import Journal
from magnetar.testing.rawclient import (
    DisconnectedError,
    RawClient,
    RawClientError,
    RawConsumer,
    RawProducer,
    payload_of,
)
from magnetar.testing.rawtransaction import RawTransaction
from tests.wire.bench import Wires, on_broker

STEPS: dict[type, tuple[str, ...]] = {
    Cursor: ("reset", "acknowledge", "acknowledge_until", "acknowledge_indexes"),
    ManagedLedger: ("open_cursor", "delete_cursor", "append", "barrier", "write_birth"),
    FeatureState: ("touch",),
    Journal: ("touch", "add_record", "barrier"),
    Session: ("send",),
    Pump: ("turn",),
}
TROUBLE = (DisconnectedError, RawClientError, TimeoutError)
STEPS_MAX = 40


class Injected(Exception):
    """What a step raises."""


class Steps:
    """Counts calls while it is armed, and lets one of them fail."""

    def __init__(self) -> None:
        self.left: int | None = None
        """Calls that are left until one fails; None: none does."""
        self.after = False
        self.failed = False

    def arm(self, step: int, *, after: bool) -> None:
        self.left, self.after, self.failed = step, after, False

    def disarm(self) -> bool:
        """Whether a call has failed."""
        self.left = None
        return self.failed

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            if self.left is None or self.failed:
                return call(*args, **options)
            self.left -= 1
            if self.left > 0:
                return call(*args, **options)
            self.failed = True
            if self.after:
                call(*args, **options)
            raise Injected

        return wrapper


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    made = Steps()
    for kind, names in STEPS.items():
        for name in names:
            monkeypatch.setattr(kind, name, made.wrapped(getattr(kind, name)))
    return made


class Stage:
    """One connection with everything open, and a topic of its own."""

    def __init__(self, wires: Wires, topic: str) -> None:
        self.wires = wires
        self.topic = topic
        self.client: RawClient
        self.producer: RawProducer
        self.consumer: RawConsumer
        self.ids: list[c.MessageIdData]
        self.txn: RawTransaction

    async def set(self) -> None:
        self.client = await self.wires.open()
        self.client.patience_s = 2.0
        self.consumer = await self.client.subscribe(self.topic, "s", c.SubType.Shared)
        self.consumer.flow(100)
        self.producer = await self.client.producer(self.topic, "held")
        self.ids = [await self.producer.publish(b"%d" % i, key="k") for i in range(4)]
        self.txn = await RawTransaction.begin(self.client)
        await self.txn.add_partitions(self.topic)
        await self.txn.publish(self.producer, b"in a transaction")
        await asyncio.sleep(0.1)

    @property
    def subscription(self) -> Subscription:
        return self.wires.world.machine.broker.service.topics[self.topic].subscriptions["s"]


async def exclusively(stage: Stage, mode: c.ProducerAccessMode) -> None:
    await stage.producer.close()
    await stage.client.producer(stage.topic, "alone", producer_access_mode=mode)


async def by_admin(stage: Stage, act: Callable[[Any, TopicName], object]) -> None:
    done = act(stage.wires.world.machine.broker.service, TopicName.parse(stage.topic))
    if inspect.isawaitable(done):
        await done
    await asyncio.sleep(0.5)


Act = Callable[[Stage], Awaitable[object]]
COMMANDS: dict[str, Act] = {
    "seek by id": lambda s: s.consumer.seek(s.ids[1]),
    "seek by time": lambda s: s.consumer.seek(publish_time_ms=1),
    "subscribe": lambda s: s.client.subscribe(s.topic, "s", c.SubType.Shared),
    "a new subscription": lambda s: s.client.subscribe(s.topic, "new", c.SubType.Failover),
    "unsubscribe": lambda s: s.consumer.unsubscribe(),
    "close a consumer": lambda s: s.consumer.close(),
    "close a producer": lambda s: s.producer.close(),
    "publish": lambda s: s.producer.publish(b"more"),
    "acknowledge": lambda s: s.consumer.ack(*s.ids),
    "a part of a batch": lambda s: s.consumer.ack(s.ids[0]._replace(ack_set=(0,), batch_size=1)),
    "acknowledge in a transaction": lambda s: s.txn.ack(s.consumer, s.ids[0]),
    "publish in a transaction": lambda s: s.txn.publish(s.producer, b"more"),
    "begin a transaction": lambda s: RawTransaction.begin(s.client),
    "commit": lambda s: s.txn.commit(),
    "abort": lambda s: s.txn.abort(),
    "a producer": lambda s: s.client.producer(s.topic),
    "an exclusive producer": lambda s: exclusively(s, c.ProducerAccessMode.Exclusive),
    "a producer that fences": lambda s: exclusively(s, c.ProducerAccessMode.ExclusiveWithFencing),
    "the last message": lambda s: s.consumer.last_message_id(),
    "the connection's end": lambda s: s.client.close(),
    "reset": lambda s: by_admin(s, lambda service, name: s.subscription.seek_to(0)),
    "skip": lambda s: by_admin(s, lambda service, name: s.subscription.skip_until(2)),
    "expire": lambda s: by_admin(s, lambda service, name: s.subscription.expire_until(2)),
    "unload": lambda s: by_admin(s, lambda service, name: service.unload(name)),
    "delete": lambda s: by_admin(s, lambda service, name: service.delete(name, force=True)),
    "delete a subscription": lambda s: by_admin(
        s, lambda service, name: service.topics[name.fqn].delete_subscription("s", lambda: None)
    ),
    "compaction": lambda s: by_admin(s, lambda service, name: service.topics[name.fqn].compaction().prepare()),
}  # fmt: skip


async def works_for_others(wires: Wires, topic: str) -> None:
    """What the first client left is in no other's way."""
    client = await wires.open()
    coordinator = wires.world.machine.broker.service.coordinator
    await asyncio.sleep(1.5)  # an end that is decided is carried on
    for one in coordinator.open:  # of clients that are gone: an operator's act, or their time is over
        coordinator.end(one.id, commit=False, owner=None, done=lambda: None)
    producer = await client.producer(topic)
    for name in ("s", "s2"):
        consumer = await client.subscribe(topic, name, c.SubType.Shared, initial_position=c.InitialPosition.Earliest)
        consumer.flow(1000)
        mine = await producer.publish(b"mine")
        payload = b""
        while payload != b"mine":
            message = await consumer.receive()
            payload = payload_of(message.entry)
            await consumer.ack(message.message_id)
        await consumer.seek(mine)
        consumer = await client.subscribe(topic, name, c.SubType.Shared)
        consumer.flow(1000)
        assert payload_of((await consumer.receive()).entry) == b"mine"
        txn = await RawTransaction.begin(client)
        await txn.publish(producer, b"last")
        await txn.ack(consumer, mine)
        await txn.commit()
        assert payload_of((await consumer.receive()).entry) == b"last"
        await consumer.unsubscribe()
    await producer.close()
    await (await client.producer(topic, "held")).close()
    await client.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_else_notices(command: str, after: bool, steps: Steps) -> None:
    logging.getLogger("magnetar").setLevel(logging.CRITICAL)

    async def test(wires: Wires) -> None:
        for step in range(1, STEPS_MAX):
            topic = f"persistent://public/default/t{step}"
            stage = Stage(wires, topic)
            await stage.set()
            steps.arm(step, after=after)
            try:
                await COMMANDS[command](stage)
            except (*TROUBLE, Injected):
                pass
            await asyncio.sleep(0.5)
            failed = steps.disarm()
            stage.client.transport.abort()
            await asyncio.sleep(0.1)
            try:
                await works_for_others(wires, topic)
            except Exception as error:
                raise AssertionError(f"{command}, step {step}: {error!r}") from error
            if not failed:
                assert step > 1
                return
        raise AssertionError(f"{command} has more than {STEPS_MAX} steps")

    try:
        on_broker(test, transactionCoordinatorEnabled=True, acknowledgmentAtBatchIndexLevelEnabled=True)
    finally:
        logging.getLogger("magnetar").setLevel(logging.NOTSET)
