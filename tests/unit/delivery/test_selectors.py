"""Who owns a slot: the three ways to divide the key space (rules 5.6.4 to 5.6.8, 0.1 to 0.4 and group 15)."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.sticky_keys import hash_ring
from magnetar.broker.delivery.sticky_keys.hash_ranges import HashRanges
from magnetar.broker.delivery.sticky_keys.hash_ring import HashRing
from magnetar.broker.delivery.sticky_keys.selector import Selector
from magnetar.broker.delivery.sticky_keys.sticky_ranges import StickyRanges
from magnetar.model.errors import ConsumerAssignError
from magnetar.model.hashing import ring_points
from tests.support.writable import consumer


def named(selector: Selector) -> dict[str, list[tuple[int, int]]]:
    return {c.name: ranges for c, ranges in selector.ranges().items()}


def test_ranges_split_and_merge_as_in_15_7() -> None:
    selector = HashRanges()
    c1, c2, c3, c4 = (consumer(f"C{i}") for i in range(1, 5))
    for c in (c1, c2, c3, c4):
        selector.add(c)
    assert named(selector) == {
        "C3": [(0, 16384)], "C2": [(16385, 32768)], "C4": [(32769, 49152)], "C1": [(49153, 65536)],
    }  # fmt: skip
    selector.remove(c4)
    assert named(selector) == {"C3": [(0, 16384)], "C2": [(16385, 32768)], "C1": [(32769, 65536)]}
    selector.remove(c1)
    assert named(selector) == {"C3": [(0, 16384)], "C2": [(16385, 65536)]}
    selector.remove(c2)
    selector.remove(c3)
    assert selector.select(5) is None
    assert named(selector) == {}


@pytest.mark.parametrize("names", [1, 2, 50])
def test_a_ring_keeps_nothing_of_consumers_that_left(names: int) -> None:
    """Each name that ever came would stay for as long as its subscription."""
    ring = HashRing(10)
    for turn in range(50):
        members = [consumer(f"C{(turn + step) % names}") for step in range(3)]
        for one in members:
            ring.add(one)
        for one in members:
            ring.remove(one)
    assert not ring._names and not ring._indices and not ring._queues
    assert ring.select(5) is None


def test_ranges_own_their_upper_bound() -> None:
    selector = HashRanges()
    c1, c2 = consumer("C1"), consumer("C2")
    selector.add(c1)
    selector.add(c2)
    assert [selector.select(slot) for slot in (1, 32768, 32769, 65535)] == [c2, c2, c1, c1]
    assert selector.key_slot(b"Order-3459134") == 6067


def test_ranges_run_out_of_room() -> None:
    """A consumer is refused when no range can be split any more (rule 5.6.6)."""
    selector = HashRanges()
    for i in range(65536):
        selector.add(consumer(str(i)))
    with pytest.raises(ConsumerAssignError, match="No more range can assigned to new consumer, "):
        selector.add(consumer("late"))
    assert len(selector.ranges()) == 65536


def naive_ring(joined: list[tuple[ConsumerState, int]], slot: int) -> ConsumerState | None:
    """Ceiling point by linear search; of several consumers on it, the one that joined first."""
    best: tuple[int, int] | None = None
    owner = None
    for order, (c, index) in enumerate(joined):
        for point in ring_points(c.name, index, 100):
            distance = (point - slot) % 65536 if point >= slot else 1 << 20 | point
            if best is None or (distance, order) < best:
                best, owner = (distance, order), c
    return owner


def test_ring_agrees_with_a_linear_search() -> None:
    selector = HashRing()
    joined: list[tuple[ConsumerState, int]] = []
    rng = random.Random(7)
    free = dict.fromkeys("abcde", 0)
    for _ in range(12):
        if joined and rng.random() < 0.35:
            gone = joined.pop(rng.randrange(len(joined)))
            selector.remove(gone[0])
        else:
            name = rng.choice(list(free))
            taken = {index for c, index in joined if c.name == name}
            index = next(i for i in range(100) if i not in taken)
            joined.append((consumer(name), index))
            selector.add(joined[-1][0])
        for slot in [1, 65535, *(rng.randint(1, 65535) for _ in range(40))]:
            assert selector.select(slot) is naive_ring(joined, slot)


def test_ring_points_of_15_4() -> None:
    points = ring_points("orders-aggregator-pod-2345-consumer", 0, 100)
    assert [points[0], points[1], points[2], points[99]] == [42111, 2183, 50957, 29037]
    selector = HashRing()
    first, second = consumer("orders-aggregator-pod-2345-consumer"), consumer("other")
    selector.add(first)
    selector.add(second)
    assert all(selector.select(point) is first for point in points)


def test_ring_collision_belongs_to_the_first_comer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first consumer owns a point where two collide; later ones queue and take over when it leaves (rule 0.3)."""
    points = {"a": [10, 500], "b": [10, 700], "c": [10, 900]}
    monkeypatch.setattr(
        "magnetar.broker.delivery.sticky_keys.hash_ring.ring_points", lambda name, index, count: points[name]
    )
    selector = HashRing()
    a, b, c = consumer("a"), consumer("b"), consumer("c")
    for member in (a, b, c):
        selector.add(member)
    assert selector.select(5) is a
    selector.remove(a)
    assert selector.select(5) is b
    selector.add(a)
    assert selector.select(5) is b
    selector.remove(b)
    assert selector.select(5) is c
    assert selector.select(901) is c, "wraps to the lowest point"


def test_ring_tells_consumers_of_one_name_apart() -> None:
    selector = HashRing()
    twins = [consumer("same"), consumer("same")]
    for twin in twins:
        selector.add(twin)
    shares = selector.ranges()
    assert set(shares) == set(twins)
    third = consumer("same")
    selector.remove(twins[0])
    selector.add(third)  # takes name index 0 again
    assert selector.ranges()[third] == shares[twins[0]]


@pytest.mark.parametrize("make", [HashRanges, HashRing])
def test_shares_cover_everything_once(make: Callable[[], Selector]) -> None:
    selector = make()
    for i in range(5):
        selector.add(consumer(f"c{i}"))
    shares = sorted((start, end, c.name) for c, ranges in selector.ranges().items() for start, end in ranges)
    lowest, highest = (0, 65536) if make is HashRanges else (1, 65535)
    assert shares[0][0] == lowest
    assert shares[-1][1] == highest
    for (_, end, owner), (start, _, other) in pairwise(shares):
        assert start == end + 1
        assert make is HashRanges or owner != other, "adjacent ranges are joined (rule 5.6.18)"
    for start, end, name in shares:
        for slot in (start, end):
            owned = selector.select(slot)
            assert owned is not None
            assert owned.name == name


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        (None, r"Ranges for KeyShared policy must not be empty\."),
        ((), r"Ranges for KeyShared policy must not be empty\."),
        (((5, 2),), r"Fixed hash range start > end for range: \[5,2\]"),
        (
            ((550, 700), (500, 600)),
            r"Consumer's own ranges conflict: \[500,600\] overlaps with \[550,700\]",
        ),
        (((90, 100),), r"Range conflict with consumer Consumer\{consumerName=first\}"),
        (((200, 205),), "Range conflict with consumer"),
        (((0, 65535),), "Range conflict with consumer"),
        (((110, 120), (0, 1)), "Range conflict with consumer"),
    ],
)
def test_sticky_refuses(ranges: tuple[tuple[int, int], ...] | None, message: str) -> None:
    selector = StickyRanges()
    selector.add(consumer("first", ranges=((100, 200),)))
    with pytest.raises(ConsumerAssignError, match=message):
        selector.add(consumer("second", ranges=ranges))
    assert named(selector) == {"first": [(100, 200)]}


def test_sticky_has_holes_and_no_bounds() -> None:
    """STICKY admits ranges beyond all slots, and slots in no range belong to no consumer (rule 5.6.8)."""
    selector = StickyRanges()
    a, b = consumer("a", ranges=((60000, 70000), (-5, 10))), consumer("b", ranges=((11, 20), (201, 201)))
    selector.add(a)
    selector.add(b)
    expected = {1: a, 10: a, 11: b, 20: b, 21: None, 200: None, 201: b, 202: None, 59999: None, 65535: a}
    assert {slot: selector.select(slot) for slot in expected} == expected
    selector.remove(a)
    assert selector.select(5) is None
    assert selector.select(15) is b
    selector.add(consumer("c", ranges=((0, 10),)))


def test_who_left_is_not_remembered() -> None:
    """Consumers that come and go for months leave nothing in memory."""
    selector = StickyRanges()
    members = [consumer(f"c{number}", ranges=((number * 10, number * 10 + 9),)) for number in range(20)]
    for member in members:
        selector.add(member)
    for member in members:
        selector.remove(member)
    assert not selector._taken
    assert not selector._starts


def owners(selector: Selector, members: list[ConsumerState]) -> bytes:
    """The number of the owner of each slot, 255 for none."""
    found = bytearray(b"\xff" * 65537)
    for member, ranges in selector.ranges().items():
        for low, high in ranges:
            low = max(low, 1)
            found[low : high + 1] = bytes([members.index(member)]) * (min(high, 65536) + 1 - low)
    return bytes(found)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [HashRanges, HashRing, StickyRanges])
def test_who_joins_or_leaves_changes_the_slots_it_says_and_no_others(make: Callable[[], Selector], seed: int) -> None:
    """What waits is looked at again for these slots only: too few lose messages, too many make joining quadratic."""
    rng = random.Random(seed)
    selector = make()
    members = [consumer(f"c{i}", ranges=((i * 700, i * 700 + 99), (i * 700 + 200, i * 700 + 500))) for i in range(40)]
    present: list[ConsumerState] = []
    for _ in range(60):
        before = owners(selector, members)
        leaves = bool(present) and rng.random() < 0.45
        who = rng.choice(present) if leaves else rng.choice([one for one in members if one not in present])
        if leaves:
            present.remove(who)
            intervals = selector.remove(who)
        else:
            present.append(who)
            intervals = selector.add(who)
        after = owners(selector, members)
        number = members.index(who)
        whose = before if leaves else after
        at = 1
        for low, high in intervals:
            low = max(low, 1)
            assert at <= low <= high
            assert before[at:low] == after[at:low]
            assert whose[low : high + 1] == bytes([number]) * (high + 1 - low)
            at = high + 1
        assert before[at:] == after[at:]
        assert {whose[slot] for slot in (1, 65535)} <= {members.index(one) for one in [*present, who]} | {255}


@pytest.mark.parametrize("highest", [65_535, 65_534])
def test_the_last_slot_belongs_to_its_own_point_or_to_the_first(highest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots behind the highest point go round to the first one (rule 5.6.7)."""
    points = {"a": [100, 30_000], "b": [200, highest]}
    monkeypatch.setattr(hash_ring, "ring_points", lambda name, *_: points[name])
    selector = HashRing()
    for name in points:
        selector.add(consumer(name))
    wanted = {"a": [(1, 100), (201, 30_000)], "b": [(101, 200), (30_001, highest)]}
    if highest < 65_535:
        wanted["a"].append((65_535, 65_535))
    assert named(selector) == wanted
    for slot in (1, 100, 101, 200, 201, 65_534, 65_535):
        owner = selector.select(slot)
        assert owner is not None
        assert any(low <= slot <= high for low, high in wanted[owner.name]), slot
