"""Statistics of a whole broker against a recount of what its clients saw (rules 5.10, 11.4.11, 4.2.6).

Random publishing, permits, acknowledgements, redelivery and leaving on three subscriptions; the recount knows only
frames. A request and its answer on each connection make sure that everything sent before has arrived.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from magnetar.model.hashing import ring_slot
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.rawclient import RawClient, RawConsumer, RawProducer, make_entry
from tests.support.real_broker import TOPIC, RealBroker, real_broker

NAME = "persistent://public/default/t"
KINDS = {"alone": c.SubType.Exclusive, "shared": c.SubType.Shared, "keys": c.SubType.Key_Shared}
Place = tuple[int, int]


class Member:
    """One consumer and what it was seen to receive."""

    def __init__(self, client: RawClient, consumer: RawConsumer, name: str) -> None:
        self.client = client
        self.consumer = consumer
        self.name = name
        self.permits = 0
        self.messages = 0
        self.held: dict[Place, int] = {}


class Recount:
    """Counts the frames of all clients, apart from the broker."""

    def __init__(self, broker: RealBroker, rng: Random) -> None:
        self.broker = broker
        self.rng = rng
        self.entries: dict[Place, tuple[int, int]] = {}
        """Messages and bytes of each entry, in order of publication."""
        self.members: dict[str, list[Member]] = {name: [] for name in KINDS}
        self.delayed: set[Place] = set()
        """Entries that are due in an hour."""
        self.slots: dict[Place, int] = {}
        """Hash of the key, for entries whose place is known."""
        self.acked: dict[str, set[Place]] = {name: set() for name in KINDS}
        self.out: dict[str, Counter[str]] = {name: Counter() for name in KINDS}
        self.producers: list[RawProducer] = []

    async def open(self) -> None:
        for name in ("p", "q"):
            client = await self.broker.client()
            self.producers.append(await client.producer(NAME, name))
        for name, number in (("alone", 1), ("shared", 2), ("keys", 2)):
            for _ in range(number):
                await self.join(name)

    async def join(self, subscription: str) -> None:
        client = await self.broker.client()
        name = f"{subscription}-{self.rng.getrandbits(32)}"
        consumer = await client.subscribe(NAME, subscription, KINDS[subscription], consumer_name=name)
        self.members[subscription].append(Member(client, consumer, name))
        await self.settle()

    async def settle(self) -> None:
        """Process the frames that have arrived."""
        for subscription, members in self.members.items():
            for member in members:
                await member.client.lookup(NAME)
                while member.client.heard(c.CommandMessage):
                    self.arrived(subscription, member, await member.consumer.receive())

    def arrived(self, subscription: str, member: Member, message: c.CommandMessage) -> None:
        place = (message.message_id.ledger, message.message_id.entry)
        messages, size = self.entries[place]
        assert len(message.entry) == size
        assert place not in self.acked[subscription]
        assert subscription == "alone" or place not in self.delayed
        member.held[place] = messages
        member.messages += messages
        member.permits -= messages
        self.out[subscription] += Counter(messages=messages, bytes=size)

    # steps

    async def publish(self) -> None:
        producer = self.rng.choice(self.producers)
        payload, count = b"m" * self.rng.randrange(50), self.rng.choice((1, 1, 3))
        key = f"k{self.rng.randrange(20)}"
        later = int(time.time() + 3_600) * 1_000 if count == 1 and self.rng.random() < 0.2 else 0
        entry = make_entry(
            payload, producer=producer.name, sequence_id=producer.next_sequence_id, key=key, deliver_at_ms=later
        )
        if count > 1:
            batch = EntryMetadata(
                producer.name, producer.next_sequence_id, 1, partition_key=key, num_messages_in_batch=count
            )
            entry = build_entry(batch, join_batch([(SingleMessageMetadata(), payload)] * count))
        producer.send(b"", entry=entry, count=count)
        got = (await producer.receipt()).message_id
        assert got is not None
        self.entries[got.ledger, got.entry] = (count, len(entry))
        self.slots[got.ledger, got.entry] = ring_slot(key.encode())
        if later:
            self.delayed.add((got.ledger, got.entry))

    def stored(self) -> int:
        return sum(size for _, size in self.entries.values())

    async def flow(self) -> None:
        member = self.rng.choice(self.everybody())
        permits = self.rng.randrange(1, 12)
        member.permits += permits
        member.consumer.flow(permits)

    async def ack(self) -> None:
        subscription = self.rng.choice(list(KINDS))
        member = self.rng.choice(self.members[subscription])
        if member.held:
            places = self.rng.sample(sorted(member.held), min(len(member.held), self.rng.randrange(1, 4)))
            await member.consumer.ack(*[c.MessageIdData(*place) for place in places])
            for place in places:
                del member.held[place]
            self.acked[subscription].update(places)

    async def redeliver(self) -> None:
        member = self.rng.choice(self.members["shared"] + self.members["keys"])
        if member.held:
            place = self.rng.choice(sorted(member.held))
            del member.held[place]
            member.consumer.redeliver([c.MessageIdData(*place)])

    async def replace(self) -> None:
        subscription = self.rng.choice(("shared", "keys"))
        member = self.members[subscription].pop(self.rng.randrange(2))
        await member.consumer.close()
        await self.join(subscription)

    def everybody(self) -> list[Member]:
        return [member for members in self.members.values() for member in members]

    # what must be shown

    def check(self, stats: Any, internal: Any) -> None:
        entries = self.entries
        assert stats["msgInCounter"] == sum(messages for messages, _ in entries.values())
        assert stats["bytesInCounter"] == stats["storageSize"] == self.stored()
        assert stats["msgOutCounter"] == sum(out["messages"] for out in self.out.values())
        assert stats["bytesOutCounter"] == sum(out["bytes"] for out in self.out.values())
        assert sorted(each["producerName"] for each in stats["publishers"]) == ["p", "q"]
        assert internal["numberOfEntries"] == internal["entriesAddedCounter"] == len(entries)
        assert list(stats["subscriptions"]) == list(KINDS)
        for name, found in stats["subscriptions"].items():
            self.check_subscription(name, found, internal["cursors"][name])

    def check_subscription(self, name: str, found: Any, cursor: Any) -> None:
        acked, members = self.acked[name], self.members[name]
        counts_unacked = name != "alone"
        assert found["msgOutCounter"] == self.out[name]["messages"]
        assert found["bytesOutCounter"] == self.out[name]["bytes"]
        assert found["msgBacklog"] == len(self.entries) - len(acked)
        delayed = len(self.delayed - acked) if counts_unacked else 0
        assert found["msgDelayed"] == delayed
        assert found["msgBacklogNoDelayed"] == found["msgBacklog"] - delayed
        assert found["type"] == KINDS[name].name
        if name == "keys":
            self.check_hashes(found["consumers"])
        held = sum(sum(member.held.values()) for member in members)
        assert found["unackedMessages"] == (held if counts_unacked else 0)
        shown = {each["consumerName"]: each for each in found["consumers"]}
        assert set(shown) == {member.name for member in members}
        for member in members:
            each = shown[member.name]
            assert each["msgOutCounter"] == member.messages
            assert each["availablePermits"] == member.permits
            assert each["unackedMessages"] == (sum(member.held.values()) if counts_unacked else 0)
        order = list(self.entries)
        first = next((i for i, place in enumerate(order) if place not in acked), len(order))
        holes = {place for place in order[first:] if place in acked}
        deleted = cursor["individuallyDeletedMessages"]
        assert expanded(deleted) == holes
        assert found["nonContiguousDeletedMessagesRanges"] == deleted.count("..")
        assert cursor["markDeletePosition"] == f"{order[0][0]}:{first - 1}"
        assert cursor["messagesConsumedCounter"] == len(acked)

    def check_hashes(self, shown: Any) -> None:
        """Ranges cover every slot once; a draining hash is held by another than its owner (rules 5.6.17, 5.6.18)."""
        owners: dict[int, str] = {}
        for each in shown:
            for low, high in each["keyHashRangeArrays"]:
                for slot in range(low, high + 1):
                    assert slot not in owners
                    owners[slot] = each["consumerName"]
        assert sorted(owners) == list(range(1, 65_536))
        for member in self.members["keys"]:
            (each,) = [one for one in shown if one["consumerName"] == member.name]
            held = Counter(self.slots[place] for place in member.held)
            draining = {slot: count for slot, count in held.items() if owners[slot] != member.name}
            assert {one["hash"]: one["unackMsgs"] for one in each["drainingHashes"]} == draining
            assert each["drainingHashesCount"] == len(draining)
            assert each["drainingHashesUnackedMessages"] == sum(draining.values())
            assert all(one["blockedAttempts"] >= 0 for one in each["drainingHashes"])

    def check_restarted(self, stats: Any) -> None:
        """Before any client connects: durable numbers are right, counts since the start are 0, nothing is negative."""
        for name in ("alone", "shared"):
            found = stats["subscriptions"][name]
            assert found["msgBacklog"] == len(self.entries) - len(self.acked[name])
            assert found["unackedMessages"] == found["msgOutCounter"] == found["msgDelayed"] == 0
            assert found["type"] == "None"
            assert found["consumers"] == []
        assert stats["storageSize"] == self.stored()
        assert stats["msgInCounter"] == 0
        assert not negative(stats)


def negative(found: Any, name: str = "") -> list[str]:
    """Members below 0, apart from those that say "unknown" or "without limit" with -1."""
    if isinstance(found, dict):
        return [bad for key, value in found.items() for bad in negative(value, f"{name}/{key}")]
    if isinstance(found, list):
        return [bad for value in found for bad in negative(value, name)]
    meant = name.endswith(("Limit", "LimitTime", "LimitSize", "backlogSize", "oldestBacklogMessageAgeSeconds"))
    return [name] if isinstance(found, (int, float)) and found < 0 and not (meant and found == -1) else []


def expanded(ranges: str) -> set[Place]:
    """The entries in ``[(1:2..1:5],(1:7..1:8]]``."""
    places: set[Place] = set()
    for ledger, low, same, high in re.findall(r"\((\d+):(-?\d+)\.\.(\d+):(\d+)\]", ranges):
        assert ledger == same
        places.update((int(ledger), entry) for entry in range(int(low) + 1, int(high) + 1))
    return places


@pytest.mark.parametrize("seed", range(3))
def test_every_number_is_what_the_clients_saw(tmp_path: Path, seed: int) -> None:
    async def run() -> None:
        async with real_broker(tmp_path) as broker:
            recount = Recount(broker, Random(seed))
            await recount.open()
            steps = (
                [recount.publish] * 6 + [recount.flow] * 3 + [recount.ack] * 3 + [recount.redeliver, recount.replace]
            )
            await recount.publish()
            for number in range(1, 121):
                await recount.rng.choice(steps)()
                await recount.settle()
                if number % 20 == 0:
                    _, internal = await broker.ask("GET", f"{TOPIC}/t/internalStats")
                    recount.check(await broker.stats("t"), internal)
            assert recount.out["shared"]["messages"]
            assert await broker.ask("DELETE", f"{TOPIC}/t/subscription/keys?force=true") == (204, "")
            stats = await broker.stats("t")
            assert stats["msgOutCounter"] == sum(out["messages"] for out in recount.out.values())
            assert list(stats["subscriptions"]) == ["alone", "shared"]
            assert recount.delayed
        async with real_broker(tmp_path) as broker:
            recount.check_restarted(await broker.stats("t"))

    asyncio.run(run())


def test_rates_are_what_the_counters_gained(tmp_path: Path) -> None:
    async def run() -> None:
        async with real_broker(tmp_path) as broker:
            client = await broker.client()
            producer = await client.producer(NAME)
            consumer = await client.subscribe(NAME, "s")
            consumer.flow(100)
            await producer.publish(b"before")
            loop, rates = asyncio.get_running_loop(), broker.node.broker.rates
            assert (await broker.stats("t"))["msgRateIn"] == 0
            begun = loop.time()
            await rates.look()
            before = await broker.stats("t")
            for _ in range(10):
                await producer.publish(b"0123456789")
            await asyncio.sleep(0.2)
            await rates.look()
            seconds = loop.time() - begun
            stats = await broker.stats("t")
            assert 10 / seconds <= stats["msgRateIn"] <= 10 / 0.2
            size = (stats["bytesInCounter"] - before["bytesInCounter"]) / 10
            assert stats["averageMsgSize"] == pytest.approx(size)
            assert stats["publishers"][0]["averageMsgSize"] == pytest.approx(size)
            subscription = stats["subscriptions"]["s"]
            assert subscription["msgRateOut"] == stats["msgRateOut"] == stats["msgRateIn"]
            assert subscription["consumers"][0]["msgThroughputOut"] == stats["msgThroughputIn"]
            await asyncio.sleep(0.05)
            await rates.look()
            assert (await broker.stats("t"))["msgRateIn"] == 0

    asyncio.run(run())
