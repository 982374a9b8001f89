"""Choice and change of the active consumer (rules of 5.4), and Exclusive (rule 5.3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import pytest

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.exclusive import Exclusive
from magnetar.broker.delivery.dispatchers.failover import Failover
from magnetar.broker.delivery.dispatchers.failover_order import FailoverOrder
from magnetar.broker.delivery.instructions import ActiveChange, Do, Slice
from magnetar.model.errors import ConsumerBusyError
from magnetar.model.hashing import murmur3_31
from tests.support.writable import FakeWritable, consumer


def choose(
    members: Sequence[ConsumerState], topic: str, partition: int = -1, *, ring_for_partitions: bool = False
) -> ConsumerState | None:
    """The consumer that a ranking of these puts first, after others joined and left in between."""
    ranking = FailoverOrder(topic, partition, ring_for_partitions=ring_for_partitions)
    others = [consumer(f"other-{i}", priority=i % 3 - 2) for i in range(9)]
    for one in (*others, *members):
        ranking.add(one)
    for one in others:
        ranking.remove(one)
    return ranking.first()


def test_partitions_take_turns_by_name() -> None:
    """Of two partitions and four consumers, P0 goes to A and P1 to B; after A and B leave, P0 goes to C and P1 to D
    (rule 0.11)."""
    c, a, d, b = (consumer(name) for name in "CADB")
    members = [c, a, d, b]
    assert choose(members, "t", 0) is a
    assert choose(members, "t", 1) is b
    assert choose(members, "t", 5) is b
    assert choose([c, d], "t", 0) is c
    assert choose([c, d], "t", 1) is d


def test_only_the_best_priority_counts() -> None:
    a, b, c = consumer("A", priority=1), consumer("B"), consumer("C")
    assert choose([a, b, c], "t", 0) is b
    assert choose([a, b, c], "t", 1) is c
    assert choose([a], "t", 1) is a
    assert choose([a, b, consumer("Z", priority=-1)], "t", 0).name == "Z"  # type: ignore[union-attr]  # never None here
    assert choose([], "t") is None


@pytest.mark.parametrize("topic", [f"persistent://public/default/t{i}" for i in range(20)])
def test_topics_without_partitions_choose_by_a_hash_ring(topic: str) -> None:
    """Topics without partitions, and all topics if so configured, choose by a hash ring, here against a linear search
    (rules 0.10, 5.4.2 and 5.4.3)."""
    members = [consumer(name) for name in ("x", "y", "z")]
    target = murmur3_31(topic.encode())
    points = [(murmur3_31(f"{c.name}{j}".encode()), c) for c in members for j in range(100)]
    above = [point for point in points if point[0] >= target]
    expected = min(above or points, key=lambda point: point[0])[1]
    assert choose(members, topic) is expected
    assert choose(members, topic, 2, ring_for_partitions=True) is expected


def test_a_consumer_has_a_hundred_points_on_the_ring_and_not_one_more() -> None:
    """Topics for which one more, or one less, would choose another consumer: brokers of both kinds have to agree
    while a cluster is upgraded, and Apache Pulsar has as many (rule 5.4.2)."""
    members = [consumer(name) for name in ("x", "y")]
    rings = {
        count: sorted((murmur3_31(f"{c.name}{j}".encode()), c.name) for c in members for j in range(count))
        for count in (99, 100, 101)
    }

    def chosen(topic: str, count: int) -> str:
        ring = rings[count]
        at = bisect_left(ring, (murmur3_31(topic.encode()), ""))
        return ring[at % len(ring)][1]

    seen = {99: 0, 101: 0}
    for number in range(3000):
        topic = f"persistent://public/default/t{number}"
        for other in seen:
            if chosen(topic, other) != chosen(topic, 100):
                seen[other] += 1
                found = choose(members, topic)
                assert found is not None and found.name == chosen(topic, 100)
    assert min(seen.values()) > 0, "there are such topics"


def test_first_consumer_is_served_after_the_delay() -> None:
    """Even the first consumer receives nothing until the activation delay is over (rule 5.4.6)."""
    failover = Failover("t", 0)
    a = consumer("A", permits=10)
    assert failover.add(a) == [Do.ARM]
    assert failover.wanted() == 0
    assert failover.assign(0, 5, None, None) == ([], 0)
    assert failover.activate() == [Do.REWIND, ActiveChange(a, True)]
    assert failover.wanted() == 10
    failover.check()


def test_stand_by_is_told_at_once_and_takes_over_later() -> None:
    failover = Failover("t", 0)
    b, c = consumer("B", permits=5), consumer("C", permits=7)
    failover.add(b)
    failover.activate()
    assert failover.add(c) == [ActiveChange(c, False)]
    assert failover.redeliver(c, None) == [], "only the active one may ask (rule 5.8.2)"
    assert failover.redeliver(b, [3]) == [Do.REWIND]
    assert failover.remove(b) == [Do.ARM]
    assert failover.wanted() == 0
    assert failover.activate() == [Do.REWIND, ActiveChange(c, True)]
    assert failover.wanted() == 7, "its FLOW was remembered (rule 5.4.7)"


def test_better_rank_takes_over_from_the_running_one() -> None:
    """A consumer of a better rank takes over; a second change during the delay does not restart it (rule 5.4.4)."""
    failover = Failover("t", 0)
    b, a, top = consumer("B", permits=5), consumer("A", permits=5), consumer("Z", permits=5, priority=-1)
    failover.add(b)
    failover.activate()
    assert failover.add(a) == [Do.ARM]
    assert failover.assign(0, 5, None, None) == ([], 0), "the old one gets nothing more"
    assert failover.add(top) == []
    assert failover.activate() == [
        Do.REWIND, ActiveChange(b, False), ActiveChange(a, False), ActiveChange(top, True),
    ]  # fmt: skip
    failover.check()


def test_all_consumers_leave_during_the_delay() -> None:
    failover = Failover("t", 0)
    a = consumer("A")
    failover.add(a)
    assert failover.remove(a) == [Do.DISARM]
    assert failover.activate() == []
    assert failover.add(a) == [Do.ARM]
    failover.check()


def test_without_delay_a_change_is_immediate() -> None:
    failover = Failover("t", 0, delayed=False)
    a, b = consumer("A"), consumer("B")
    assert failover.add(b) == [Do.REWIND, ActiveChange(b, True)]
    assert failover.add(a) == [Do.REWIND, ActiveChange(b, False), ActiveChange(a, True)]


def test_exclusive_refuses_a_second() -> None:
    exclusive = Exclusive()
    a = consumer("A")
    assert exclusive.add(a) == [Do.REWIND]
    with pytest.raises(ConsumerBusyError, match=r"^Exclusive consumer is already connected$"):
        exclusive.add(consumer("B"))
    assert exclusive.consumers == [a]
    exclusive.remove(a)
    assert exclusive.wanted() == 0
    assert exclusive.add(consumer("B")) == [Do.REWIND]


def test_reads_as_many_entries_as_permits_and_sends_all() -> None:
    """A read takes as many entries as there are permits: with 15 permits and batches of 10, 15 entries go out and
    permits are -135 (rule 5.1.10)."""
    exclusive = Exclusive()
    a = consumer("A", permits=15)
    exclusive.add(a)
    assert exclusive.wanted() == 15
    assert exclusive.assign(0, 15, [10] * 15, None) == ([Slice(a, 0, 15)], 15)
    assert a.permits == -135
    exclusive.flow(a, 135)
    assert exclusive.wanted() == 0
    exclusive.flow(a, 1)
    assert exclusive.wanted() == 1
    assert exclusive.assign(15, 16, [1], None) == ([Slice(a, 15, 16)], 16)
    exclusive.flow(a, 1000)
    assert exclusive.wanted() == 100
    assert isinstance(a.connection, FakeWritable)
    a.connection.writable = False
    assert exclusive.wanted() == 0


def test_exclusive_with_ranges_gets_matching_keys_only() -> None:
    """An Exclusive consumer with hash ranges receives only the entries of keys in them (rule 5.3.2)."""
    exclusive = Exclusive()
    a = consumer("A", permits=10, ranges=((10, 20), (30, 30)))
    exclusive.add(a)
    assert exclusive.key_slot is not None
    slices, reached = exclusive.assign(100, 106, None, [10, 20, 21, 30, 9, 15])
    assert slices == [Slice(a, 100, 102), Slice(a, 103, 104), Slice(a, 105, 106)]
    assert reached == 106
    assert a.permits == 6
