"""``__change_events`` says what the metadata store holds, after any crash (rule 8.1)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from magnetar.broker.policies.policy_events import PolicyEvents, PolicyEventState
from magnetar.metadata.topic_policies import TopicPolicyRecords
from magnetar.model.names import NamespaceName, TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.entries import metadata_of, payload_of
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.world import World, caught, run_seeds

NAMESPACE = NamespaceName.parse("public/default")
EVENTS = NAMESPACE.topic("__change_events").fqn


async def published() -> dict[str, Any]:
    """The last word on every key, as a reader sees it."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    reader = await client.subscribe(EVENTS, "r", initial_position=c.InitialPosition.Earliest, durable=False)
    last = (await reader.last_message_id()).last_message_id
    reader.flow(10_000)
    found: dict[str, Any] = {}
    while True:
        message = await reader.receive()
        metadata = metadata_of(message.entry)
        assert metadata.partition_key is not None
        if metadata.null_value:
            found.pop(metadata.partition_key, None)
        else:
            policies = json.loads(payload_of(message.entry))["topicPoliciesEvent"]["policies"]
            assert policies.pop("isGlobal") == metadata.partition_key.startswith("__G__")
            found[metadata.partition_key] = policies
        if (message.message_id.ledger, message.message_id.entry) == (last.ledger, last.entry):
            break
    client.transport.close()
    return found


def held(records: TopicPolicyRecords) -> dict[str, Any]:
    """Return the policies that the metadata store holds, under the keys of the events topic."""
    topics = list(records.topics(NAMESPACE))
    local = {topic.fqn: records.get(topic) for topic in topics}
    everywhere = {f"__G__{topic.fqn}": records.get(topic, is_global=True) for topic in topics}
    return {key: policies for key, policies in {**local, **everywhere}.items() if policies}


async def changing(world: World) -> None:
    """Policies of a few topics are set and removed while the broker crashes."""
    await world.boot()
    rng = world.rng
    names = [TopicName.parse(f"persistent://public/default/t{i}") for i in range(4)]
    for _ in range(4):
        for _ in range(rng.randint(1, 6)):
            records = world.machine.broker.resources.topic_policies
            if rng.random() < 0.2:
                await records.delete(rng.choice(names))
            else:
                value = rng.choice((None, 1, 2, 3))
                await records.update(rng.choice(names), "maxProducers", value, is_global=rng.random() < 0.3)
            await asyncio.sleep(rng.choice((0.0, 0.002, 0.05)))
        await (world.crash() if rng.random() < 0.8 else world.restart())
        await asyncio.sleep(1)
        records = world.machine.broker.resources.topic_policies
        if EVENTS in world.machine.broker.store:
            assert await published() == held(records)
        else:
            assert not held(records)


def test_the_last_word_is_what_holds() -> None:
    run_seeds(changing, 25)


def test_events_that_are_not_made_up_for_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PolicyEvents, "start", lambda self: None)
    monkeypatch.setattr(
        PolicyEventState, "incomplete", property(lambda self: False, lambda self, value: None), raising=False
    )
    caught(changing, lambda broker: None)


def test_digests_ahead_of_their_events_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation notices digests and events that are not in one block."""

    def early(self: PolicyEventState, op: Any) -> None:
        self.settled.apply(op)

    monkeypatch.setattr(PolicyEventState, "note", early)
    monkeypatch.setattr(PolicyEventState, "lost", lambda self: None)
    caught(changing, lambda broker: None)
