"""Delayed messages of a whole topic on the real store: restart, policy, acknowledgement, stats (rules of group 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from magnetar.broker.topic.dispatch.delays import Delays
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.model.errors import NotAllowedError, ServerError
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import DelayedDelivery, TopicPolicies
from magnetar.protocol.entries import EntryMetadata, build_entry, deliver_at
from magnetar.protocol.frames import with_checksum
from tests.support.topic_bench import TopicBench, gone_producer, simulated

SHARING = pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])


@SHARING
def test_by_time_then_by_position(tmp_path: Path, sub_type: SubType) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        _, connection = await bench.join(sub_type)
        bench.publish(900, 0, 300, 600, 300)
        await bench.durable()
        assert connection.ordinals == [1]
        stats = bench.topic.subscriptions["s"].stats()
        assert (stats.backlog_entries, stats.delayed_entries) == (5, 4)
        await asyncio.sleep(0.2)
        assert connection.ordinals == [1]
        for delay, expected in ((0.12, [1, 2, 4]), (0.3, [1, 2, 4, 3]), (0.3, [1, 2, 4, 3, 0])):
            await asyncio.sleep(delay)
            assert connection.ordinals == expected
        assert not bench.topic.dispatch_rules
        bench.publish(100)
        await asyncio.sleep(0.2)
        assert connection.ordinals[-1] == 5

    simulated(main)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_batch_is_delayed_as_a_whole(tmp_path: Path, batch: int) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        _, connection = await bench.join(SubType.Shared)
        bench.publish(500, batch=batch)
        await bench.durable()
        assert connection.ordinals == []
        await asyncio.sleep(0.6)
        assert connection.ordinals == [0]

    simulated(main)


@pytest.mark.parametrize("padding", [200, 256, 300, 0xFFF0, 0x10000, 0x10100])
def test_a_message_is_delayed_however_long_its_metadata_are(tmp_path: Path, padding: int) -> None:
    """When it is due stands behind its properties."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        _, connection = await bench.join(SubType.Shared)
        bench.publish(500, padding=padding)
        await bench.durable()
        assert connection.ordinals == []
        await asyncio.sleep(0.6)
        assert connection.ordinals == [0]

    simulated(main)


def test_a_message_whose_metadata_begin_with_the_delay_is_delayed(tmp_path: Path) -> None:
    """No client has to write its fields in the order of their numbers."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        _, connection = await bench.join(SubType.Shared)
        at = bench.clock.now_ms() + 500
        with_delay = build_entry(EntryMetadata("p", 1, 1, deliver_at_time=at), b"")
        without = build_entry(EntryMetadata("p", 1, 1), b"")
        delay = with_delay[len(without) :]
        turned = with_checksum(with_delay[6:10] + delay + without[10:] + b"m")
        assert deliver_at(turned) == at
        bench.topic.delays.append(turned, 1, PendingEntry(gone_producer(), 1, 0))
        await bench.durable()
        assert connection.ordinals == []
        await asyncio.sleep(0.6)
        assert connection.ordinals == [0]

    simulated(main)


@pytest.mark.parametrize("sub_type", [SubType.Exclusive, SubType.Failover])
def test_single_active_types_do_not_wait(tmp_path: Path, sub_type: SubType) -> None:
    """Exclusive and Failover deliver delayed messages at once; the same entries wait again for a later Shared consumer
    (rule 7.2)."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        consumer, connection = await bench.join(sub_type)
        bench.publish(60_000, 60_000)
        await bench.durable()
        assert connection.ordinals == [0, 1]
        assert bench.topic.subscriptions["s"].stats().delayed_entries == 0
        bench.topic.subscriptions["s"].remove_consumer(consumer)
        _, connection = await bench.join(SubType.Shared)
        assert connection.ordinals == []
        await asyncio.sleep(61)
        assert connection.ordinals == [0, 1]

    simulated(main)


@SHARING
def test_restart_and_unload_read_no_backlog(tmp_path: Path, sub_type: SubType, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        await bench.subscription()
        bench.publish(*[10_000 + i for i in range(2_000)], 0)
        await bench.durable()
        bench.store.checkpoint() if hasattr(bench.store, "checkpoint") else None
        bench.publish(5_000)
        await bench.durable()
        await bench.restart()
        reads: list[int] = []
        read = type(bench.topic.log).read

        def counted(self: Any, start: int, *rest: Any) -> None:
            reads.append(start)
            read(self, start, *rest)

        monkeypatch.setattr(type(bench.topic.log), "read", counted)
        _, connection = await bench.join(sub_type)
        await asyncio.sleep(1)
        assert connection.ordinals == [2_000]
        assert reads == [2_000]
        bench.topic.close()
        bench.load()
        _, connection = await bench.join(sub_type, permits=3_000)
        await asyncio.sleep(1)
        assert connection.ordinals == [2_000]
        await asyncio.sleep(4)
        assert connection.ordinals == [2_000, 2_001]
        await asyncio.sleep(8)
        assert connection.ordinals == [2_000, 2_001, *range(2_000)]

    simulated(main)


def test_acknowledged_skipped_and_redelivered(tmp_path: Path) -> None:
    """Acks before the time count, a nack after it is answered at once (rule 7.12), a seek makes it wait again."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        consumer, connection = await bench.join()
        bench.publish(1_000, 1_000, 1_000, 5_000)
        await bench.durable()
        subscription = bench.topic.subscriptions["s"]
        subscription.acks.take(consumer, [1])
        assert subscription.stats().delayed_entries == 3
        await asyncio.sleep(1.1)
        assert connection.ordinals == [0, 2]
        subscription.redeliver(consumer, [2])
        assert connection.ordinals == [0, 2, 2]
        subscription.seek_to(0)
        _, connection = await bench.join()
        await bench.durable()
        assert connection.ordinals == [0, 1, 2]
        assert subscription.stats().delayed_entries == 1
        subscription.skip_until(3)
        assert subscription.stats().delayed_entries == 0
        assert subscription.stats().backlog_entries == 0
        await asyncio.sleep(6)
        assert connection.ordinals == [0, 1, 2]

    simulated(main)


def test_not_strict_is_up_to_one_tick_early(tmp_path: Path) -> None:
    """If not strict, a delayed message may come up to one tick early (rule 7.4)."""

    async def main() -> None:
        bench = TopicBench(tmp_path, strict=False)
        _, connection = await bench.join()
        bench.publish(900, 1_500, 2_400, 3_000)
        await bench.durable()
        assert connection.ordinals == [0]
        await asyncio.sleep(1.45)
        assert connection.ordinals == [0]
        await asyncio.sleep(0.1)
        assert connection.ordinals == [0, 1, 2]
        await asyncio.sleep(1.5)
        assert connection.ordinals == [0, 1, 2, 3]

    simulated(main)


def test_policy(tmp_path: Path) -> None:
    """The policy of delayed delivery switches it off and on again and limits the delay (rules 7.3, 7.10)."""

    async def main() -> None:
        bench = TopicBench(tmp_path, policy=DelayedDelivery(active=False))
        _, connection = await bench.join()
        bench.publish(5_000)
        await bench.durable()
        assert connection.ordinals == [0]
        bench.topic.set_policies(TopicPolicies(delayed_delivery=DelayedDelivery(max_delay_ms=5_000)))
        bench.publish(5_000)
        with pytest.raises(NotAllowedError, match="Exceeds max allowed delivery delay of 5000 milliseconds") as refused:
            bench.publish(5_001)
        assert refused.value.code is ServerError.NotAllowedError
        await bench.durable()
        assert connection.ordinals == [0]
        await asyncio.sleep(5.1)
        assert connection.ordinals == [0, 1]
        # a policy may have any number, and only one above 0 is a limit
        bench.topic.set_policies(TopicPolicies(delayed_delivery=DelayedDelivery(max_delay_ms=-1)))
        bench.publish(5_001)

    simulated(main)


def test_what_went_out_while_the_policy_was_off_does_not_wait_again(tmp_path: Path) -> None:
    """Off, loaded again (so it goes out at once), on again with the message still at its consumer."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        await bench.subscription()
        bench.publish(5_000)
        await bench.durable()
        bench.policy = DelayedDelivery(active=False)
        await bench.restart()
        _, connection = await bench.join()
        await asyncio.sleep(0.1)
        assert connection.ordinals == [0]
        bench.topic.set_policies(TopicPolicies(delayed_delivery=DelayedDelivery()))
        bench.publish(4_000)
        await bench.durable()
        await asyncio.sleep(10)
        assert connection.ordinals == [0, 1]

    simulated(main)


def test_many_due_at_once_come_in_order_and_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr("magnetar.broker.topic.dispatch.delays._BATCH", 100)
        bench = TopicBench(tmp_path)
        _, connection = await bench.join()
        bench.publish(*[1_000 - i for i in range(900)])
        await bench.durable()
        at = bench.clock.now_ms()
        bench.clock.jump(10_000)
        await asyncio.sleep(1.2)
        assert bench.clock.now_ms() - at < 11_500
        assert connection.ordinals == list(reversed(range(900)))

    simulated(main)


def test_only_the_field_counts() -> None:
    """The two bytes that announce the field may stand in a text."""
    plain = EntryMetadata("p", 1, 1, properties=(("k", "\x98\x01".encode("latin1").decode("latin1")),))
    assert deliver_at(build_entry(plain, b"m")) == 0
    assert deliver_at(build_entry(EntryMetadata("p\u0098\x01", 1, 1), b"\x98\x01\x98\x01")) == 0
    assert deliver_at(build_entry(EntryMetadata("p", 1, 1, deliver_at_time=77), b"m")) == 77
    large = EntryMetadata("p", 1, 1, properties=(("k", "v" * 70_000),), deliver_at_time=78)
    assert deliver_at(build_entry(large, b"m")) == 78
    assert deliver_at(build_entry(EntryMetadata("p", 1, 1, deliver_at_time=-5), b"m")) == 0


def test_delays_is_a_reason_and_takes_memory_only_while_something_waits(tmp_path: Path) -> None:
    """delayedMessageIndexSizeInBytes is what waits; 0 if nothing does."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        delays = bench.topic.delays
        assert isinstance(delays, Delays)
        bench.publish(0, 0)
        await bench.durable()
        assert not bench.topic.dispatch_rules
        assert not bench.topic.log.feature_states
        assert delays.memory_bytes == 0
        bench.publish(500)
        await bench.durable()
        assert bench.topic.dispatch_rules
        assert delays.memory_bytes > 0
        await asyncio.sleep(1)
        assert not bench.topic.dispatch_rules
        assert delays.memory_bytes == 0

    simulated(main)


@pytest.mark.parametrize(("subscriptions", "most"), [(1, 5_000), (100, 50), (1_000, 20)])
def test_what_one_wake_up_opens_is_for_all_subscriptions_together(
    tmp_path: Path, subscriptions: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 messages that became due together kept a topic of 1,000 subscriptions busy for two seconds of one turn."""
    opened: list[int] = []
    let_through = Subscriptions.let_through

    def counted(self: Subscriptions, ordinals: Sequence[int], rule: DispatchRule | None = None) -> None:
        opened.append(len(ordinals))
        let_through(self, ordinals, rule)

    monkeypatch.setattr(Subscriptions, "let_through", counted)

    async def main() -> None:
        bench = TopicBench(tmp_path)
        for number in range(subscriptions - 1):
            bench.topic.create_subscription(f"other-{number}", 0)
        _, connection = await bench.join(SubType.Shared, 10_000)
        bench.publish(*[1_000] * 110)
        await bench.durable()
        await asyncio.sleep(2)
        assert connection.ordinals == list(range(110))
        assert (max(opened), sum(opened)) == (min(most, 110), 110)

    simulated(main)


def test_what_becomes_due_millisecond_after_millisecond_wakes_the_topic_every_ten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is early, and nothing is more than those 10 ms late."""
    woken: list[tuple[float, int]] = []
    let_through = Subscriptions.let_through

    def noted(self: Subscriptions, ordinals: Sequence[int], rule: DispatchRule | None = None) -> None:
        woken.append((asyncio.get_running_loop().time(), len(ordinals)))
        let_through(self, ordinals, rule)

    async def main() -> None:
        bench = TopicBench(tmp_path)
        await bench.join(SubType.Shared)
        monkeypatch.setattr(Subscriptions, "let_through", noted)
        bench.publish(*range(500, 600))
        await bench.durable()
        await asyncio.sleep(1)
        assert sum(count for _, count in woken) == 100
        gaps = [after - before for (before, _), (after, _) in pairwise(woken)]
        assert min(gaps) >= 0.0099
        assert max(gaps) <= 0.012

    simulated(main)
