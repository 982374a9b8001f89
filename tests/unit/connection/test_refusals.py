"""What a command is refused for, with which code and text, once; and the connection goes on (rules of 3.1, 5.1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.system_topics import ASSIGN_TOPIC
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EncryptionKey, EntryMetadata, build_entry
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.sim.world import T, World
from tests.support.at_once import at_once
from tests.support.conversations import connected, talk

N = "non-persistent://public/default/n"
E = ServerError


async def refused(client: RawClient, command: Any, code: ServerError, text: str) -> None:
    with pytest.raises(RawClientError) as found:
        await client.request(command, c.CommandSuccess)
    assert found.value.code is code
    assert text in str(found.value)
    assert (await client.partitions(T)).partitions == 0, "the connection goes on"


SUBSCRIBES: list[tuple[str, dict[str, Any], dict[str, Any], ServerError, str]] = [
    ("no name", {"subscription": ""}, {}, E.ProducerBusy, "Empty subscription name"),
    ("reserved", {"subscription": "pulsar.dedup"}, {}, E.ProducerBusy, "reserved subscription name"),
    (
        "Key_Shared is off", {"sub_type": c.SubType.Key_Shared}, {"subscriptionKeySharedEnable": False},
        E.NotAllowedError, "Key_Shared subscription is disabled by broker.",
    ),
    (
        "compacted and shared", {"read_compacted": True, "sub_type": c.SubType.Shared}, {},
        E.NotAllowedError, "readCompacted only allowed on failover or exclusive subscriptions",
    ),
    (
        "compacted and Key_Shared", {"read_compacted": True, "sub_type": c.SubType.Key_Shared}, {},
        E.NotAllowedError, "readCompacted only allowed on failover or exclusive subscriptions",
    ),
    (
        "compacted and kept nowhere", {"read_compacted": True, "topic": N}, {},
        E.NotAllowedError, "readCompacted only valid on persistent topics",
    ),
    (
        "not made by itself", {"subscription": "new"}, {"allowAutoSubscriptionCreation": False},
        E.SubscriptionNotFound, "Subscription does not exist",
    ),
    ("no topic", {"topic": T + "-none", "force_topic_creation": False}, {}, E.TopicNotFound, "does not exist"),
]  # fmt: skip


@pytest.mark.parametrize("case", SUBSCRIBES, ids=lambda case: case[0])
def test_a_subscribe_that_is_refused(case: tuple[str, dict[str, Any], dict[str, Any], ServerError, str]) -> None:
    _, fields, settings, code, text = case

    async def simulation(world: World) -> None:
        client = await connected()
        await client.producer(T)
        command = replace(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 77, client.new_id()), **fields)
        await refused(client, command, code, text)
        # its consumer id is free
        if settings != {"allowAutoSubscriptionCreation": False}:
            again = c.CommandSubscribe(T, "s", c.SubType.Exclusive, 77, client.new_id())
            await client.request(again, c.CommandSuccess)

    talk(simulation, Settings(**settings))


def test_a_consumer_that_subscribes_too_often_is_one_of_its_topic_host_name_and_id() -> None:
    """Another one of the same connection is not held up by it (rule 14.6)."""

    async def simulation(world: World) -> None:
        client = await connected()

        async def comes(topic: str = T, **fields: Any) -> str:
            command = c.CommandSubscribe(topic, "s", c.SubType.Shared, 7, client.new_id())
            try:
                await client.request(replace(command, **fields), c.CommandSuccess)
            except RawClientError as error:
                assert error.code is ServerError.NotAllowedError
                return str(error)
            consumer_id = fields.get("consumer_id", 7)
            await client.request(c.CommandCloseConsumer(consumer_id, client.new_id()), c.CommandSuccess)
            return ""

        for who in ({}, {"consumer_name": "a"}, {"consumer_name": "b"}, {"consumer_id": 8}, {"topic": T + "-other"}):
            assert await comes(**who) == "", who
            assert "Subscribe limited by subscribe rate limit per consumer" in await comes(**who), who
        for _ in range(3):
            assert await comes(topic=N) == "", "topics that keep nothing have no such limit"
        await asyncio.sleep(30)
        assert await comes() == "", "in the next period"

    talk(simulation, Settings(subscribeThrottlingRatePerConsumer=1, subscribeRatePeriodPerConsumerInSecond=30))


def test_what_needs_no_subscription_that_exists_is_let_in_without_one() -> None:
    """Readers, and all of a topic that keeps nothing, where none is made by itself (rule 5.1.4)."""

    async def simulation(world: World) -> None:
        client = await connected()
        await client.subscribe(T, "reader", durable=False)
        await client.subscribe(N, "s")
        with pytest.raises(RawClientError, match="Could not create the initial subscription"):
            await client.producer(T, initial_subscription_name="first")
        await client.producer(T)
        await client.producer(N, initial_subscription_name="first")

    talk(simulation, Settings(allowAutoSubscriptionCreation=False))


def encrypted(payload: bytes) -> bytes:
    keys = (EncryptionKey("k", b"v"),)
    return build_entry(EntryMetadata("p", 0, 1, encryption_keys=keys), payload)


def plain(payload: bytes) -> bytes:
    return build_entry(EntryMetadata("p", 0, 1), payload)


async def answer(producer: Any, entry: bytes, **options: Any) -> tuple[ServerError | None, str]:
    try:
        await producer.receipt(producer.send(b"", entry=entry, **options))
    except RawClientError as error:
        return error.code, str(error)
    return None, ""


def test_where_encryption_is_required_nothing_else_comes_in() -> None:
    """Neither a producer that does not encrypt, nor a plain message of one that does (rule 3.1.7)."""

    async def simulation(world: World) -> None:
        client = await connected()
        open_before, other = await client.producer(T), await client.producer(T, encrypted=True)
        namespaces = world.machine.broker.resources.namespaces
        at_once(namespaces.update(NamespaceName.parse("public/default"), encryption_required=True))
        closed = await client.hear(c.CommandCloseProducer)
        assert closed.producer_id == open_before.producer_id, "only the one that does not encrypt"
        with pytest.raises(RawClientError, match="Encryption is required in") as found:
            await client.producer(T)
        assert found.value.code is ServerError.MetadataError
        allowed = await client.producer(T, encrypted=True)
        for producer in (other, allowed):
            code, text = await answer(producer, plain(b"x"))
            assert (code, "Messages must be encrypted" in text) == (ServerError.MetadataError, True)
            code, _ = await answer(producer, b"\x0e\x01" + bytes(20))
            assert code is not None, "what cannot be read is not encrypted"
            assert await answer(producer, encrypted(b"x")) == (None, "")
        at_once(namespaces.update(NamespaceName.parse("public/default"), encryption_required=False))
        assert await answer(allowed, plain(b"x")) == (None, "")
        await client.producer(T)

    talk(simulation)


@pytest.mark.parametrize("deduplicated", [False, True])
def test_a_refusal_comes_after_the_receipts_of_what_was_sent_before(deduplicated: bool) -> None:
    """Clients take answers in the order in which they sent, and the disk takes longer than a refusal."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T, "p")
        world.machine.hold_writes()
        first, second = producer.send(b"x"), producer.next_sequence_id
        spoilt = c.CommandSend(producer.producer_id, second, 1, None, False, None, False, None, plain(b"y")[:-1] + b"z")
        client.say(spoilt)
        third = producer.send(b"x", sequence_id=second + 1)
        assert (await client.partitions(T)).partitions == 0
        assert not client.heard(c.CommandSendError), "what was sent before is not durable"
        kinds: Any = (c.CommandSendReceipt, c.CommandSendError)
        answers = asyncio.gather(*[client.hear(*kinds) for _ in range(3)])
        await asyncio.sleep(0)
        world.machine.release_writes()
        assert [one.sequence_id for one in await answers] == [first, second, third]
        assert [type(one) for one in await answers] == [kinds[0], kinds[1], kinds[0]]

    talk(simulation, Settings(brokerDeduplicationEnabled=deduplicated))


@pytest.mark.parametrize("chunk", [False, True])
def test_a_message_larger_than_its_topic_allows_is_refused(chunk: bool) -> None:
    """To the byte of the entry, also for producers that were there before; chunks are exempt (rule 3.3.7)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        entry = plain(bytes(100))
        policies = world.machine.broker.resources.topic_policies
        for limit, allowed in ((len(entry), True), (len(entry) - 1, chunk), (0, True), (1, chunk)):
            at_once(policies.update(TopicName.parse(T), "maxMessageSize", limit))
            for one in (producer, await client.producer(T)):
                code, text = await answer(one, entry, chunk=chunk)
                wanted = (None, "") if allowed else (ServerError.NotAllowedError, "Exceed maximum message size")
                assert (code, text[-len(wanted[1]) :] if wanted[1] else text) == wanted

    talk(simulation)


@pytest.mark.parametrize("command", [c.CommandUnsubscribe(1, 902), c.CommandSeek(1, 902)])
def test_a_consumer_that_is_still_being_opened_is_none(command: c.CommandUnsubscribe | c.CommandSeek) -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        client.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900))
        client.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 901))
        client.say(command)
        second = await client.hear(c.CommandError, where=lambda one: one.request_id == 901)
        wanted = (ServerError.ServiceNotReady, "Consumer is already present on the connection")
        assert (second.error, second.message) == wanted
        refusal = await client.hear(c.CommandError, where=lambda one: one.request_id == 902)
        assert refusal.error is ServerError.MetadataError
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 900)

    talk(simulation)


def test_a_seek_that_names_no_place_is_refused_and_one_that_does_goes_there() -> None:
    """A message id or a time (rules of 5.9)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        ids = [await producer.publish(b"x") for _ in range(3)]
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        await refused(client, c.CommandSeek(consumer.consumer_id, client.new_id()), E.MetadataError, "were not present")
        client.say(c.CommandSeek(consumer.consumer_id, 800, ids[1]))
        await client.hear(c.CommandSuccess, where=lambda one: one.request_id == 800)
        await client.hear(c.CommandCloseConsumer)
        again = await client.subscribe(T, "s", c.SubType.Shared)
        again.flow(10)
        assert (await again.receive()).message_id.entry == ids[1].entry

    talk(simulation)


@pytest.mark.parametrize("version", [0, 1, 20, 21, 22, 1000])
@pytest.mark.parametrize("patterns", [True, False])
def test_what_connected_says(version: int, patterns: bool) -> None:
    """The lower of both protocol versions, of which 21 is ours, the size limit and the features (rule 1.2.2)."""

    async def simulation(world: World) -> None:
        client = await RawClient.open(HOST, PORT)
        found = await client.connect(protocol_version=version)
        assert found.protocol_version == min(version, 21)
        assert found.max_message_size == 1_000_001
        assert found.server_version.startswith("Pulsar Server magnetar ")
        features = found.feature_flags
        assert features is not None
        assert bool(features.supports_topic_watchers) is patterns
        assert features.supports_get_partitioned_metadata_without_auto_creation

    talk(simulation, Settings(enableBrokerSideSubscriptionPatternEvaluation=patterns, maxMessageSize=1_000_001))


def test_a_topic_that_keeps_nothing_has_no_last_message_and_says_so() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe("non-persistent://public/default/n", "s", c.SubType.Shared)
        with pytest.raises(RawClientError, match="has no last message: a non-persistent topic keeps none"):
            await consumer.last_message_id()
        assert (await client.partitions(T)).partitions == 0, "the connection goes on"

    talk(simulation)


def test_without_transactions_there_is_no_coordinator_to_ask() -> None:
    """A client then says so itself; Apache Pulsar's standalone answers 0, and for other topics of its own an error."""

    async def simulation(world: World) -> None:
        client = await connected()
        assert (await client.partitions(ASSIGN_TOPIC)).partitions == 0
        assert (await client.partitions(ASSIGN_TOPIC + "-2")).error is E.TopicNotFound

    talk(simulation, Settings(transactionCoordinatorEnabled=False))


@pytest.mark.parametrize("made", [None, True, False])
def test_who_asks_whether_a_topic_is_there_is_no_trouble_and_who_wants_it_made_is(
    made: bool | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Java consumers ask so for topics of earlier versions, whenever they begin."""

    async def simulation(world: World) -> None:
        client = await connected()
        command = c.CommandPartitionedTopicMetadata(T, client.new_id(), metadata_auto_creation_enabled=made)
        answer = await client.request(command, c.CommandPartitionedTopicMetadataResponse)
        assert (answer.response, answer.error) == (c.MetadataType.Failed, E.TopicNotFound)
        warned = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
        said = [one for one in warned if "PARTITIONED_METADATA" in one]
        assert len(said) == (made is not False)
        assert all("not found, and it is not to be created" in one for one in said)

    talk(simulation, Settings(allowAutoTopicCreation=False))


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_partition_of_nothing_is_there_only_where_it_may_be_made(domain: str, made: bool) -> None:
    """The answer was 0 partitions, so clients went on to a topic that is not there (rules 2.7, 2.8, 2.13)."""

    async def simulation(world: World) -> None:
        client = await connected()
        parted = TopicName.parse(f"{domain}://public/default/parted")
        await world.machine.broker.resources.partitioned.create(parted, 2)

        async def asked(local: str) -> tuple[int | None, ServerError | None]:
            command = c.CommandPartitionedTopicMetadata(
                f"{domain}://public/default/{local}", client.new_id(), metadata_auto_creation_enabled=made
            )
            answer = await client.request(command, c.CommandPartitionedTopicMetadataResponse)
            return answer.partitions, answer.error

        assert await asked("none-partition-0") == (None, E.TopicNotFound)
        assert [await asked(f"parted-partition-{n}") for n in (0, 1)] == [(0, None)] * 2
        assert await asked("parted-partition-2") == (None, E.TopicNotFound)

    talk(simulation, Settings(allowAutoTopicCreation=not made))


def test_a_partition_of_nothing_that_may_be_made_has_no_partitions_of_its_own() -> None:
    """The client opens it then, and it becomes a topic like any other (rule 2.13)."""

    async def simulation(world: World) -> None:
        client = await connected()
        assert (await client.partitions(f"{T}-partition-5")).partitions == 0

    talk(simulation)
