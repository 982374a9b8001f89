"""The shapes of Apache Pulsar's security advisories on the wire: each is tried, and refused.

What the advisories have in common: a command without a check, an id in a request that is checked by nobody, a name
that means something else than what was checked, another's power lent by the one who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.model.errors import ServerError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.sim.world import World, run_seed
from tests.support.roles import METHOD, SETTINGS, believing, client_of, grant

MINE = "persistent://acme/mine/t"
THEIRS = "persistent://acme/theirs/t"
BOTH = ["produce", "consume"]
EARLIEST = c.InitialPosition.Earliest
SCHEMA = c.Schema("s", b'"string"', SchemaType.AVRO)
Talk = Callable[[World, RawClient], Coroutine[Any, Any, None]]


def attack(simulation: Talk) -> None:
    """Mallory may do everything with topics of acme/mine and nothing elsewhere; alice owns acme/theirs."""

    async def booted(world: World) -> None:
        await world.boot()
        resources = world.machine.broker.resources
        await resources.tenants.create("acme", {"adminRoles": ["boss"], "allowedClusters": ["standalone"]})
        for name, role in (("mine", "mallory"), ("theirs", "alice")):
            await resources.namespaces.create("acme", name)
            await grant(resources, NamespaceName.parse(f"acme/{name}"), namespace={role: BOTH})
        for topic, role in ((MINE, "mallory"), (THEIRS, "alice")):
            client = await client_of(role)
            producer = await client.producer(topic)
            for number in range(3):
                await producer.publish(f"{role} {number}".encode())
            await client.subscribe(topic, "s", initial_position=EARLIEST)
        await simulation(world, await client_of("mallory"))

    run_seed(booted, 1, settings=SETTINGS, tamper=believing)


async def refused(client: RawClient, command: Any, kind: type[Any] = c.CommandError) -> None:
    """It is refused, and the connection lives."""
    client.say(command)
    answer = await client.hear(kind, where=lambda one: one.request_id == command.request_id)
    assert answer.error is ServerError.AuthorizationError, answer


def test_schemas_of_others_can_neither_be_read_nor_written() -> None:
    """CVE-2026-105926: GET_SCHEMA and GET_OR_CREATE_SCHEMA asked nobody; official clients never showed it."""

    async def simulation(world: World, mallory: RawClient) -> None:
        alice = await client_of("alice")
        made = c.CommandGetOrCreateSchema(alice.new_id(), THEIRS, SCHEMA)
        await alice.request(made, c.CommandGetOrCreateSchemaResponse)
        for version in (None, b"\x00" * 8):
            await refused(mallory, c.CommandGetSchema(mallory.new_id(), THEIRS, version), c.CommandGetSchemaResponse)
        other = SCHEMA.__class__("s", b'"bytes"', SchemaType.AVRO)
        await refused(
            mallory,
            c.CommandGetOrCreateSchema(mallory.new_id(), THEIRS, other),
            c.CommandGetOrCreateSchemaResponse,
        )
        assert len(world.machine.broker.service.schemas.versions(TopicName.parse(THEIRS))) == 1

    attack(simulation)


def test_ids_of_another_topics_messages_do_nothing() -> None:
    """The shape of CVE-2021-41571: the topic is checked, the ledger's id is another's."""

    async def simulation(world: World, mallory: RawClient) -> None:
        service = world.machine.broker.service
        foreign = service.topics[THEIRS].log
        ids = [
            c.MessageIdData(position.ledger, position.entry)
            for position in (foreign.position(ordinal) for ordinal in range(foreign.first, foreign.end))
        ]
        theirs, mine = service.topics[THEIRS].subscriptions["s"], service.topics[MINE].subscriptions["s"]
        before = theirs.cursor.backlog(), mine.cursor.backlog()
        consumer = await mallory.subscribe(MINE, "other", c.SubType.Shared, initial_position=EARLIEST)
        await consumer.ack(*ids)
        consumer.redeliver(ids)
        await consumer.seek(ids[0])
        assert (theirs.cursor.backlog(), mine.cursor.backlog()) == before
        last = await (await mallory.subscribe(MINE, "last")).last_message_id()
        assert last.last_message_id.ledger != ids[0].ledger

    attack(simulation)


@pytest.mark.parametrize(
    "name",
    [
        "persistent://acme/theirs/t-partition-0",
        "persistent://acme/theirs/t-partition-00",
        "non-persistent://acme/theirs/t",
        "persistent://acme/theirs/../mine/t",
        "persistent://acme/mine/../theirs/t",
        "persistent://acme/theirs/%74",
        "acme/theirs/t",
        "persistent://acme/standalone/theirs/t",
        "persistent://acme/mine-theirs/t",
        "persistent://ACME/mine/t",
        "persistent://acme/theirs/__change_events",
        "persistent://acme/mine/__change_events",
        "persistent://acme/mine/t-s__transaction_pending_ack",
        "persistent://pulsar/system/transaction_coordinator_assign-partition-0",
        "persistent://pulsar/127.0.0.1:8080/healthcheck",
        "internal://transaction-log/0",
    ],
)
def test_no_spelling_of_a_name_gets_around_the_check(name: str) -> None:
    async def simulation(world: World, mallory: RawClient) -> None:
        before = {topic.name.fqn: len(topic.producers) for topic in world.machine.broker.service.topics.values()}
        mallory.say(c.CommandProducer(name, 1, 1))
        answer: Any = await mallory.hear(c.CommandProducerSuccess, c.CommandError)
        after = {topic.name.fqn: len(topic.producers) for topic in world.machine.broker.service.topics.values()}
        if isinstance(answer, c.CommandProducerSuccess):
            # a name with dots or percent signs is just a name in the namespace that it names
            assert TopicName.parse(name).namespace.text == "acme/mine"
            assert {fqn for fqn in after if fqn not in before} == {name}
        else:
            assert answer.error in (ServerError.AuthorizationError, ServerError.InvalidTopicName)
            assert after == before

    attack(simulation)


def test_the_principal_that_a_request_names_lends_nothing() -> None:
    """LOOKUP and PARTITIONED_METADATA have fields for an original principal: whoever fills them in is who he is."""

    async def simulation(world: World, mallory: RawClient) -> None:
        for named in ("alice", "root", "boss"):
            lookup = c.CommandLookupTopic(THEIRS, mallory.new_id(), original_principal=named)
            await refused(mallory, lookup, c.CommandLookupTopicResponse)
            metadata = c.CommandPartitionedTopicMetadata(THEIRS, mallory.new_id(), original_principal=named)
            await refused(mallory, metadata, c.CommandPartitionedTopicMetadataResponse)

    attack(simulation)


def test_a_proxys_power_is_not_its_clients() -> None:
    """CVE-2023-30429 and 30428: the role of a proxy was used where the original principal's was meant."""

    async def simulation(world: World, mallory: RawClient) -> None:
        resources = world.machine.broker.resources
        await grant(resources, NamespaceName.parse("acme/theirs"), namespace={"alice": BOTH, "proxy": BOTH})
        through = await client_of("proxy", "mallory")
        await refused(through, c.CommandProducer(THEIRS, 1, 1))
        await refused(through, c.CommandSubscribe(THEIRS, "s", c.SubType.Shared, 1, 2))
        allowed = await client_of("proxy", "alice")
        await (await allowed.producer(THEIRS)).publish(b"x")

    attack(simulation)


def test_nobody_becomes_somebody_else_on_an_open_connection() -> None:
    async def simulation(world: World, mallory: RawClient) -> None:
        mallory.say(c.CommandConnect("again", 21, METHOD, b"root"))
        await mallory.lost
        client = await RawClient.open(HOST, PORT)
        client.say(c.CommandProducer(MINE, 1, 1))
        await client.lost

    attack(simulation)


def test_what_others_hold_open_cannot_be_touched() -> None:
    """Ids of producers, consumers and watches are those of one connection."""

    async def simulation(world: World, mallory: RawClient) -> None:
        alice = await client_of("alice")
        producer, consumer = await alice.producer(THEIRS), await alice.subscribe(THEIRS, "x")
        mallory.say(
            c.CommandCloseProducer(producer.producer_id, 101),
            c.CommandCloseConsumer(consumer.consumer_id, 102),
            c.CommandFlow(consumer.consumer_id, 10),
            c.CommandAck(consumer.consumer_id, c.AckType.Cumulative, (c.MessageIdData(0, 0),)),
            c.CommandRedeliverUnacknowledgedMessages(consumer.consumer_id),
            c.CommandUnsubscribe(consumer.consumer_id, 103),
            c.CommandSeek(consumer.consumer_id, 104, c.MessageIdData(0, 0)),
            c.CommandConsumerStats(105, consumer.consumer_id),
        )
        answer = await mallory.hear(c.CommandConsumerStatsResponse)
        assert answer.error is ServerError.ConsumerNotFound
        topic = world.machine.broker.service.topics[THEIRS]
        assert len(topic.producers) == 2 and "x" in topic.subscriptions
        await producer.publish(b"still there")
        assert not mallory.heard(c.CommandMessage)
        mallory.say(c.CommandSend(producer.producer_id, 0, 1, None, False, None, False, None, b""))
        await mallory.lost

    attack(simulation)


def test_dead_letter_and_retry_topics_are_topics_like_any_other() -> None:
    """The shape of CVE-2026-105927: a topic that is derived from another is not written with somebody else's power."""

    async def simulation(world: World, mallory: RawClient) -> None:
        for name in (f"{THEIRS}-s-DLQ", f"{THEIRS}-s-RETRY"):
            await refused(mallory, c.CommandProducer(name, 1, mallory.new_id()))
            await refused(mallory, c.CommandProducer(name, 1, mallory.new_id(), initial_subscription_name="s"))
        await mallory.producer(f"{MINE}-s-DLQ")

    attack(simulation)


def test_a_transaction_reaches_no_further_than_its_owner() -> None:
    """Its end writes into every topic that takes part: none may be added that the role could not write itself."""

    async def simulation(world: World, mallory: RawClient) -> None:
        begun = await mallory.request(c.CommandNewTxn(mallory.new_id(), 60_000), c.CommandNewTxnResponse)
        assert begun.txn is not None
        add = c.CommandAddPartitionToTxn(mallory.new_id(), begun.txn, (MINE, THEIRS))
        await refused(mallory, add, c.CommandAddPartitionToTxnResponse)
        subscription = c.TxnSubscription(THEIRS, "s")
        added = c.CommandAddSubscriptionToTxn(mallory.new_id(), begun.txn, (subscription,))
        await refused(mallory, added, c.CommandAddSubscriptionToTxnResponse)
        end = world.machine.broker.service.topics[THEIRS].log.end
        await mallory.request(c.CommandEndTxn(mallory.new_id(), begun.txn, c.TxnAction.COMMIT), c.CommandEndTxnResponse)
        assert world.machine.broker.service.topics[THEIRS].log.end == end

    attack(simulation)


def test_policies_are_not_written_through_a_topic() -> None:
    """The shape of CVE-2024-28098: whoever may publish could change policies, here by the topic that carries them."""

    async def simulation(world: World, mallory: RawClient) -> None:
        events = "persistent://acme/mine/__change_events"
        boss = await client_of("boss")
        await world.machine.broker.resources.topic_policies.update(TopicName.parse(MINE), "maxProducers", 9)
        await boss.subscribe(events, "reading", initial_position=EARLIEST)
        await refused(mallory, c.CommandProducer(events, 1, mallory.new_id()))
        await mallory.subscribe(events, "watching", initial_position=EARLIEST)

    attack(simulation)


def test_a_flood_of_refusals_costs_its_sender_only() -> None:
    async def simulation(world: World, mallory: RawClient) -> None:
        alice = await client_of("alice")
        producer = await alice.producer(THEIRS)
        for _ in range(2000):
            mallory.say(c.CommandLookupTopic(THEIRS, mallory.new_id()))
        await producer.publish(b"between")
        await mallory.hear(c.CommandLookupTopicResponse, where=lambda one: one.request_id == 2000)
        service = world.machine.broker.service
        assert service.authorizer is not None and service.authorizer.refusals == 2000
        with pytest.raises(RawClientError):
            await mallory.producer(THEIRS)

    attack(simulation)
