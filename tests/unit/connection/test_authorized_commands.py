"""Every command of every kind of role on every kind of topic, as raw frames, and what the refusals say (rule 12.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from magnetar.protocol.server import FROM_CLIENT
from magnetar.testing.rawclient import ANSWERS, RawClient, RawClientError
from tests.sim.world import World, run_seed
from tests.support.roles import SETTINGS, believing, client_of, grant

REFUSED = ServerError.AuthorizationError
SPACE = NamespaceName.parse("acme/orders")
T = "persistent://acme/orders/t"
PARTITIONED = "persistent://acme/orders/p"
TOPICS = (
    T,
    PARTITIONED,
    f"{PARTITIONED}-partition-1",
    "non-persistent://acme/orders/t",
    "persistent://acme/orders/absent",
    "persistent://acme/orders/__change_events",
)
SCHEMA = c.Schema("s", b'"string"', SchemaType.AVRO)
ROLES = ("root", "owner", "producing", "consuming", "topical", "stranger")
GRANTS: dict[str, Any] = {
    "namespace": {"producing": ["produce"], "consuming": ["consume"], "stranger": ["functions", "packages"]},
    "topics": {T: {"topical": ["produce", "consume"]}},
}
Talk = Callable[[World], Coroutine[Any, Any, None]]


def talk(simulation: Talk, settings: Settings = SETTINGS, mode: str = "None", **grants: Any) -> None:
    """Run it in a broker with the tenant acme, its owner, and the grants."""

    async def booted(world: World) -> None:
        await world.boot()
        resources = world.machine.broker.resources
        await resources.tenants.create("acme", {"adminRoles": ["owner"], "allowedClusters": ["standalone"]})
        await resources.namespaces.create("acme", "orders")
        await resources.partitioned.create(TopicName.parse(PARTITIONED), 2)
        root = await client_of("root")
        for topic in (T, f"{PARTITIONED}-partition-0", f"{PARTITIONED}-partition-1"):
            await (await root.producer(topic)).publish(b"x")
        await grant(resources, SPACE, mode, **(grants or GRANTS))
        await simulation(world)

    run_seed(booted, 1, settings=settings, tamper=believing)


def command_on(kind: type, client: RawClient, topic: str) -> Any:
    """A command of that kind about the topic."""
    new = client.new_id()
    made: dict[type, Callable[[], Any]] = {
        c.CommandLookupTopic: lambda: c.CommandLookupTopic(topic, new),
        c.CommandPartitionedTopicMetadata: lambda: c.CommandPartitionedTopicMetadata(topic, new),
        c.CommandGetTopicsOfNamespace: lambda: c.CommandGetTopicsOfNamespace(new, "acme/orders"),
        c.CommandWatchTopicList: lambda: c.CommandWatchTopicList(new, new, "acme/orders", ".*"),
        c.CommandGetSchema: lambda: c.CommandGetSchema(new, topic),
        c.CommandGetOrCreateSchema: lambda: c.CommandGetOrCreateSchema(new, topic, SCHEMA),
        c.CommandProducer: lambda: c.CommandProducer(topic, new, new),
        c.CommandSubscribe: lambda: c.CommandSubscribe(topic, f"s{new}", c.SubType.Shared, new, new),
        c.CommandAddPartitionToTxn: lambda: c.CommandAddPartitionToTxn(new, c.TxnId(0, 0), (topic,)),
        c.CommandAddSubscriptionToTxn: lambda: c.CommandAddSubscriptionToTxn(
            new, c.TxnId(0, 0), (c.TxnSubscription(topic, "s"),)
        ),
        c.CommandEndTxnOnPartition: lambda: c.CommandEndTxnOnPartition(new, c.TxnId(0, 5), topic),
        c.CommandEndTxnOnSubscription: lambda: c.CommandEndTxnOnSubscription(
            new, c.TxnId(0, 5), c.TxnSubscription(topic, "s")
        ),
    }
    return made[kind]()


PRODUCE, CONSUME, EITHER, ADMIN = {"producing"}, {"consuming"}, {"producing", "consuming"}, set[str]()
NEEDED = {
    c.CommandLookupTopic: EITHER,
    c.CommandPartitionedTopicMetadata: EITHER,
    c.CommandGetTopicsOfNamespace: EITHER,
    c.CommandWatchTopicList: EITHER,
    c.CommandGetSchema: EITHER,
    c.CommandGetOrCreateSchema: PRODUCE,
    c.CommandProducer: PRODUCE,
    c.CommandSubscribe: CONSUME,
    c.CommandAddPartitionToTxn: PRODUCE,
    c.CommandAddSubscriptionToTxn: CONSUME,
    c.CommandEndTxnOnPartition: ADMIN,
    c.CommandEndTxnOnSubscription: ADMIN,
}
"""Which roles with grants on the namespace may do it."""
OF_HANDLES = {
    *(
        c.CommandWatchTopicListClose,
        c.CommandSend,
        c.SendRun,
        c.AckRun,
        c.CommandCloseProducer,
        c.CommandFlow,
        c.CommandAck,
    ),
    *(c.CommandRedeliverUnacknowledgedMessages, c.UnparsedCommand, c.CommandSeek, c.CommandUnsubscribe),
    *(c.CommandCloseConsumer, c.CommandGetLastMessageId, c.CommandConsumerStats, c.CommandTcClientConnectRequest),
    *(c.CommandNewTxn, c.CommandEndTxn),
}
TEXTS = {
    c.CommandLookupTopic: "Client is not authorized to Lookup",
    c.CommandPartitionedTopicMetadata: "Client is not authorized to Get Partition Metadata",
    c.CommandGetTopicsOfNamespace: "Client is not authorized to GetTopicsOfNamespace",
    c.CommandWatchTopicList: "Proxy Client is not authorized to watchTopicList",
    c.CommandGetSchema: "Client is not authorized to get schema",
    c.CommandGetOrCreateSchema: "Client is not authorized to get or create schema",
    c.CommandProducer: "Client is not authorized to Produce",
    c.CommandSubscribe: "Client is not authorized to subscribe",
    c.CommandAddPartitionToTxn: "Client is not authorized to Produce",
    c.CommandAddSubscriptionToTxn: "Client is not authorized to subscribe",
    c.CommandEndTxnOnPartition: "TC client ({}) is not a super user, and is not allowed to operate on transaction "
    "(0,5)",
    c.CommandEndTxnOnSubscription: "Handle end txn on subscription failed: TC client ({}) is not a super user, and is "
    "not allowed to operate on transaction (0,5)",
}


def may(role: str, kind: type, topic: str) -> bool:
    """Whether the role is to be allowed."""
    granted = set(NEEDED[kind])
    if kind is c.CommandEndTxnOnPartition or kind is c.CommandEndTxnOnSubscription:
        return role == "root"
    if topic == T and kind not in (c.CommandGetTopicsOfNamespace, c.CommandWatchTopicList):
        granted.add("topical")
    if topic.endswith("__change_events") and "producing" in granted and "consuming" not in granted:
        granted = set()  # only administrators write what the broker keeps for itself
    return role in ("root", "owner") or role in granted


async def outcome(client: RawClient, command: Any) -> tuple[bool, Any]:
    """Whether it was allowed, and the answer."""
    client.say(command)
    answer: Any = await client.hear(*ANSWERS, where=lambda answer: answer.request_id == command.request_id)
    refused = getattr(answer, "error", None) is REFUSED or "not a super user" in (getattr(answer, "message", "") or "")
    return not refused, answer


def test_the_matrix_covers_every_command() -> None:
    assert set(NEEDED) | OF_HANDLES == FROM_CLIENT and not set(NEEDED) & OF_HANDLES


def test_every_command_of_every_role_on_every_kind_of_topic() -> None:
    async def simulation(world: World) -> None:
        for role in ROLES:
            for topic in TOPICS:
                client = await client_of(role)
                for kind in NEEDED:
                    allowed, answer = await outcome(client, command_on(kind, client, topic))
                    assert allowed is may(role, kind, topic), (role, kind.__name__, topic, answer)
                    if not allowed:
                        assert answer.message == TEXTS[kind].format(role)
                assert not client.lost.done()
                await client.close()

    talk(simulation)


def test_refusals_have_the_shape_of_each_answer_and_do_nothing() -> None:
    async def simulation(world: World) -> None:
        client = await client_of("stranger")
        service = world.machine.broker.service
        before = service.names_in(SPACE), service.topics[T].subscriptions.keys()
        shapes = {
            c.CommandLookupTopic: c.CommandLookupTopicResponse,
            c.CommandPartitionedTopicMetadata: c.CommandPartitionedTopicMetadataResponse,
            c.CommandGetSchema: c.CommandGetSchemaResponse,
            c.CommandGetOrCreateSchema: c.CommandGetOrCreateSchemaResponse,
            c.CommandAddPartitionToTxn: c.CommandAddPartitionToTxnResponse,
            c.CommandAddSubscriptionToTxn: c.CommandAddSubscriptionToTxnResponse,
            c.CommandEndTxnOnPartition: c.CommandEndTxnOnPartitionResponse,
            c.CommandEndTxnOnSubscription: c.CommandEndTxnOnSubscriptionResponse,
        }
        for topic in TOPICS:
            for kind in NEEDED:
                _, answer = await outcome(client, command_on(kind, client, topic))
                assert type(answer) is shapes.get(kind, c.CommandError), kind
        assert (service.names_in(SPACE), service.topics[T].subscriptions.keys()) == before
        assert not service.schemas.versions(TopicName.parse(T))
        (listener,) = (one for one in world.machine.broker.connections if one.session.caller.role == "stranger")
        session = listener.session
        assert not session.producers and not session.consumers and not session.watches

    talk(simulation)


def test_names_that_are_none_are_answered_as_without_authorization() -> None:
    async def simulation(world: World) -> None:
        client = await client_of("stranger")
        for kind in NEEDED:
            if kind in (c.CommandGetTopicsOfNamespace, c.CommandWatchTopicList):
                continue
            allowed, answer = await outcome(client, command_on(kind, client, "a/b"))
            if kind in (c.CommandEndTxnOnPartition, c.CommandEndTxnOnSubscription):
                assert not allowed
            else:
                assert answer.error is ServerError.InvalidTopicName, (kind, answer)
        client.say(c.CommandGetTopicsOfNamespace(1, "a/b/c/d"))
        await client.lost

    talk(simulation)


def test_a_tenant_that_does_not_exist_has_answers_of_its_own() -> None:
    async def simulation(world: World) -> None:
        client = await client_of("stranger")
        topic = "persistent://nowhere/main/t"
        texts = {
            c.CommandLookupTopic: (REFUSED, "Exception occurred while trying to authorize lookup"),
            c.CommandPartitionedTopicMetadata: (
                ServerError.TopicNotFound,
                "Tenant or namespace or topic does not exist: nowhere/main",
            ),
            c.CommandProducer: (REFUSED, "org.apache.pulsar.common.util.RestException: HTTP 404 Not Found"),
            c.CommandSubscribe: (REFUSED, "org.apache.pulsar.common.util.RestException: HTTP 404 Not Found"),
        }
        for kind, wanted in texts.items():
            _, answer = await outcome(client, command_on(kind, client, topic))
            assert (answer.error, answer.message) == wanted

    talk(simulation)


def test_names_of_subscriptions() -> None:
    """Roles of subscriptions and the mode Prefix; administrators are not bound by them (rule 12.7)."""

    async def simulation(world: World) -> None:
        alice, bob, owner = await client_of("alice"), await client_of("bob"), await client_of("owner")
        for name in ("alice", "alice-1", "alicexyz"):
            await alice.subscribe(T, name)
        with pytest.raises(RawClientError) as refused:
            await alice.subscribe(T, "s")
        assert refused.value.message == (
            "org.apache.pulsar.broker.PulsarServerException: Failed to create consumer - The subscription name needs "
            f"to be prefixed by the authentication role, like alice-xxxx for topic: {T}"
        )
        with pytest.raises(RawClientError, match="Client is not authorized to subscribe"):
            await bob.subscribe(T, "bob-reserved")
        with pytest.raises(RawClientError, match="Failed to create consumer"):
            await bob.subscribe(T, " ")
        await owner.subscribe(T, "anything")
        await owner.subscribe(T, "bob-reserved")

    roles = {"alice": ["consume"], "bob": ["consume"]}
    talk(simulation, mode="Prefix", namespace=roles, subscriptions={"bob-reserved": ["alice"]})


def test_the_initial_subscription_of_a_producer_is_asked_for_too() -> None:
    async def simulation(world: World) -> None:
        for role, subscription, allowed in (
            ("producing", "", True),
            ("producing", "s", False),
            ("consuming", "s", False),
            ("both", "s", True),
            ("both", "reserved", False),
        ):
            client = await client_of(role)
            command = c.CommandProducer(T, 1, 2, initial_subscription_name=subscription)
            assert (await outcome(client, command))[0] is allowed, (role, subscription)
        assert set(world.machine.broker.service.topics[T].subscriptions) == {"s"}

    namespace: dict[str, list[str]] = {"producing": ["produce"], "both": ["produce", "consume"]}
    namespace["consuming"] = ["consume"]
    talk(simulation, namespace=namespace, subscriptions={"reserved": ["producing"]})


def test_a_proxy_needs_an_original_principal_that_is_allowed_too() -> None:
    """Both roles are asked, on every command; the pair is checked when it connects (rule 12.13)."""

    async def simulation(world: World) -> None:
        for original, allowed in (("producing", True), ("root", True), ("consuming", False), ("stranger", False)):
            client = await client_of("proxy", original)
            assert (await outcome(client, c.CommandProducer(T, 1, 2)))[0] is allowed, original
            assert not (await outcome(client, c.CommandSubscribe(T, "s", c.SubType.Shared, 1, 3)))[0], original
        pairs = (("proxy", None), ("proxy", "proxy"), ("producing", "root"), ("stranger", "producing"))
        for role, named in pairs:
            with pytest.raises(RawClientError, match="Invalid roles"):
                await client_of(role, named)

    talk(simulation, namespace={"proxy": ["produce"], "producing": ["produce"], "consuming": ["consume"]})


def test_transactions_belong_to_the_role_that_began_them() -> None:
    """Another role can neither add to it, nor send or acknowledge in it, nor end it; a superuser can (rule 9.7)."""

    async def simulation(world: World) -> None:
        alice, mallory, root = await client_of("alice"), await client_of("mallory"), await client_of("root")
        for client in (alice, mallory, root):
            await client.request(c.CommandTcClientConnectRequest(client.new_id(), 0), c.CommandTcClientConnectResponse)
        begun = await alice.request(c.CommandNewTxn(alice.new_id(), 60_000), c.CommandNewTxnResponse)
        txn = begun.txn
        assert txn is not None
        foreign = "Client (mallory) is neither the owner of the transaction (0,0) nor a super user"
        for made in (
            c.CommandAddPartitionToTxn(mallory.new_id(), txn, (T,)),
            c.CommandAddSubscriptionToTxn(mallory.new_id(), txn, (c.TxnSubscription(T, "s"),)),
            c.CommandEndTxn(mallory.new_id(), txn, c.TxnAction.COMMIT),
        ):
            _, answer = await outcome(mallory, made)
            assert (answer.error, answer.message) == (ServerError.TransactionNotFound, foreign)
        producer = await mallory.producer(T)
        with pytest.raises(RawClientError, match="is not open"):
            await producer.receipt(producer.send(b"mine", txn=txn))
        consumer = await mallory.subscribe(T, "s", initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        got = await consumer.receive()
        with pytest.raises(RawClientError, match="neither the owner"):
            await consumer.ack(got.message_id, txn=txn)
        assert world.machine.broker.service.topics[T].transactions is None, "nothing is reserved"
        (held,) = world.machine.broker.service.coordinator.open
        assert (held.owner, held.partitions, held.subscriptions) == ("alice", {}, {})
        other = TopicName.parse("persistent://public/default/foreign").fqn
        added = c.CommandAddPartitionToTxn(alice.new_id(), txn, (T, other))
        allowed, answer = await outcome(alice, added)
        assert not allowed and answer.txn == txn and not held.partitions, "nothing of it is added"
        named = c.CommandAddSubscriptionToTxn(
            alice.new_id(), txn, (c.TxnSubscription(T, "s"), c.TxnSubscription(T, "reserved"))
        )
        assert not (await outcome(alice, named))[0] and not held.subscriptions
        assert (await outcome(alice, c.CommandAddPartitionToTxn(alice.new_id(), txn, (T,))))[0]
        assert (await outcome(root, c.CommandEndTxn(root.new_id(), txn, c.TxnAction.ABORT)))[1].error is None

    roles = {"alice": ["produce", "consume"], "mallory": ["produce", "consume"]}
    talk(simulation, namespace=roles, subscriptions={"reserved": ["mallory"]})


def test_long_lists_are_judged_in_steps_and_refused_as_a_whole() -> None:
    async def simulation(world: World) -> None:
        alice, other = await client_of("alice"), await client_of("alice")
        begun = await alice.request(c.CommandNewTxn(alice.new_id(), 60_000), c.CommandNewTxnResponse)
        assert begun.txn is not None
        mine = tuple(f"persistent://acme/orders/x{number}" for number in range(5000))
        adding = asyncio.ensure_future(
            outcome(
                alice, c.CommandAddPartitionToTxn(alice.new_id(), begun.txn, (*mine, "persistent://public/default/x"))
            )
        )
        assert (await outcome(other, c.CommandLookupTopic(T, 1)))[0]
        allowed, answer = await adding
        assert not allowed and answer.txn == begun.txn
        (held,) = world.machine.broker.service.coordinator.open
        assert not held.partitions
        assert (await outcome(alice, c.CommandAddPartitionToTxn(alice.new_id(), begun.txn, mine)))[0]
        assert len(held.partitions) == len(mine)

    talk(simulation, namespace={"alice": ["produce"]})


def test_seek_and_unsubscribe_are_asked_for_again() -> None:
    async def simulation(world: World) -> None:
        alice = await client_of("alice")
        consumer = await alice.subscribe(T, "s")
        service = world.machine.broker.service
        service.authorizer.rules._grants.superusers = frozenset()  # type: ignore[union-attr]
        world.machine.broker.resources.namespaces.policies(SPACE)["auth_policies"] = {}  # nobody is told
        for command, text in (
            (c.CommandSeek(consumer.consumer_id, alice.new_id(), c.MessageIdData(0, 0)), "seek"),
            (c.CommandUnsubscribe(consumer.consumer_id, alice.new_id()), "unsubscribe"),
        ):
            allowed, answer = await outcome(alice, command)
            assert not allowed and answer.message == f"Client is not authorized to {text}"
        assert "s" in service.topics[T].subscriptions
        unknown = await outcome(alice, c.CommandUnsubscribe(999, alice.new_id()))
        assert unknown[1].message == "Consumer not found"

    talk(simulation, namespace={"alice": ["consume"]})
