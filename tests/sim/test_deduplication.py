"""Deduplicated once: what a producer sends again after whatever happened stands in the topic exactly once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from magnetar.broker.topic.publish.sequence_ids import SequenceIds, Verdict
from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.storage.ledgers.feature_state import FeatureState, StateChange
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.faultfiles import Operation
from magnetar.testing.rawclient import RawClient, RawClientError, RawProducer, make_entry
from tests.sim.contents import contents, keep
from tests.sim.world import SMALL, T, World, caught, run_seeds

ON = Settings(brokerDeduplicationEnabled=True)
OFTEN = replace(SMALL, segment_bytes=1500)
"""A checkpoint every few groups."""
WRONG = (
    "an overlapping batch is dropped",
    "a returning producer is told what is in flight",
    "a failed write does not take the ids back",
    "nothing reaches the disk",
    "changes are not replayed",
)
FAILING: tuple[Operation, ...] = ("append", "sync")
TROUBLE = (ConnectionError, RawClientError, TimeoutError)


class Resender:
    """Sends values 0, 1, ... with these sequence ids, and again whatever has no receipt when a connection broke."""

    def __init__(self, world: World, name: str, total: int) -> None:
        self.world = world
        self.name = name
        self.total = total
        self.receipted = -1
        """Everything up to here has a receipt (they come in order), or was there when the producer came back."""
        self.resent = 0
        self.duplicates = 0
        self.unknown = 0
        self._sent = -1
        self._over = False

    async def run(self) -> None:
        while self.receipted < self.total - 1:
            try:
                await self._life()
            except TROUBLE:
                await asyncio.sleep(self.world.rng.uniform(0.02, 0.2))

    async def _life(self) -> None:
        client = await RawClient.open(HOST, PORT, patience_s=8.0)
        try:
            await client.connect()
            await self._publish(client, await client.producer(T, self.name))
        finally:
            client.on_command = None
            client.transport.close()

    async def _publish(self, client: RawClient, producer: RawProducer) -> None:
        rng = self.world.rng
        self.receipted = max(self.receipted, producer.opened.last_sequence_id)
        self._over = False
        client.on_command = self._heard
        at = self.receipted + 1
        while self.receipted < self.total - 1 and not self._over and not client.lost.done():
            for _ in range(rng.randint(1, 8)):
                if at < self.total and at - self.receipted < 30:
                    self.resent += at <= self._sent
                    self._sent = max(self._sent, at)
                    self._say(client, producer.producer_id, at)
                    if rng.random() < 0.05:
                        self._say(client, producer.producer_id, rng.randint(0, at))
                    at += 1
            await asyncio.sleep(rng.uniform(0.0, 0.01))
            if rng.random() < 0.01:
                break

    def _say(self, client: RawClient, producer_id: int, value: int) -> None:
        entry = make_entry(f"{self.name}-{value}".encode(), producer=self.name, sequence_id=value)
        client.say(c.CommandSend(producer_id, value, 1, None, False, None, False, None, entry))

    def _heard(self, command: c.Command) -> None:
        if isinstance(command, c.CommandSendReceipt) and not self._over:
            assert command.message_id is not None
            self.duplicates += command.message_id.entry == -1
            if command.message_id.entry != -1:
                assert command.sequence_id <= self.receipted + 1, "a receipt out of order"
            self.receipted = max(self.receipted, command.sequence_id)
        elif isinstance(command, c.CommandSendError):
            assert command.error is ServerError.PersistenceError, command
            self.unknown += "Cannot determine" in command.message
            self._over = True
        elif isinstance(command, c.CommandCloseProducer):
            self._over = True


async def resending(world: World) -> None:
    """Crashes, power failures, restarts, unloads, failing writes, cut connections."""
    world.loop.disk_delay_s = (0.0005, 0.06)  # slow enough to come back while something is in flight
    await world.boot()
    await keep(T)
    rng = world.rng
    senders = [Resender(world, name, 120) for name in ("p", "q")]
    world.start(*(sender.run() for sender in senders))
    for _ in range(10):
        await asyncio.sleep(rng.uniform(0.02, 0.3))
        for kind in rng.sample(("crash", "disk", "cut", "unload", "restart"), rng.choice((1, 1, 2))):
            await harm(world, kind)
    for _ in range(60):
        if all(sender.receipted == 119 for sender in senders):
            break
        await asyncio.sleep(1)
    world.check_tasks()
    found = await contents(world, T)
    for sender in senders:
        own = [text for text in found if text.startswith(sender.name)]
        assert own == [f"{sender.name}-{value}" for value in range(120)], sender.name
    resent.append(sum(sender.resent for sender in senders))
    duplicates.append(sum(sender.duplicates for sender in senders))


async def harm(world: World, kind: str) -> None:
    rng = world.rng
    if kind == "crash":
        await world.crash()
    elif kind == "restart":
        await world.restart()
    elif kind == "disk":
        world.machine.files.fail(rng.choice(FAILING), skip=rng.randint(0, 2), times=rng.randint(1, 2))
    elif kind == "unload":
        if T in world.machine.broker.service.topics:
            world.machine.broker.service.unload(TopicName.parse(T))
    else:
        for link in world.network.links[-2:]:
            link.cut()


class Rebatcher:
    """Sends values in batches that are cut anew in each life, and does not ask first what the broker has.

    A batch that the broker has in part must be refused; then, and only then, it is asked and sent from there.
    """

    def __init__(self, world: World, total: int) -> None:
        self.world = world
        self.total = total
        self.overlaps = 0
        self._at = 0

    async def run(self) -> None:
        while self._at < self.total:
            try:
                await self._life()
            except TROUBLE as error:
                if isinstance(error, RawClientError) and "begins with messages that are stored" in str(error):
                    self.overlaps += 1
                    self._at = int(str(error).partition("stored up to ")[2].partition(";")[0]) + 1
                await asyncio.sleep(self.world.rng.uniform(0.02, 0.2))

    async def _life(self) -> None:
        client = await RawClient.open(HOST, PORT, patience_s=8.0)
        try:
            await client.connect()
            producer = await client.producer(T, "r")
            while self._at < self.total:
                first = self._at
                last = min(first + self.world.rng.randint(0, 4), self.total - 1)
                text = " ".join(f"r-{value}" for value in range(first, last + 1))
                entry = make_entry(text.encode(), producer="r", sequence_id=first)
                client.say(
                    c.CommandSend(producer.producer_id, first, last - first + 1, last, False, None, False, None, entry)
                )
                await producer.receipt(first)
                self._at = last + 1
        finally:
            client.transport.close()


async def rebatching(world: World) -> None:
    """Connections are cut between an entry and its receipt, and the broker crashes."""
    world.loop.disk_delay_s = (0.0005, 0.06)
    await world.boot()
    await keep(T)
    rng = world.rng
    sender = Rebatcher(world, 150)
    world.start(sender.run())
    for _ in range(30):
        await asyncio.sleep(rng.uniform(0.02, 0.2))
        await harm(world, rng.choice(("cut", "cut", "cut", "crash", "disk")))
    for _ in range(60):
        if sender._at >= sender.total:
            break
        await asyncio.sleep(1)
    world.check_tasks()
    found = " ".join(await contents(world, T)).split()
    assert found == [f"r-{value}" for value in range(sender.total)]
    overlaps.append(sender.overlaps)


overlaps: list[int] = []
resent: list[int] = []
duplicates: list[int] = []


def test_what_is_sent_again_is_stored_once() -> None:
    resent.clear()
    duplicates.clear()
    run_seeds(resending, 25, settings=ON, storage=OFTEN)
    assert sum(resent) > 20
    assert sum(duplicates) > 20


def test_batches_that_are_cut_otherwise_lose_nothing() -> None:
    overlaps.clear()
    run_seeds(rebatching, 12, settings=ON, storage=OFTEN)
    assert sum(overlaps) > 10


def wrong_builds(patch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """Ways to break the promise."""
    changes = SequenceIds.changes

    def nothing_said(self: SequenceIds) -> StateChange | None:
        return None if changes(self) is None else StateChange(b"")

    def report_pushed() -> None:
        patch.setattr(SequenceIds, "settled", lambda self, name: True)
        patch.setattr(SequenceIds, "last", lambda self, name: self._pushed.get(name, -1))

    def drop_overlaps() -> None:
        judge = SequenceIds.judge

        def wrong(self: SequenceIds, name: str, sequence_id: int, highest: int) -> Verdict:
            verdict = judge(self, name, sequence_id, highest)
            return Verdict.DUPLICATE if verdict is Verdict.OVERLAP else verdict

        patch.setattr(SequenceIds, "judge", wrong)

    return {
        "an overlapping batch is dropped": drop_overlaps,
        "a returning producer is told what is in flight": report_pushed,
        "a failed write does not take the ids back": lambda: patch.setattr(SequenceIds, "lost", SequenceIds.durable),
        "nothing reaches the disk": lambda: patch.setattr(SequenceIds, "changes", nothing_said),
        "changes are not replayed": lambda: patch.setattr(FeatureState, "replay", lambda self, kind, data: None),
    }


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_build_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_builds(monkeypatch)[wrong]()
    scenario = rebatching if "batch" in wrong else resending
    caught(scenario, lambda broker: None, settings=ON, storage=OFTEN)
