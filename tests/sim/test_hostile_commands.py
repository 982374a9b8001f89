"""Whatever one client says, in whatever order: no other client loses or repeats anything, and it all works after.

A hostile client opens what a client may open, on a topic of its own and on that of others, and then sends every command
with boundary values in every field. Beside it a witness publishes and consumes on all four types; in the end a client
that behaves tries everything that there is, on the very topics that were attacked.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from magnetar.broker.topic.dispatch.batch_sizes import BatchSizes
from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.protocol.entries import messages_in
from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, payload_of
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.hostile_commands import COMMANDS, INTEGERS, Forge
from tests.sim.world import T, World, caught, run_seeds

OWN = "persistent://public/default/hostile"
PASSING = "non-persistent://public/default/passing"
KEYS = ("a", "b", "c", "d", "e")
MESSAGES = 120
ALL_ON = Settings(
    transactionCoordinatorEnabled=True, acknowledgmentAtBatchIndexLevelEnabled=True,
    activeConsumerFailoverDelayTimeMillis=50,
)  # fmt: skip
SAID_BY_CLIENTS = (
    "subscribe", "producer", "send", "ack", "flow", "unsubscribe", "close_producer", "close_consumer",
    "redeliverUnacknowledgedMessages", "partitionMetadata", "lookupTopic", "consumerStats", "seek", "getLastMessageId",
    "getTopicsOfNamespace", "getSchema", "getOrCreateSchema", "newTxn", "addPartitionToTxn", "addSubscriptionToTxn",
    "endTxn", "endTxnOnPartition", "endTxnOnSubscription", "tcClientConnectRequest", "watchTopicList",
    "watchTopicListClose", "ping",
)  # fmt: skip
TROUBLE = (ConnectionError, RawClientError, TimeoutError)


class Witness:
    """One subscription's consumers; notes what was published by the witness, in the order in which it came."""

    def __init__(self, name: str, sub_type: c.SubType, members: int) -> None:
        self.name = name
        self.sub_type = sub_type
        self.members = members
        self.got: list[tuple[str, str]] = []
        """Consumer and value."""

    async def start(self) -> None:
        for member in range(self.members):
            client = await RawClient.open(HOST, PORT)
            await client.connect()
            consumer = await client.subscribe(
                T, self.name, self.sub_type, consumer_name=f"{self.name}-{member}",
                initial_position=c.InitialPosition.Earliest,
            )  # fmt: skip
            client.on_command = lambda command, to=consumer: self._heard(to, command)
            consumer.flow(1000)

    def _heard(self, consumer: RawConsumer, command: c.Command) -> None:
        if not isinstance(command, c.CommandMessage):
            assert not isinstance(command, c.CommandCloseConsumer), f"{self.name}: a consumer of the witness was closed"
            return
        try:
            value = payload_of(command.entry).decode("latin-1")
        except Exception:
            value = ""
        if value.startswith("witness"):
            self.got.append((f"{self.name}-{consumer.consumer_id}-{id(consumer)}", value))
        consumer.ack_unconfirmed(command.message_id)
        consumer.flow(messages_in(command.entry, (1 << 31) - 1))  # what is no batch as well as what claims to be one

    def verify(self, sent: list[str]) -> None:
        values = [value for _, value in self.got]
        assert sorted(values) == sorted(sent), f"{self.name}: lost or repeated {set(sent) ^ set(values)}"
        if self.sub_type in (c.SubType.Exclusive, c.SubType.Failover):
            assert values == sent, f"{self.name}: out of order"
        elif self.sub_type is c.SubType.Key_Shared:
            for key in KEYS:
                of_key = [value for value in values if value.endswith(key)]
                assert of_key == [value for value in sent if value.endswith(key)], (
                    f"{self.name}: key {key} out of order"
                )


async def publish(world: World, sent: list[str]) -> None:
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    producer = await client.producer(T, "witness")
    for number in range(MESSAGES):
        key = world.rng.choice(KEYS)
        value = f"witness {number} {key}"
        await producer.publish(value.encode(), key=key)
        sent.append(value)
        await asyncio.sleep(world.rng.uniform(0, 0.05))
    await client.close()


class Hostile:
    """Lives again and again until it has said enough; it may do on its own subscriptions what it likes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.said = 0
        self.lives = 0
        small = [0, 1, 2, 3, 4, 5]
        self.ids: list[int] = [0, 1, 2, (1 << 63) - 1]
        self.entries: list[int] = [0, 1, 5, 50, (1 << 63) - 1]
        topics = [T, OWN, PASSING, OWN, "hostile", OWN + "-partition-0", OWN + "x" * 300, "persistent://no/such/t", ""]
        self.forge = Forge(
            world.rng,
            {
                "consumerid": [*small, *INTEGERS[-1:]],
                "producerid": [*small, *INTEGERS[-1:]],
                "ledgerid": self.ids,
                "entryid": self.entries,
                "topic": topics,
                "partitions": topics,
                "subscription": ["h1", "h2", "h3", "h4", "", "x" * 3000],
                "producername": ["witness", "", "evil", "x" * 3000],
                "consumername": ["exclusive-0", "", "evil"],
                "initialsubscriptionname": ["h1", "h5", "", "x" * 3000],
                "produceraccessmode": [0],  # who takes the topic for itself may, and the witness would have to go
                "namespace": ["public/default", "public", "", "a/b/c/d", "no/such"],
                "watcherid": small,
                "txnidmostbits": [0, 1, (1 << 64) - 1],
                "txnidleastbits": [*small, (1 << 64) - 1],
                "tcid": [0, 1, (1 << 64) - 1],
                "sequenceid": [0, 1, 5, (1 << 63) - 1, (1 << 64) - 1],
            },
        )

    async def run(self, commands: int) -> None:
        while self.said < commands:
            self.lives += 1
            try:
                await self._life(commands)
            except TROUBLE:
                await asyncio.sleep(self.world.rng.uniform(0, 0.05))

    async def _life(self, commands: int) -> None:
        rng = self.world.rng
        client = await RawClient.open(HOST, PORT, patience_s=3.0)
        await client.connect()
        client.on_command = self._heard
        for i, sub_type in enumerate(c.SubType, 1):
            topic = rng.choice((T, OWN, OWN, PASSING))
            client.say(
                c.CommandSubscribe(topic, f"h{i}", sub_type, i, 1000 + i, initial_position=c.InitialPosition.Earliest),
                c.CommandFlow(i, 50), c.CommandProducer(topic, i, 2000 + i), c.CommandNewTxn(3000 + i, 100_000, 0),
            )  # fmt: skip
        await asyncio.sleep(0.2)
        for i in range(1, 5):
            # more than anybody has permits for, if the claim counted
            client.say_bytes(self._sent(pb.CommandSend(producer_id=i, sequence_id=0, num_messages=1_000_000)))
        for _ in range(rng.randint(5, 60)):
            if client.lost.done() or self.said >= commands:
                break
            self.said += 1
            client.say_bytes(self._frame())
            if rng.random() < 0.5:
                await asyncio.sleep(rng.uniform(0, 0.02))
        client.transport.abort()

    def _sent(self, send: Any) -> bytes:
        command = pb.BaseCommand(type=6, send=send).SerializeToString()  # type: ignore[arg-type]  # its number
        frame = len(command + b"    ").to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
        return self.forge.with_entry(frame, self.forge.entry())

    def _frame(self) -> bytes:
        rng = self.world.rng
        name = rng.choice(SAID_BY_CLIENTS if rng.random() < 0.97 else COMMANDS)
        frame = self.forge.command(name, self._base(name) if rng.random() < 0.7 else None)
        return self.forge.with_entry(frame, self.forge.entry()) if name == "send" else frame

    def _base(self, name: str) -> Any:
        """A command of that name that would be fine, where there is one."""
        rng = self.world.rng
        who, request = rng.randint(1, 4), rng.randint(1, 9999)
        message_id = pb.MessageIdData(ledgerId=rng.choice(self.ids), entryId=rng.choice(self.entries) % (1 << 63))
        match name:
            case "send":
                count = rng.choice((1, 1, 2, 500, (1 << 31) - 1))
                return pb.CommandSend(producer_id=who, sequence_id=rng.randint(0, 99), num_messages=count)
            case "ack":
                ids = [message_id] * rng.choice((1, 1, 3))
                return pb.CommandAck(
                    consumer_id=who, ack_type=rng.choice(list(pb.CommandAck.AckType.values())), message_id=ids
                )
            case "flow":
                return pb.CommandFlow(consumer_id=who, messagePermits=rng.randint(1, 99))
            case "seek":
                return pb.CommandSeek(consumer_id=who, request_id=request, message_id=message_id)
            case "unsubscribe":
                return pb.CommandUnsubscribe(consumer_id=who, request_id=request)
            case "redeliverUnacknowledgedMessages":
                return pb.CommandRedeliverUnacknowledgedMessages(consumer_id=who, message_ids=[message_id])
            case "endTxn":
                return pb.CommandEndTxn(request_id=request, txnid_most_bits=0, txnid_least_bits=rng.randint(0, 9))
            case _:
                return None

    def _heard(self, command: c.Command) -> None:
        if isinstance(command, c.CommandMessage | c.CommandSendReceipt) and command.message_id is not None:
            self.ids[2], self.entries[2] = max(command.message_id.ledger, 0), max(command.message_id.entry, 0)


async def everything_works(topic: str) -> None:
    """A client that behaves, on a topic that was attacked: each thing that a client can do, and what it leads to."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    assert (await client.partitions(topic)).error is None
    producer = await client.producer(topic, "clean")
    for sub_type in c.SubType:
        name = f"clean-{sub_type}"
        consumer = await client.subscribe(topic, name, sub_type)
        consumer.flow(100)
        ids = [await producer.publish(b"%d" % i, key="k") for i in range(6)]
        assert [payload_of((await consumer.receive()).entry) for _ in range(6)] == [b"%d" % i for i in range(6)]
        await consumer.ack(ids[0])
        if sub_type in (c.SubType.Exclusive, c.SubType.Failover):
            await consumer.ack(ids[2], cumulative=True)
        else:
            await consumer.ack(ids[1], ids[2])
        consumer.redeliver([ids[3]] if sub_type in (c.SubType.Shared, c.SubType.Key_Shared) else [])
        assert payload_of((await consumer.receive()).entry) == b"3"
        assert (await consumer.last_message_id()).last_message_id.entry == ids[5].entry
        for to in ({"to": ids[4]}, {"publish_time_ms": 1 << 50}, {"to": ids[5]}):
            await consumer.seek(**to)
            await client.hear(c.CommandCloseConsumer, where=lambda said: said.consumer_id >= 0)
            consumer = await client.subscribe(topic, name, sub_type)
        consumer.flow(100)
        assert payload_of((await consumer.receive()).entry) == b"5"
        await transactions_work(client, topic, consumer, ids[5])
        await consumer.unsubscribe()
    await producer.close()
    await client.close()


async def transactions_work(client: RawClient, topic: str, consumer: RawConsumer, held: c.MessageIdData) -> None:
    """One is aborted, one committed; ``held`` is out at the consumer."""
    producer = await client.producer(topic)
    for commit in (False, True):
        txn = await RawTransaction.begin(client)
        await txn.add_partitions(topic)
        value = b"committed" if commit else b"aborted"
        await txn.publish(producer, value)
        await txn.ack(consumer, held)
        await (txn.commit() if commit else txn.abort())
    received = b""
    while received != b"committed":
        received = payload_of((await consumer.receive()).entry)
        assert received in (b"5", b"committed")
    await producer.close()


class Errors(logging.Handler):
    """What the broker says went wrong within itself."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage() + (f": {record.exc_info[1]!r}" if record.exc_info else ""))


async def attacked(world: World) -> None:
    """The witness, the hostile client, then the clean one."""
    errors = Errors()
    logging.getLogger("magnetar").addHandler(errors)
    try:
        await world.boot()
        witnesses = [Witness(kind.name.lower(), kind, 1 if kind is c.SubType.Exclusive else 2) for kind in c.SubType]
        for witness in witnesses:
            await witness.start()
        sent: list[str] = []
        hostile = Hostile(world)
        world.start(publish(world, sent))
        await asyncio.sleep(0.2)
        world.start(hostile.run(400))
        await asyncio.gather(*world.tasks)
        await asyncio.sleep(1.0)
        # entries of an open transaction hold back what follows, for everybody: its time is over, or an operator ends it
        coordinator = world.machine.broker.service.coordinator
        for one in coordinator.open:
            coordinator.end(one.id, commit=False, owner=None, done=lambda: None)
        await asyncio.sleep(5.0)
        assert len(sent) == MESSAGES
        for witness in witnesses:
            witness.verify(sent)
        for topic in (T, OWN):
            await everything_works(topic)
        assert hostile.lives > 3
    finally:
        logging.getLogger("magnetar").removeHandler(errors)
    assert not errors.lines, errors.lines
    assert not world.loop.failures, world.loop.failures


def test_no_command_harms_another() -> None:
    run_seeds(attacked, 8, settings=ALL_ON)


def test_a_size_that_raises_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchSizes, "remaining", lambda self, ordinal, words, claimed: 1 << claimed)
    caught(attacked, lambda broker: None, settings=ALL_ON)


def test_a_claim_that_takes_everybodys_permits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magnetar.broker.topic.publish.producer.messages_in", lambda entry, claimed: claimed)
    caught(attacked, lambda broker: None, settings=ALL_ON)
