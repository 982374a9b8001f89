"""Refusals and updates that few clients ever see: each comes once, and the connection goes on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.handlers.topic_list_watch import TopicListWatch
from magnetar.broker.connection.inner_connection import InnerTransport
from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.world import T, World
from tests.support.conversations import again, connected, stats, talk

N = "non-persistent://public/default/n"
AVRO = c.Schema("s", b'{"type": "record", "name": "r", "fields": []}', SchemaType.AVRO)
ANY = c.Schema("", b"", SchemaType.AUTO_CONSUME)


@pytest.mark.parametrize("topic", [T, N])
def test_a_subscription_is_durable_or_not_from_its_first_consumer_on(topic: str) -> None:
    """The other kind is refused by name, and its id is free (rule 0.12); a topic that keeps nothing knows no such."""

    async def simulation(world: World) -> None:
        client = await connected()
        for name, durable, text in (("a", True, "Durable"), ("b", False, "NonDurable")):
            await client.subscribe(topic, name, c.SubType.Shared, durable=durable)
            command = c.CommandSubscribe(topic, name, c.SubType.Shared, 99, client.new_id(), durable=not durable)
            if topic == N:
                await client.request(command, c.CommandSuccess)
                await client.request(c.CommandCloseConsumer(99, client.new_id()), c.CommandSuccess)
                continue
            with pytest.raises(RawClientError) as refused:
                await client.request(command, c.CommandSuccess)
            assert refused.value.code is ServerError.NotAllowedError
            assert refused.value.message == f"{text} subscription with the same name already exists."
            await client.request(
                replace(command, request_id=client.new_id(), durable=durable, topic=topic), c.CommandSuccess
            )
            await client.request(c.CommandCloseConsumer(99, client.new_id()), c.CommandSuccess)
        assert not client.heard(c.CommandError)

    talk(simulation)


@pytest.mark.parametrize("topic", [T, N])
@pytest.mark.parametrize(
    ("settings", "subscription", "sub_type", "code", "text"),
    [
        ({"maxConsumersPerTopic": 1}, "s", c.SubType.Shared, ServerError.ConsumerBusy, "reached max consumers limit"),
        ({"maxSubscriptionsPerTopic": 1}, "t", c.SubType.Shared, ServerError.NotAllowedError, "maximum number of"),
        (
            {"subscriptionTypesEnabled": "Shared"}, "t", c.SubType.Exclusive,
            ServerError.NotAllowedError, "doesn't support Exclusive sub type!",
        ),
    ],
)  # fmt: skip
def test_a_topic_has_as_many_consumers_of_such_types_as_it_may_have_whether_or_not_it_keeps_anything(
    topic: str, settings: dict[str, Any], subscription: str, sub_type: c.SubType, code: ServerError, text: str
) -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        first = await client.subscribe(topic, "s", c.SubType.Shared)
        with pytest.raises(RawClientError, match=text) as refused:
            await client.subscribe(topic, subscription, sub_type)
        assert refused.value.code is code
        shown = (await stats(world, topic))["subscriptions"]
        assert len(shown.pop("s")["consumers"]) == 1 and shown == {}
        await first.close()
        await client.subscribe(topic, "s", c.SubType.Shared)

    talk(simulation, Settings(**settings))


def test_a_producer_whose_initial_subscription_would_be_one_too_many_is_refused_and_may_come_without() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        await client.subscribe(T, "first")
        command = c.CommandProducer(T, 7, client.new_id(), "p", initial_subscription_name="second")
        with pytest.raises(RawClientError, match="Exceed the maximum number of subscriptions") as refused:
            await client.request(command, c.CommandProducerSuccess)
        assert refused.value.code is ServerError.NotAllowedError
        assert set((await stats(world))["subscriptions"]) == {"first"}
        await client.request(
            replace(command, request_id=client.new_id(), initial_subscription_name=None), c.CommandProducerSuccess
        )
        await again(client)
        assert not client.heard(c.CommandError)

    talk(simulation, Settings(maxSubscriptionsPerTopic=1))


def test_a_producer_and_a_consumer_of_a_topic_that_cannot_be_made_durable_are_refused_and_may_come_again() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        for command in (
            c.CommandProducer(T, 7, client.new_id(), "p"),
            c.CommandSubscribe(T + "-other", "s", c.SubType.Exclusive, 7, client.new_id()),
        ):
            world.machine.files.fail("append", times=1)
            kind = c.CommandSuccess if isinstance(command, c.CommandSubscribe) else c.CommandProducerSuccess
            with pytest.raises(RawClientError) as refused:
                await client.request(command, cast(Any, kind))
            assert refused.value.code is ServerError.PersistenceError
            await again(client)
            assert not client.heard(c.CommandError), "once"
            await client.request(replace(command, request_id=client.new_id()), cast(Any, kind))

    talk(simulation)


@pytest.mark.parametrize(
    ("first", "admitted"),
    [("nothing", True), ("a message", False), ("a producer", False), ("any schema", True), ("bytes", False)],
)
def test_a_consumer_brings_a_schema_to_a_topic_that_is_not_in_use_without_one(first: str, admitted: bool) -> None:
    """Messages, producers and consumers of bytes are a use; a consumer that takes any schema is none (rule 10.4)."""

    async def simulation(world: World) -> None:
        client = await connected()
        if first in ("a message", "a producer"):
            producer = await client.producer(T)
            if first == "a message":
                await producer.publish(b"x")
                await producer.close()
        elif first != "nothing":
            await client.subscribe(T, "other", schema=ANY if first == "any schema" else None)
        if admitted:
            await client.subscribe(T, "s", schema=AVRO)
        else:
            with pytest.raises(RawClientError) as refused:
                await client.subscribe(T, "s", schema=AVRO)
            assert refused.value.code is ServerError.IncompatibleSchema
        answer = await client.request(c.CommandGetSchema(client.new_id(), T), c.CommandGetSchemaResponse)
        assert (answer.error is None) is admitted

    talk(simulation)


def test_who_goes_back_in_time_while_somebody_seeks_is_refused() -> None:
    """The cursor is on its way elsewhere (rule 5.9.5)."""

    async def simulation(world: World) -> None:
        client, other = await connected(), await connected()
        producer = await client.producer(T)
        ids = [await producer.publish(b"x") for _ in range(2)]
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        await other.subscribe(T, "s", c.SubType.Shared)
        world.machine.hold_writes()
        client.say(c.CommandSeek(consumer.consumer_id, 900, ids[0]))
        await again(client)
        other.say(c.CommandSubscribe(T, "s", c.SubType.Shared, 99, 900, start_message_rollback_duration_sec=10))
        await again(other)
        world.machine.release_writes()
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 900)
        answer: Any = await other.hear(cast(Any, c.CommandError), c.CommandSuccess)
        assert answer.request_id == 900
        await again(other)
        assert not other.heard(c.CommandError) and not other.heard(c.CommandSuccess), "once"

    talk(simulation)


def test_what_was_acknowledged_is_acknowledged_by_no_transaction() -> None:
    """It has the conflict for an answer, and nothing else of its ACK is reserved (rule 9.12)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        ids = [await producer.publish(b"x") for _ in range(3)]
        await consumer.ack(ids[1])
        txn = await RawTransaction.begin(client)
        await txn.add_subscription(T, "s")
        with pytest.raises(RawClientError, match="already acked before") as refused:
            await consumer.ack(ids[0], ids[1], txn=txn.id)
        assert refused.value.code is ServerError.TransactionConflict
        await txn.commit()
        assert world.backlog(T, "s") == 2

    talk(simulation, Settings(transactionCoordinatorEnabled=True))


def test_topics_that_come_while_a_list_is_being_sent_are_told_of_behind_it() -> None:
    said: list[Any] = []
    watchers: list[Any] = []
    lists = SimpleNamespace(leave=lambda watched, changed: watchers.remove(changed))
    session: Any = SimpleNamespace(send=said.append, service=SimpleNamespace(watched_lists=lists))
    watched: Any = SimpleNamespace(watchers=watchers)
    watch = TopicListWatch(session, 7, cast(Any, "public/default"), watched)
    for number in (1, 2):
        watchers[0]([f"new-{number}"], [], "x")
    assert said == []
    said.append("the list")
    watch.answered()
    watchers[0]([], ["new-1"], "y")
    assert said == [
        "the list",
        c.CommandWatchTopicUpdate(7, ("new-1",), (), "x"),
        c.CommandWatchTopicUpdate(7, ("new-2",), (), "x"),
        c.CommandWatchTopicUpdate(7, (), ("new-1",), "y"),
    ]
    watch.close()
    assert watchers == []


def test_an_inner_connection_says_whether_it_reads_and_serves_another_protocol_when_asked() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        here, there = InnerTransport(loop, {}), InnerTransport(loop, {})
        got: list[bytes] = []

        class Taking(asyncio.Protocol):
            def data_received(self, data: bytes) -> None:
                got.append(data)

        first, second = asyncio.Protocol(), Taking()
        here.join(there, first)
        there.join(here, first)
        assert there.get_protocol() is first and there.is_reading()
        there.set_protocol(second)
        assert there.get_protocol() is second
        there.pause_reading()
        assert not there.is_reading()
        here.write(b"x")
        await asyncio.sleep(0.01)
        assert got == []
        there.resume_reading()
        await asyncio.sleep(0.01)
        assert got == [b"x"]
        there.close()
        assert not there.is_reading()
        await asyncio.sleep(0.01)

    asyncio.run(scenario())


@pytest.mark.parametrize("greeted", [True, False])
def test_a_client_that_speaks_tls_to_the_wrong_port_is_named_as_such(
    greeted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)

    async def simulation(world: World) -> None:
        client = await RawClient.open(HOST, PORT)
        if greeted:
            await client.connect()
        client.say_bytes(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100))
        await asyncio.wait_for(asyncio.shield(client.lost), 5)

    talk(simulation)
    assert ("it speaks TLS to the port without TLS" in caplog.text) is not greeted


def test_a_topic_that_is_not_there_gets_no_schema() -> None:
    """GET_OR_CREATE_SCHEMA makes schemas, not topics (rule 10.10)."""

    async def simulation(world: World) -> None:
        client = await connected()
        command = c.CommandGetOrCreateSchema(client.new_id(), T, AVRO)
        answer = await client.request(command, c.CommandGetOrCreateSchemaResponse)
        assert (answer.error, answer.message) == (ServerError.TopicNotFound, f"Topic not found {T}")
        await asyncio.sleep(1)
        assert not client.heard(c.CommandGetOrCreateSchemaResponse), "once"
        service = world.machine.broker.service
        assert not service.exists(TopicName.parse(T)) and not service.schemas.history(TopicName.parse(T))
        await client.producer(T)
        answer = await client.request(replace(command, request_id=client.new_id()), c.CommandGetOrCreateSchemaResponse)
        assert answer.error is None and len(service.schemas.history(TopicName.parse(T))) == 1

    talk(simulation)
