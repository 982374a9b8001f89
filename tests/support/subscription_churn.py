"""A subscription whose consumers come, go, acknowledge and seek by a seed, beside a witness of what is out where."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.ports import EntryRun
from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.subscription_types import SubType
from magnetar.storage.ledgers.cursor import Cursor
from tests.support.subscription_fakes import FakeConnection, FakeLog
from tests.support.subscription_stand import FakeClock

KEYS = 9

BATCH = 5


class NumberedLog(FakeLog):
    id = 1


class Witness:
    """What is out where, and what was ever sent."""

    def __init__(self, cursor: Cursor, sub_type: SubType) -> None:
        self.cursor = cursor
        self.single = sub_type in (SubType.Exclusive, SubType.Failover)
        self.keyed = sub_type is SubType.Key_Shared
        self.out: dict[int, WitnessConnection] = {}
        self.sent: set[int] = set()
        self.ended: set[int] = set()
        """Messages that nobody can read and that were out when a connection was lost."""
        self.deliveries = 0

    def saw(self, connection: WitnessConnection, ordinal: int) -> None:
        self.deliveries += 1
        assert not self.cursor.acknowledged(ordinal)
        assert ordinal not in self.ended, "has ended a connection, and is out again"
        if not self.single:
            assert ordinal not in self.out, "out twice"
        if self.keyed:
            self.out = {o: holder for o, holder in self.out.items() if not self.cursor.acknowledged(o)}
            assert all(holder is connection for o, holder in self.out.items() if o % KEYS == ordinal % KEYS)
            if ordinal not in self.sent:
                older = range(ordinal % KEYS, ordinal, KEYS)
                assert all(o in self.sent or self.cursor.acknowledged(o) for o in older)
        self.out[ordinal] = connection
        self.sent.add(ordinal)

    def left(self, connection: WitnessConnection) -> None:
        self.out = {o: holder for o, holder in self.out.items() if holder is not connection}


class WitnessConnection(FakeConnection):
    def __init__(self, witness: Witness) -> None:
        super().__init__()
        self.witness = witness

    @override
    def _take(self, run: EntryRun, index: int, count: int, ack_set: tuple[int, ...], epoch: int | None) -> None:
        super()._take(run, index, count, ack_set, epoch)
        assert ack_set == self.witness.cursor.remaining_indexes(run.first + index)
        self.witness.saw(self, run.first + index)


class Churn:
    def __init__(self, sub_type: SubType, seed: int, ring: bool) -> None:
        self.rng = random.Random(seed)
        self.sub_type = sub_type
        self.log = NumberedLog()
        self.cursor = Cursor(self.log, 1, "sub", -1, None)
        self.witness = Witness(self.cursor, sub_type)
        settings = replace(
            DispatchSettings(),
            acknowledgment_at_batch_index_level_enabled=True,
            active_consumer_failover_delay_ms=0,
            dispatcher_max_read_batch_size=15,
            dispatcher_max_round_robin_batch_size=4,
            max_unacked_messages_per_consumer=40,
            max_unacked_messages_per_subscription=90,
            key_shared_look_ahead_per_consumer=10,
            subscription_key_shared_use_consistent_hashing=ring,
            turn_entries_max=50,
        )
        self.subscription = Subscription(
            TopicIdentity("persistent://a/b/t", 0), "sub", self.log, self.cursor, settings, FakeClock(), sticky_keys
        )
        self.members: dict[Consumer, WitnessConnection] = {}

    def join(self) -> None:
        if self.sub_type is SubType.Exclusive and self.members:
            return
        connection = WitnessConnection(self.witness)
        name = self.rng.choice("abcdef")
        consumer = self.subscription.add_consumer(
            connection, name=name, consumer_id=1, sub_type=self.sub_type, priority=self.rng.randint(0, 1)
        )
        self.members[consumer] = connection
        self.subscription.flow(consumer, self.rng.randint(1, 60))

    def leave(self, consumer: Consumer) -> None:
        lost, mine = self.rng.random() < 0.5, self.members[consumer]
        if lost:
            self.witness.ended.update(o for o, holder in self.witness.out.items() if unreadable(o) and holder is mine)
        self.witness.left(self.members.pop(consumer))
        self.subscription.remove_consumer(consumer, lost=lost)

    def acknowledge(self, consumer: Consumer) -> None:
        connection, rng = self.members[consumer], self.rng
        mine = sorted(o for o, holder in self.witness.out.items() if holder is connection)
        if not mine:
            return
        if self.witness.single and rng.random() < 0.3:
            upto = rng.choice(mine)
            self.forget([o for o in self.witness.out if o <= upto])
            self.subscription.acks.take_until(consumer, upto)
            return
        some = rng.sample(mine, rng.randint(1, len(mine)))
        if rng.random() < 0.2:
            live = rng.randrange(1 << BATCH)
            if not self.cursor.remaining_indexes(some[0]) and not live & (1 << self.log.counts[some[0]]) - 1:
                self.forget(some[:1])
            left = self.cursor.remaining_indexes(some[0])
            if left and not left[0] & live:
                self.forget(some[:1])
            self.subscription.acks.take_sets(consumer, [IndexAck(some[0], (live,), self.log.counts[some[0]])])
            return
        self.forget(some)
        self.subscription.acks.take(consumer, some)

    def forget(self, ordinals: list[int]) -> None:
        for ordinal in ordinals:
            self.witness.out.pop(ordinal, None)

    def redeliver(self, consumer: Consumer) -> None:
        connection = self.members[consumer]
        mine = sorted(o for o, holder in self.witness.out.items() if holder is connection)
        if mine:
            some = self.rng.sample(mine, self.rng.randint(1, len(mine)))
            self.forget(mine if self.witness.single else some)
            self.subscription.redeliver(consumer, some)

    def step(self) -> None:
        rng, action = self.rng, self.rng.random()
        if self.log.reads and action < 0.3:
            self.log.finish_read()
        elif not self.members or (action < 0.35 and len(self.members) < 5):
            self.join()
        else:
            consumer = rng.choice(list(self.members))
            if action < 0.38:
                self.leave(consumer)
            elif action < 0.5:
                self.log.append(*(rng.choice([1, 1, BATCH]) for _ in range(rng.randint(1, 20))))
                self.log.resident = rng.randint(0, self.log.end)
                self.subscription.entries_appended()
            elif action < 0.65:
                self.subscription.flow(consumer, rng.randint(1, 40))
            elif action < 0.68:
                self.members[consumer].writable ^= True
                self.subscription.resume(consumer)
            elif action < 0.72:
                self.redeliver(consumer)
            else:
                self.acknowledge(consumer)

    async def finish(self) -> None:
        """One healthy consumer drains it."""
        for consumer in list(self.members):
            self.leave(consumer)
        self.join()
        last = next(iter(self.members))
        for _ in range(20 * self.log.end):
            if self.log.reads:
                self.log.finish_read()
            self.subscription.flow(last, 50)
            self.acknowledge(last)
            await asyncio.sleep(0)
            if self.cursor.backlog() == 0:
                return
        raise AssertionError(f"stuck with a backlog of {self.cursor.backlog()}")


def sticky_keys(entries: Sequence[bytes]) -> list[bytes]:
    return [b"%d" % (ordinal_of(entry) % KEYS) for entry in entries]


def unreadable(ordinal: int) -> bool:
    return ordinal % 7 == 3


def publish_time(entry: bytes) -> int | None:
    """What the broker reads of the metadata; None where it cannot."""
    return None if unreadable(ordinal_of(entry)) else 1


def ordinal_of(entry: bytes) -> int:
    return int(entry.removeprefix(b"entry-"))
