"""Shared and Key_Shared with everything at once: delays, chunks, batches acknowledged in part, transactions, policies,
refusing disks, unloads, kills. Against a model of what each entry is and who has it.

No entry goes out early, before its transaction is committed, after it was acknowledged, while a transaction holds it,
or while a consumer has it; of a batch exactly what is not acknowledged. In the end everything was delivered.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from typing_extensions import override

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.delays import Delays
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.broker.topic.transactions.isolation import PendingAckRule
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.commands.ids import TxnId
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.testing.simloop import SimLoop, run_in
from magnetar.transactions.pending_acks import PartialBatch
from tests.support.loaded_topic import NAME, LoadedTopic
from tests.support.subscription_fakes import FakeConnection
from tests.support.topic_bench import gone_producer

SEEDS = round(25 * float(os.environ.get("MAGNETAR_SEEDS", "1")))
ALL = 0b1111
OFTEN = (
    *("publish",) * 8, *("send",) * 4, *("begin",) * 2, *("end",) * 2, *("acknowledge",) * 2, *("reserve",) * 3,
    *("join",) * 4, *("wait",) * 2,
)  # fmt: skip
SELDOM = ("leave", "leave", "nack", "flow", "policy", "refuse", "expire", "unload", "kill", "restart")


@dataclass
class Entry:
    due_ms: int = 0
    txn: int | None = None
    bits: int = 1
    """Its messages."""
    acked: int = 0
    owner: Consumer | None = None
    delivered: bool = False


class SharedPlace(LoadedTopic):
    unacked_max = 0

    def policies(self) -> TopicPolicies:
        return TopicPolicies(max_unacked_per_consumer=self.unacked_max)

    @override
    def load(self) -> None:
        settings = DispatchSettings(
            deliver_at_time_strict=True, acknowledgment_at_batch_index_level_enabled=True,
        )  # fmt: skip
        self.topic = Topic(NAME, self.store, settings, self.clock, Random(1), self.policies())


class CheckingConnection(FakeConnection):
    def __init__(self, walk: Walk) -> None:
        super().__init__()
        self.walk = walk

    @override
    def _take(self, run: Any, index: int, count: int, ack_set: tuple[int, ...], epoch: int | None) -> None:
        self.walk.delivered(self, run.first + index, ack_set[0] if ack_set else None)


class Walk:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.place = SharedPlace()
        self.type = self.rng.choice((SubType.Shared, SubType.Key_Shared))
        self.entries: dict[int, Entry] = {}
        self.txns: list[str] = []
        self.held: dict[tuple[int, int], int] = {}
        """The messages that are acknowledged in a transaction, by ordinal and transaction."""
        self.ending: dict[int, int] = {}
        """What transactions held whose end is not durable yet: it may show or not."""
        self.consumers: dict[CheckingConnection, Consumer] = {}
        self.wrong = ""
        self.place.topic.create_subscription("s", 0)

    @property
    def subscription(self) -> Subscription:
        return self.place.topic.subscriptions["s"]

    def holding(self, ordinal: int) -> int:
        return sum(bits for (at, _), bits in self.held.items() if at == ordinal)

    def out(self) -> list[tuple[int, Entry, Consumer]]:
        return [(ordinal, entry, entry.owner) for ordinal, entry in self.entries.items() if entry.owner]

    def delivered(self, connection: CheckingConnection, ordinal: int, live: int | None) -> None:
        entry = self.entries.get(ordinal)
        if entry is None:
            self.wrong = f"{ordinal} is no message"
            return
        left = entry.bits & ~entry.acked & ~self.holding(ordinal)
        shown = entry.bits if live is None else live
        faults = {
            "early": entry.due_ms > self.place.clock.now_ms(),
            "not committed": entry.txn is not None and self.txns[entry.txn] != "committed",
            "out twice": entry.owner is not None and ordinal not in self.ending,
            "acknowledged or held": not left,
            "with other messages than are left": (shown ^ left) & ~self.ending.get(ordinal, 0) != 0,
        }
        self.wrong = self.wrong or next((f"{ordinal}: {what}" for what, so in faults.items() if so), "")
        entry.owner, entry.delivered = self.consumers.get(connection) or _JOINING, True

    # what happens ------------------------------------------------------------------------------------------------

    def append(self, txn: int | None) -> None:
        rng, topic, number = self.rng, self.place.topic, len(self.entries)
        kind = rng.choice(("plain", "batch", "batch", "delay", "chunks", "delayed chunks"))
        due_ms = self.place.clock.now_ms() + rng.randint(1, 4000) if "delay" in kind else 0
        parts = rng.randint(2, 3) if "chunks" in kind else 1
        metadata: dict[str, Any] = {"partition_key": f"k{rng.randrange(5)}", "deliver_at_time": due_ms or None}
        if kind == "batch":
            metadata["num_messages_in_batch"] = 4
        for part in range(parts):
            if parts > 1:
                metadata |= {"uuid": f"u{number}", "num_chunks_from_msg": parts, "chunk_id": part}
            entry = build_entry(EntryMetadata("p", number, 1000, **metadata), b"m")
            ordinal = topic.delays.append(entry, 4 if kind == "batch" else 1, PendingEntry(_NOBODY, 0, 0))
            if parts > 1:
                topic.chunking.published_one()
            if txn is not None:
                topic.transacting().wrote(TxnId(0, txn), ordinal)
            self.entries[ordinal] = Entry(due_ms, txn, ALL if kind == "batch" else 1)

    def open(self) -> list[int]:
        return [number for number, state in enumerate(self.txns) if state == "open"]

    async def publish(self) -> None:
        self.append(None)

    async def send(self) -> None:
        if self.open():
            self.append(self.rng.choice(self.open()))

    async def begin(self) -> None:
        if len(self.open()) < 3:
            self.txns.append("open")

    async def end(self) -> None:
        if self.open():
            await self.finish(self.rng.choice(self.open()), commit=self.rng.random() < 0.6)

    async def finish(self, number: int, *, commit: bool) -> None:
        """What was held is free, or acknowledged, when the end is durable."""
        self.txns[number] = "committed" if commit else "aborted"
        sent = any(entry.txn == number for entry in self.entries.values())
        for ordinal, txn in [key for key in self.held if key[1] == number]:
            bits, entry = self.held.pop((ordinal, txn)), self.entries[ordinal]
            self.ending[ordinal] = self.ending.get(ordinal, 0) | bits
            entry.acked |= bits if commit else 0
            if not commit or entry.acked == entry.bits:
                entry.owner = None
        self.place.topic.transacting().end(TxnId(0, number), commit=commit, sent=sent)

    def take(self, ordinal: int, entry: Entry) -> int:
        """Some of its messages that no consumer has acknowledged in any way."""
        left = entry.bits & ~entry.acked & ~self.holding(ordinal)
        return left & self.rng.randint(1, ALL) if entry.bits == ALL else left

    async def acknowledge(self) -> None:
        for ordinal, entry, owner in self.out():
            bits = self.take(ordinal, entry) if self.rng.random() < 0.4 else 0
            if bits == entry.bits:
                self.subscription.acks.take(owner, [ordinal])
            elif bits:
                self.subscription.acks.take_sets(owner, [IndexAck(ordinal, (entry.bits & ~bits,), 4)])
            entry.acked |= bits
            if not entry.bits & ~entry.acked & ~self.holding(ordinal):
                entry.owner = None

    async def reserve(self) -> None:
        if not self.open():
            return
        number = self.rng.choice(self.open())
        for ordinal, entry, owner in self.out():
            bits = self.take(ordinal, entry) if self.rng.random() < 0.3 else 0
            if bits:
                whole, parts = ([], [PartialBatch(ordinal, bits, 4)]) if entry.bits == ALL else ([ordinal], [])
                self.held[ordinal, number] = self.held.get((ordinal, number), 0) | bits
                if not entry.bits & ~entry.acked & ~self.holding(ordinal):
                    entry.owner = None
                self.place.topic.transacting().acknowledge(
                    self.subscription, owner, TxnId(0, number), whole, parts, lambda: None
                )

    async def wait(self) -> None:
        await asyncio.sleep(self.rng.uniform(0, 2))

    async def join(self, permits: int = 0) -> None:
        if len(self.consumers) < 3:
            connection = CheckingConnection(self)
            joined = self.subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=self.type)
            self.consumers[connection] = joined
            self.subscription.flow(joined, permits or self.rng.choice((1, 3, 100)))

    async def leave(self) -> None:
        if self.consumers:
            consumer = self.consumers.pop(self.rng.choice(list(self.consumers)))
            for _, entry, owner in self.out():
                if owner is consumer:
                    entry.owner = None
            self.subscription.remove_consumer(consumer)

    async def nack(self) -> None:
        for consumer in self.consumers.values():
            again = [ordinal for ordinal, _, owner in self.out() if owner is consumer and self.rng.random() < 0.2]
            for ordinal in again:
                self.entries[ordinal].owner = None
            if again:
                self.subscription.redeliver(consumer, again)

    async def flow(self) -> None:
        for consumer in self.consumers.values():
            self.subscription.flow(consumer, self.rng.choice((1, 50)))

    async def policy(self) -> None:
        self.place.unacked_max = self.rng.choice((0, 0, 4, 8))
        self.place.topic.set_policies(self.place.policies())

    async def refuse(self) -> None:
        """A write that fails: nothing of it is there, its ordinals are given again."""
        await self.place.durable()
        self.place.files.fail("sync", times=1)
        self.append(self.rng.choice([None, *self.open()]))
        await asyncio.sleep(3)
        # another file's sync may have been the one that failed
        end = self.place.topic.log.end
        self.entries = {ordinal: entry for ordinal, entry in self.entries.items() if ordinal < end}

    async def expire(self) -> None:
        if self.rng.random() < 0.2:
            last = self.rng.randint(-1, self.place.topic.log.end - 1)
            for ordinal, entry in self.entries.items():
                if ordinal <= last:
                    entry.acked, entry.owner, entry.delivered = entry.bits, None, True
            self.subscription.expire_until(last)

    def lost(self) -> None:
        self.consumers.clear()
        for entry in self.entries.values():
            entry.owner = None

    async def unload(self) -> None:
        self.place.topic.close()
        self.lost()
        self.place.load()

    async def kill(self) -> None:
        await asyncio.sleep(0.1)
        await self.place.durable()
        self.place.kill()
        self.lost()

    async def restart(self) -> None:
        await self.place.restart()
        self.lost()

    # looking -----------------------------------------------------------------------------------------------------

    async def step(self, what: str) -> None:
        await getattr(self, what)()
        await self.place.durable()
        for entry in map(self.entries.__getitem__, self.ending):
            # what went out while the end was being written was taken back by it
            if entry.owner is not None and not any(entry is self.entries[o] for o in entry.owner.state.pending):
                entry.owner = None
        self.ending.clear()
        await asyncio.sleep(0.001)
        if self.subscription.dispatcher is not None:
            self.subscription.dispatcher.check()
        assert not self.wrong, self.wrong

    async def drain(self) -> None:
        for number in self.open():
            await self.finish(number, commit=self.rng.random() < 0.5)
        while self.consumers:
            await self.leave()
        await self.join(100_000)
        for _ in range(200):
            await asyncio.sleep(0.5)
            await self.step("acknowledge")
            if not self.subscription.cursor.backlog():
                break
        assert not self.subscription.cursor.backlog(), self.subscription.should_send()
        seen = [e for e in self.entries.values() if e.txn is None or self.txns[e.txn] == "committed"]
        assert all(entry.delivered for entry in seen)


_NOBODY = gone_producer()
_JOINING: Any = object()
"""Owner of what is sent while its consumer is being added; no permits, so there is nothing."""


async def walk(seed: int) -> None:
    self, done = Walk(seed), []
    await self.place.durable()
    try:
        for _ in range(70):
            done.append(self.rng.choice(OFTEN + SELDOM))
            await self.step(done[-1])
        await self.drain()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {done}: {error}") from error
    self.place.topic.close()
    await self.place.store.close()


def run_all() -> None:
    for seed in range(SEEDS):
        run_in(SimLoop(seed, limit_s=1e9), walk(seed))


def test_everything_at_once() -> None:
    run_all()


def test_delays_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Delays, "next_closed", lambda self, start, stop: stop)
    monkeypatch.setattr(Delays, "next_open", lambda self, start, stop: start)
    with pytest.raises(AssertionError, match="early"):
        run_all()


def test_reserved_entries_that_go_out_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendingAckRule, "next_open", lambda self, start, stop: start)
    monkeypatch.setattr(PendingAckRule, "next_closed", lambda self, start, stop: stop)
    with pytest.raises(AssertionError, match="acknowledged or held"):
        run_all()
