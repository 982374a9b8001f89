"""A role without grants sees nothing and changes nothing, whatever it says.

It sends every command with names and ids that exist and with boundary values in every field. In the end everything
stands as before, it holds nothing open, and it has heard nothing but refusals. Each command's check is left out once:
that is noticed.
"""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import Any

import pytest

from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS
from magnetar.broker.connection import listener
from magnetar.broker.connection.handlers import producer_commands, subscribe_command, topic_list_watch
from magnetar.broker.connection.handlers.command_table import GUARDED_HANDLERS, HANDLERS
from magnetar.model.errors import MagnetarError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from magnetar.protocol.commands.names import name_of
from magnetar.testing.rawclient import RawClient
from tests.sim.hostile_commands import COMMANDS, Forge
from tests.sim.world import T, World, caught, run_seeds
from tests.support.roles import SETTINGS, believing, client_of, grant

PARTITIONED = "persistent://public/default/p"
NEW = "persistent://public/default/new"
FRAMES = 300
SILENT = ("connect", "authResponse")
"""Commands that say who the client is."""
FRAMES_OF_ONE = 300
"""Of a command whose check is left out."""
CONTENTS = (
    c.CommandMessage,
    c.CommandProducerSuccess,
    c.CommandGetTopicsOfNamespaceResponse,
    c.CommandWatchTopicListSuccess,
    c.CommandWatchTopicUpdate,
    c.CommandGetLastMessageIdResponse,
)
ANSWERS = (
    c.CommandLookupTopicResponse,
    c.CommandPartitionedTopicMetadataResponse,
    c.CommandGetSchemaResponse,
    c.CommandGetOrCreateSchemaResponse,
    c.CommandEndTxnOnPartitionResponse,
    c.CommandEndTxnOnSubscriptionResponse,
    c.CommandConsumerStatsResponse,
)
"""Answers that have to carry an error."""


_FIELDS = {
    c.CommandLookupTopic: "lookupTopic",
    c.CommandPartitionedTopicMetadata: "partitionMetadata",
    **{
        kind: name_of(kind)[0].lower() + name_of(kind)[1:]
        for kind, row in COMMAND_PERMISSIONS.items()
        if row.accesses is not None and kind not in (c.CommandLookupTopic, c.CommandPartitionedTopicMetadata)
    },
    c.CommandSeek: "subscribe",
    c.CommandUnsubscribe: "subscribe",
}
"""The field of a command that asks, in the protocol's definition."""


async def furnish() -> None:
    """Topics with messages, a subscription, a schema and an open transaction of alice's."""
    alice = await client_of("alice")
    schema = c.Schema("s", b'"string"', SchemaType.AVRO)
    producer = await alice.producer(T, schema=schema)
    for number in range(5):
        await producer.publish(b"%d" % number)
    await alice.subscribe(T, "s", c.SubType.Shared, initial_position=c.InitialPosition.Earliest)
    begun = await alice.request(c.CommandNewTxn(alice.new_id(), 3_600_000), c.CommandNewTxnResponse)
    assert begun.txn is not None
    await alice.request(c.CommandAddPartitionToTxn(alice.new_id(), begun.txn, (T,)), c.CommandAddPartitionToTxnResponse)


def sight(world: World) -> dict[str, Any]:
    """Everything that a command could change."""
    service = world.machine.broker.service
    space = NamespaceName.parse("public/default")
    seen: dict[str, Any] = {
        "topics": service.names_in(space),
        "partitions": [service.resources.partitioned.count(TopicName.parse(name)) for name in (T, PARTITIONED, NEW)],
        "schemas": [len(service.schemas.versions(TopicName.parse(name))) for name in (T, PARTITIONED, NEW)],
        "transactions": [
            (one.id, one.owner, one.status, tuple(one.partitions), tuple(one.subscriptions))
            for one in service.coordinator.open
            if one.owner == "alice"
        ],
    }
    for topic in service.topics.values():
        seen[topic.name.fqn] = topic.log.end, len(topic.producers)
        for name, subscription in topic.subscriptions.items():
            seen[f"{topic.name.fqn} {name}"] = subscription.cursor.backlog(), len(subscription.consumers)
    return seen


async def says_everything(world: World) -> None:
    """Mallory says each command in turn."""
    names = [name for name in COMMANDS if name not in SILENT]
    await says(world, [names[number % len(names)] for number in range(FRAMES)])


async def says(world: World, names: list[str]) -> None:
    """Mallory talks; alice's things are looked at before and after."""
    await world.boot()
    resources = world.machine.broker.resources
    await grant(resources, namespace={"alice": ["produce", "consume"], "mallory": ["functions", "packages"]})
    await resources.partitioned.create(TopicName.parse(PARTITIONED), 2)
    await furnish()
    before = sight(world)
    forge = Forge(
        world.rng,
        {
            "topic": [T, PARTITIONED, f"{PARTITIONED}-partition-0", NEW],
            "partitions": [T, NEW],
            "namespace": ["public/default", "pulsar/system"],
            "pattern": [".*"],
            "subscription": ["s", "new"],
            "txnidleastbits": [*range(6)],
            "txnidmostbits": [0],
            "requestid": [1, 2, 3],
            "consumerid": [1, 2, 3],
            "producerid": [1, 2, 3],
            "watcherid": [1, 2],
            "tcid": [0],
            "principal": ["alice", "root"],
        },
    )
    mallory: RawClient | None = None
    for name in names:
        if mallory is None or mallory.lost.done():
            mallory = await client_of("mallory")
            await mallory.request(c.CommandNewTxn(mallory.new_id(), 3_600_000), c.CommandNewTxnResponse)
            mallory.on_command = refusals_only
        frame = forge.command(name)
        mallory.say_bytes(forge.with_entry(frame, forge.entry()) if name == "send" else frame)
        await asyncio.sleep(0.005)
        for one in world.machine.broker.connections:
            if one.session.caller.role == "mallory":
                assert not one.session.producers and not one.session.consumers and not one.session.watches
        for transaction in world.machine.broker.service.coordinator.open:
            assert transaction.owner == "alice" or (not transaction.partitions and not transaction.subscriptions)
    await asyncio.sleep(1)
    assert sight(world) == before


def refusals_only(command: c.Command) -> None:
    """Raise for anything that tells mallory more than that it may not."""
    if isinstance(command, CONTENTS):
        raise AssertionError(f"mallory was told {command}")
    if isinstance(command, ANSWERS) and command.error is None:
        raise AssertionError(f"mallory was answered {command}")


def test_a_role_without_grants_sees_and_changes_nothing() -> None:
    run_seeds(says_everything, 6, tamper=believing, settings=SETTINGS)


@pytest.mark.parametrize(
    "kind", [kind for kind, row in COMMAND_PERMISSIONS.items() if row.accesses is not None], ids=name_of
)
def test_a_check_that_is_left_out_is_noticed(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of SEEK and UNSUBSCRIBE alone the check is the second one: there is no consumer without that of SUBSCRIBE. What
    is opened is checked twice."""
    for module in (producer_commands, subscribe_command, topic_list_watch):
        monkeypatch.setattr(module, "still_allowed", lambda session, command: True)
    left_out = {kind, c.CommandSubscribe} if kind in (c.CommandSeek, c.CommandUnsubscribe) else {kind}
    table = {one: HANDLERS[one] if one in left_out else handler for one, handler in GUARDED_HANDLERS.items()}
    monkeypatch.setattr(listener, "GUARDED_HANDLERS", MappingProxyType(table))
    said = _FIELDS[kind]

    async def says_it(world: World) -> None:
        await says(world, [said] * FRAMES_OF_ONE)

    caught(says_it, believing, settings=SETTINGS)


def test_transactions_that_belong_to_nobody_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from magnetar.broker.connection.handlers import transaction_commands

    monkeypatch.setattr(transaction_commands, "owner_of", lambda session: None)
    caught(says_everything, believing, settings=SETTINGS)


def test_refusals_are_errors() -> None:
    with pytest.raises(AssertionError):
        refusals_only(c.CommandGetSchemaResponse(1))
    refusals_only(c.CommandGetSchemaResponse(1, MagnetarError.code, "no"))
