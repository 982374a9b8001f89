"""The same commands one at a time and in pieces of any size: receipts, deliveries, backlogs and the disk are the same.

What comes together is read, stored and answered together (docs/decisions/077); nobody may notice it.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.rawclient import RawClient, RawConsumer
from tests.sim.world import SMALL, World, run_seed
from tests.support.command_mixtures import ONCE, PLAIN, SMALL_BYTES, SMALL_ONLY, Mixture
from tests.support.conversations import connected, stats

ROUNDS = 3
PERMITS = 100_000
OF_TOPICS = ("msgInCounter", "bytesInCounter", "storageSize", "backlogSize", "msgChunkPublished", "waitingPublishers")
OF_SUBSCRIPTIONS = ("msgBacklog", "backlogSize", "unackedMessages", "msgOutCounter", "bytesOutCounter", "msgDelayed")
OF_CONSUMERS = ("availablePermits", "unackedMessages", "msgOutCounter", "bytesOutCounter")
Found = dict[str, Any]


def delivered(message: c.CommandMessage) -> tuple[object, ...]:
    return message.message_id, message.redelivery_count, message.ack_set, message.entry


class Twin:
    """One of two runs of a mixture; ``alone``: each command is answered before the next is sent."""

    def __init__(self, seed: int, *, alone: bool) -> None:
        self.mixture = Mixture(seed)
        self.alone = alone
        self.found: Found = {}
        self._cuts = random.Random(seed)
        self._answers: list[tuple[object, ...]] = []
        self._delivered: dict[int, list[c.CommandMessage]] = {}

    def run(self, seed: int) -> Found:
        settings = Settings(
            acknowledgmentAtBatchIndexLevelEnabled=seed % 3 != 0, brokerDeduplicationEnabled=seed % 7 == 6
        )
        run_seed(self._simulation, seed, settings=settings, storage=SMALL if seed % 2 else StoreSettings())
        return self.found

    async def _simulation(self, world: World) -> None:
        world.network.weather = replace(world.network.weather, window_bytes=1 << 20)
        await world.boot()
        client = await connected()
        (link,) = world.network.links
        link.client.out._chunk_size = lambda available: available  # type: ignore[method-assign]  # each as it was sent
        await self._prepare(world, client)
        producers = [await client.producer(topic, name) for topic, name in self.mixture.producers]
        consumers = await self._consumers(client)
        client.on_command = self._heard
        for number in range(ROUNDS):
            sends = self.mixture.sends([one.producer_id for one in producers], (120, 5, 60)[number])
            frames = self.mixture.mixed(sends, self.mixture.acks(self._delivered))
            await self._say(client, frames)
            await self._note(world, f"round {number}")
        self._delivered = {one.consumer_id: [] for one in consumers}
        client.say(*(c.CommandRedeliverUnacknowledgedMessages(one.consumer_id, (), None) for one in consumers))
        await asyncio.sleep(5)
        await self._note(world, "again")
        client.on_command = None
        await world.restart()
        other = await connected()
        other.on_command = self._heard
        await self._consumers(other)
        await asyncio.sleep(5)
        opened = [(await other.producer(*one)).opened.last_sequence_id for one in self.mixture.producers]
        self.found["last sequence ids"] = opened
        await self._note(world, "after a restart")

    async def _prepare(self, world: World, client: RawClient) -> None:
        for topic in (PLAIN, ONCE, SMALL_ONLY):
            await (await client.subscribe(topic, "keeps all")).close()
        policies = world.machine.broker.resources.topic_policies
        await policies.update(TopicName.parse(ONCE), "deduplicationEnabled", True)
        await policies.update(TopicName.parse(SMALL_ONLY), "maxMessageSize", SMALL_BYTES)
        await asyncio.sleep(1)
        while client.new_id() < self.mixture.first_id:
            pass

    async def _consumers(self, client: RawClient) -> list[RawConsumer]:
        consumers = [await client.subscribe(*one) for one in self.mixture.subscriptions]
        self._delivered = {one.consumer_id: [] for one in consumers}
        for one in consumers:
            one.flow(PERMITS)
        return consumers

    async def _say(self, client: RawClient, frames: list[bytes]) -> None:
        for frame in self._pieces(frames):
            client.say_bytes(frame)
            if self.alone:
                client.say_bytes(codec.encode(c.CommandPing()))
                await client.hear(c.CommandPong)
            elif self._cuts.random() < 0.5:
                await asyncio.sleep(self._cuts.choice((0, 0.001, 0.02)))
        await asyncio.sleep(5)
        assert not client.lost.done()
        while client.heard(c.CommandPong):
            await client.hear(c.CommandPong)

    def _pieces(self, frames: list[bytes]) -> list[bytes]:
        if self.alone:
            return frames
        data = b"".join(frames)
        ends = [0]
        while ends[-1] < len(data):
            ends.append(ends[-1] + self._cuts.randint(1, self._cuts.choice((10, 3000, 30_000, 60_000))))
        return [data[start:stop] for start, stop in pairwise(ends)]

    def _heard(self, command: c.Command) -> None:
        match command:
            case c.CommandMessage():
                self._delivered[command.consumer_id].append(command)
            case c.CommandSendReceipt(message_id=c.MessageIdData(ledger=ledger)) if 0 <= ledger < 1 << 60:
                self._answers.append(("receipt", command))
            case c.CommandSendReceipt():
                self._repeated(command)
            case c.CommandSendError() if "Cannot determine" in command.message:
                self._repeated(command)
            case c.CommandSendError() | c.CommandAckResponse():
                self._answers.append((type(command).__name__, command))
            case _:
                pass

    def _repeated(self, answer: c.CommandSendReceipt | c.CommandSendError) -> None:
        """Whether one that is repeated is refused or has a receipt depends on whether the first is on the disk yet."""
        self._answers.append(("repeated", answer.producer_id, answer.sequence_id))

    async def _note(self, world: World, when: str) -> None:
        world.audit()
        self.found[f"answers, {when}"] = sorted(map(repr, self._answers))
        for consumer, messages in self._delivered.items():
            self.found[f"delivered to {consumer}, {when}"] = [delivered(one) for one in messages]
        for topic in (PLAIN, ONCE, SMALL_ONLY):
            shown = await stats(world, topic)
            self.found[f"{topic}, {when}"] = {name: shown[name] for name in OF_TOPICS}
            log = world.machine.broker.service.topics[topic]
            for name, one in shown["subscriptions"].items():
                cursor = log.subscriptions[name].cursor
                self.found[f"{topic} {name}, {when}"] = (
                    [one[what] for what in OF_SUBSCRIPTIONS],
                    [[member[what] for what in OF_CONSUMERS] for member in one["consumers"]],
                    cursor.backlog(),
                    list(cursor.acknowledged_ranges()),
                )


@pytest.mark.parametrize("seed", range(8))
def test_what_comes_together_does_the_same(seed: int) -> None:
    alone, together = Twin(seed, alone=True).run(seed), Twin(seed, alone=False).run(seed)
    assert alone.keys() == together.keys()
    for name, found in alone.items():
        assert together[name] == found, name
