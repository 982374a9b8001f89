"""One exclusive producer: epochs only grow, and what stands in the topic was sent by one owner after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.publish.topic_epoch import LogEpoch
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError, make_entry
from tests.sim.contents import contents, keep
from tests.sim.world import T, World, caught, run_seeds

MODES = (
    c.ProducerAccessMode.Exclusive,
    c.ProducerAccessMode.ExclusiveWithFencing,
    c.ProducerAccessMode.WaitForExclusive,
)
TROUBLE = (ConnectionError, RawClientError, TimeoutError)


class Leader:
    """Wants to own the topic, again and again; sends ``epoch name number`` while it believes that it does."""

    def __init__(self, world: World, name: str, owned: list[tuple[int, str]]) -> None:
        self.world = world
        self.name = name
        self.owned = owned
        """The producers that became owner anew, in the order in which they heard of it."""
        self.receipted: list[str] = []
        self.refused: set[ServerError] = set()
        self.stopped = False
        self._sent = 0
        self._epoch: int | None = None

    async def run(self) -> None:
        rng = self.world.rng
        while not self.stopped:
            try:
                await self._life()
            except RawClientError as error:
                self.refused.add(error.code)
                if error.code is ServerError.ProducerFenced:
                    self._epoch = None  # as an application that makes a new producer
                await asyncio.sleep(rng.uniform(0.01, 0.2))
            except TROUBLE:
                await asyncio.sleep(rng.uniform(0.01, 0.2))

    async def _life(self) -> None:
        rng = self.world.rng
        client = await RawClient.open(HOST, PORT, patience_s=8.0)
        try:
            await client.connect()
            command = c.CommandProducer(
                T, 1, client.new_id(), self.name, producer_access_mode=rng.choice(MODES), topic_epoch=self._epoch
            )
            answer = await client.request(command, c.CommandProducerSuccess)
            if not answer.producer_ready:
                answer = await self._promoted(client, command.request_id)
            assert answer.topic_epoch is not None
            if answer.topic_epoch != self._epoch:
                self.owned.append((answer.topic_epoch, self.name))
            self._epoch = answer.topic_epoch
            await self._publish(client)
        finally:
            client.transport.close()

    async def _publish(self, client: RawClient) -> None:
        rng = self.world.rng
        for _ in range(rng.randint(1, 12)):
            value = f"{self._epoch} {self.name} {self._sent}"
            entry = make_entry(value.encode(), producer=self.name, sequence_id=self._sent)
            client.say(c.CommandSend(1, self._sent, 1, None, False, None, False, None, entry))
            self._sent += 1
            if rng.random() < 0.7:
                receipt = await client.hear(
                    c.CommandSendReceipt, where=lambda answer: answer.sequence_id == self._sent - 1
                )
                assert receipt.producer_id == 1
                self.receipted.append(value)
            await asyncio.sleep(rng.uniform(0.0, 0.02))
        if rng.random() < 0.5:
            await client.request(c.CommandCloseProducer(1, client.new_id()), c.CommandSuccess)
            self._epoch = None

    async def _promoted(self, client: RawClient, request_id: int) -> c.CommandProducerSuccess:
        """The second answer to who waits; or it loses patience."""
        async with asyncio.timeout(self.world.rng.uniform(0.1, 2.0)):
            return await client.hear(c.CommandProducerSuccess, where=lambda answer: answer.request_id == request_id)


async def owners(world: World) -> None:
    """Leaders come, go, fence each other out, fall silent; crashes, restarts, unloads, failing writes, cuts."""
    await world.boot()
    await keep(T)
    rng = world.rng
    owned: list[tuple[int, str]] = []
    leaders = [Leader(world, name, owned) for name in ("a", "b", "c")]
    world.start(*(leader.run() for leader in leaders))
    for _ in range(10):
        await asyncio.sleep(rng.uniform(0.1, 0.5))
        kind = rng.choice(("crash", "crash", "disk", "unload", "cut", "restart"))
        if kind == "crash":
            await world.crash()
        elif kind == "restart":
            await world.restart()
        elif kind == "disk":
            world.machine.files.fail("append", skip=rng.randint(0, 2))
        elif kind == "unload":
            if T in world.machine.broker.service.topics:
                world.machine.broker.service.unload(TopicName.parse(T))
        else:
            for link in world.network.links[-2:]:
                link.cut()
    for leader in leaders:
        leader.stopped = True
    await asyncio.sleep(30)
    world.check_tasks()
    epochs = [epoch for epoch, _ in owned]
    assert len(set(epochs)) == len(epochs), "an epoch was given twice"
    found = await contents(world, T)
    stamps = [(int(epoch), name) for epoch, name, _ in map(str.split, found)]
    assert all(before[0] <= after[0] for before, after in pairwise(stamps)), "an old owner published"
    assert len({epoch for epoch, _ in stamps}) == len(set(stamps)), "an epoch had two owners"
    for leader in leaders:
        assert set(leader.receipted) <= set(found)
    counts.append((len(epochs), sum(ServerError.ProducerFenced in leader.refused for leader in leaders)))


counts: list[tuple[int, int]] = []


def test_owners_follow_each_other() -> None:
    counts.clear()
    run_seeds(owners, 15)
    assert sum(count for count, _ in counts) > 250
    assert sum(fenced for _, fenced in counts) > 15


def wrong_builds(patch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """Ways to break the promise."""

    def fence_in_name_only(self: Producers) -> None:
        self._by_name.clear()
        self._exclusive = None

    class Forgetful(LogEpoch):
        def move(self, epoch: int, done: Callable[[], None]) -> None:
            self._log.properties = {**self._log.properties, "pulsar.topic.epoch": str(epoch)}
            done()

    return {
        "the fenced one goes on": lambda: patch.setattr(Producers, "_fence_out", fence_in_name_only),
        "the epoch is told before it is durable": lambda: patch.setattr(LogEpoch, "move", Forgetful.move),
        "whoever comes back is let in": lambda: patch.setattr(Producers, "_check_epoch", lambda self, epoch: None),
    }


WRONG = (
    "the fenced one goes on",
    "the epoch is told before it is durable",
    "whoever comes back is let in",
)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_build_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_builds(monkeypatch)[wrong]()
    caught(owners, lambda broker: None)
