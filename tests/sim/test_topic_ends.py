"""What an administrator was answered about a topic holds after any crash: policies, termination, deletion."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from magnetar.broker.topic.cleanup.termination import Termination
from magnetar.metadata.store import RecordWrite
from magnetar.metadata.topic_policies import TopicPolicyRecords
from magnetar.model.errors import MagnetarError, TopicTerminatedError
from magnetar.model.names import TopicName
from magnetar.protocol.commands import InitialPosition
from magnetar.storage.store import LedgerStore
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.sim.clients import Publisher
from tests.sim.world import World, caught, ports_of, run_seeds
from tests.support.late_metadata import late_metadata

LOST = (ConnectionError, RawClientError, TimeoutError, MagnetarError, asyncio.CancelledError)


async def terminated(world: World, name: TopicName) -> bool:
    """Return whether the topic is terminated, by the answer to a new producer."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    try:
        await client.producer(name.fqn)
    except RawClientError as refused:
        assert refused.code is TopicTerminatedError.code, refused
        return True
    finally:
        client.transport.close()
    return False


async def retained(name: TopicName) -> int:
    """Messages a new reader sees at once."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    reader = await client.subscribe(name.fqn, "r", initial_position=InitialPosition.Earliest, durable=False)
    last = (await reader.last_message_id()).last_message_id
    client.transport.close()
    return last.entry + 1 if last.entry >= 0 else 0


async def ends(world: World) -> None:
    """Three topics under load: one is terminated, one deleted, one gets policies; the broker crashes meanwhile."""
    await world.boot()
    rng = world.rng
    names = {what: TopicName.parse(f"persistent://public/default/{what}") for what in ("end", "gone", "told")}
    for round_ in range(3):
        for name in names.values():
            world.start(Publisher(world, f"p{round_}", name.fqn).run(20))
        await asyncio.sleep(rng.uniform(0.05, 0.6))
        ports, deleted = ports_of(world), names["gone"]
        existed = ports.topics.topic_exists(deleted)
        policies = world.machine.broker.resources.topic_policies
        await policies.update(names["told"], "maxProducers", round_ + 1)
        await policies.update(deleted, "messageTTL", 7)
        acts: dict[str, asyncio.Task[Any]] = {}
        if existed:
            acts["gone"] = world.loop.create_task(ports.topics.delete_topic(deleted, force=True))
        if ports.topics.topic_exists(names["end"]):
            acts["end"] = world.loop.create_task(ports.operations.terminate(names["end"]))
        await asyncio.sleep(rng.choice((0.0, 0.001, 0.004, 0.05)))
        answered = {what for what, task in acts.items() if task.done() and task.exception() is None}
        for task in world.tasks:
            task.cancel()
        await (world.crash() if rng.random() < 0.8 else world.restart())
        for task in acts.values():
            task.cancel()
            with contextlib.suppress(*LOST):
                await task
        world.tasks.clear()
        await holds(world, names, answered, round_)


async def holds(world: World, names: dict[str, TopicName], answered: set[str], round_: int) -> None:
    """Everything that was answered."""
    resources, service = world.machine.broker.resources, world.machine.broker.service
    assert resources.topic_policies.get(names["told"]) == {"maxProducers": round_ + 1}
    if "gone" in answered:
        # clients that came back after the answer may have made it anew, but nothing of the old one is left
        assert resources.topic_policies.get(names["gone"]) == {}
        assert names["gone"].fqn not in service.store or await retained(names["gone"]) == 0
    if "end" in answered:
        assert await terminated(world, names["end"])
        before = await retained(names["end"])
        await asyncio.sleep(1)
        assert await retained(names["end"]) == before


def test_with_a_metadata_store_that_answers_late() -> None:
    """A topic whose deletion waits for the metadata store is deleted once and whole (rule 4.7.2)."""
    run_seeds(ends, 6, tamper=late_metadata)


def test_what_was_answered_holds() -> None:
    run_seeds(ends, 25)


def test_termination_that_is_only_remembered_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Termination, done: Any, failed: Any) -> None:
        self._subscriptions.terminated = True
        done()

    monkeypatch.setattr(Termination, "terminate", forgetful)
    caught(ends, lambda broker: None)


def test_deletion_that_is_not_written_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: LedgerStore, name: str, done: Any = None) -> None:
        self._logs.pop(name)

    monkeypatch.setattr(LedgerStore, "delete_log", forgetful)
    caught(ends, lambda broker: None)


def test_policies_that_outlive_their_topic_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: TopicPolicyRecords, topic: TopicName) -> list[RecordWrite]:
        return []

    monkeypatch.setattr(TopicPolicyRecords, "without", forgetful)
    caught(ends, lambda broker: None)
