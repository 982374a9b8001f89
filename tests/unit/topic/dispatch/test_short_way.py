"""What has just become durable goes to an only consumer by a short way, which decides what the rounds decide."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode, SubType
from tests.support.subscription_fakes import FakeConnection
from tests.support.subscription_stand import Stand


class Walk:
    """Anything that may happen to a subscription, the same for the same seed."""

    def __init__(self, seed: int, sub_type: SubType) -> None:
        self.rng = Random(seed)
        self.stand = Stand(active_consumer_failover_delay_ms=0, dispatcher_max_read_batch_size=20)
        ranges = (IntRange(0, 20_000), IntRange(40_000, 65_535))
        declares = self.rng.random() < 0.1 and sub_type is SubType.Exclusive
        self.sub_type = sub_type
        self.key_shared = KeySharedMeta(KeySharedMode.STICKY, ranges) if declares else None
        self.connections: list[FakeConnection] = []
        self.consumer: Consumer | None = None
        self.join()

    def join(self) -> None:
        permits = self.rng.choice((3, 40, 1000))
        consumer = self.stand.join(sub_type=self.sub_type, key_shared=self.key_shared, permits=permits)
        self.consumer, connection = consumer
        self.connections.append(connection)

    def step(self) -> None:
        stand, rng, log = self.stand, self.rng, self.stand.log
        consumer, connection = self.consumer, self.connections[-1]
        assert consumer is not None
        what = rng.randrange(12)
        known = [rng.randrange(max(log.end, 1)) for _ in range(rng.randrange(4))]
        if what < 5:
            stand.append(*[rng.choice((1, 1, 1, 1, 7))] * rng.choice((1, 1, 2, 10, 60)))
        elif what == 5:
            stand.subscription.acks.take(consumer, [ordinal for ordinal in known if ordinal < log.end])
        elif what == 6:
            stand.cursor.acknowledge([log.end + rng.randrange(3)])  # beyond the end: changes nothing
            stand.cursor.acked.update([ordinal for ordinal in known if ordinal < log.end])
        elif what == 7:
            stand.subscription.flow(consumer, rng.choice((1, 5, 100)))
        elif what == 8:
            connection.writable = not connection.writable
            stand.subscription.resume(consumer)
        elif what == 9:
            if log.end and log.counts[-1] > 1:
                stand.cursor.acknowledge_indexes(log.end - 1, (0b10,), 7)
            stand.subscription.redeliver(consumer, None)
        elif what == 10:
            log.first = min(log.first + rng.randrange(3), log.end)
            stand.cursor.acked.update(range(log.first))
        else:
            stand.subscription.remove_consumer(consumer)
            stand.append(1)
            self.join()

    def seen(self) -> list[object]:
        return [(connection.got, connection.slices) for connection in self.connections]


@pytest.mark.parametrize("sub_type", [SubType.Exclusive, SubType.Failover])
def test_both_ways_send_the_same(sub_type: SubType, monkeypatch: pytest.MonkeyPatch) -> None:
    short = Pump._pass_on
    taken = 0

    def counting(self: Pump, dispatcher: Any) -> int:
        nonlocal taken
        passed = short(self, dispatcher)
        taken += passed > 0
        return passed

    def never(self: Pump, dispatcher: Any) -> int:
        return 0

    for seed in range(60):
        walks: list[Walk] = []
        for way in (counting, never):
            monkeypatch.setattr(Pump, "_pass_on", way)
            walk = Walk(seed, sub_type)
            for _ in range(60):
                walk.step()
            walks.append(walk)
        one, other = walks
        assert one.seen() == other.seen(), seed
        assert one.consumer is not None
        assert other.consumer is not None
        assert one.consumer.state.permits == other.consumer.state.permits, seed
        assert one.stand.subscription.pump.read_at == other.stand.subscription.pump.read_at, seed
        for name in ("entries_out", "messages_out", "bytes_out"):
            assert getattr(one.consumer, name) == getattr(other.consumer, name), seed
    assert taken > 100, "the test is about the short way"
