"""Which producers deduplication forgets: who was away for too long, and who is too many (rules of 3.4)."""

from __future__ import annotations

from typing import cast

from magnetar.broker.topic.publish.deduplication import STREAM_PREFIX, Deduplication, DeduplicationSettings
from magnetar.broker.topic.publish.sequence_ids import SequenceIds
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

SETTINGS = DeduplicationSettings(producers_max=3, inactivity_ms=100, stream_inactivity_ms=1000)
STREAM = STREAM_PREFIX + "q"
NAMED_LIKE_ONE = "q" + STREAM_PREFIX


class FakeFeatureState:
    """Counts what is to be written."""

    def __init__(self) -> None:
        self.ids = SequenceIds()
        self.touched = 0

    def open(self, make: object) -> SequenceIds:
        return self.ids

    def touch(self) -> None:
        self.touched += 1


class Remembering:
    """Deduplication of a log that has these producers, the one that published longest ago first."""

    def __init__(self, *names: str, settings: DeduplicationSettings = SETTINGS, now_ms: int = 0) -> None:
        self.fake = FakeFeatureState()
        self.connected: set[str] = set()
        self.publish(*names)
        self.deduplication = Deduplication(cast("ManagedLedger", self), settings, self.connected.__contains__, now_ms)

    def feature_state(self, name: str) -> FakeFeatureState:
        return self.fake

    def publish(self, *names: str) -> None:
        for name in names:
            self.fake.ids.push(name, 7)
            self.fake.ids.changes()
            self.fake.ids.durable()

    def left(self, now_ms: int) -> list[str]:
        """After a look at that time."""
        before, touched = len(self.fake.ids), self.fake.touched
        self.deduplication.tidy(now_ms)
        assert (self.fake.touched > touched) == (len(self.fake.ids) < before), "written exactly if somebody is gone"
        return list(self.fake.ids)


def test_who_was_away_for_so_long_is_forgotten_and_not_a_millisecond_before() -> None:
    """A streaming query's producer later than others; its name has to begin like that."""
    there = Remembering("a", STREAM, NAMED_LIKE_ONE, now_ms=50)
    assert there.left(149) == ["a", STREAM, NAMED_LIKE_ONE]
    assert there.left(150) == [STREAM]
    assert there.deduplication.last_sequence_id("a") == -1
    assert there.deduplication.last_sequence_id(STREAM) == 7
    assert there.left(1049) == [STREAM]
    assert there.left(1050) == []


def test_the_time_away_begins_when_somebody_is_first_seen_away_and_anew_after_each_visit() -> None:
    there = Remembering("a", "b")
    there.connected.add("a")
    assert there.left(99) == ["a", "b"]
    assert there.left(100) == ["a"], "who is connected is never too late"
    there.connected.clear()
    assert there.left(1000) == ["a"]
    assert there.left(1050) == ["a"]
    there.connected.add("a")
    assert there.left(1060) == ["a"]
    there.connected.clear()
    assert there.left(1070) == ["a"]
    assert there.left(1169) == ["a"]
    assert there.left(1170) == []
    there.publish("a")
    assert there.left(1171) == ["a"], "who comes back after that begins anew"
    assert there.left(1270) == ["a"]
    assert there.left(1271) == []


def test_of_too_many_those_go_that_published_longest_ago_streaming_queries_by_themselves() -> None:
    plain, streams = [f"p{i}" for i in range(5)], [f"{STREAM}{i}" for i in range(4)]
    there = Remembering(*plain[:3], *streams[:3])
    assert there.left(1) == [*plain[:3], *streams[:3]], "so many may be remembered of each"
    there.publish(*plain[3:])
    assert there.left(2) == [plain[2], *streams[:3], *plain[3:]]
    there.publish(plain[2], streams[3])
    assert there.left(3) == [*streams[1:3], *plain[3:], plain[2], streams[3]]
    there = Remembering(*streams[:3], *plain[:4])
    assert there.left(1) == [*streams[:3], *plain[1:4]], "although streaming queries published before them"
    there.publish(streams[3])
    assert there.left(2) == [*streams[1:3], *plain[1:4], streams[3]]


def test_who_is_connected_or_has_something_in_flight_stays_and_the_next_one_goes() -> None:
    there = Remembering("a", "b", "c", "d", "e")
    there.connected.add("a")
    there.fake.ids.push("b", 8)
    assert there.left(1) == ["a", "b", "e"]
    assert not there.deduplication.settled("b")
    assert there.deduplication.settled("a")


def test_whoever_is_late_makes_room_for_those_who_are_not() -> None:
    """No producer goes for being too many when enough go for being late, and none is counted twice."""
    there = Remembering("a", "b", "c", "d")
    there.connected.update("cd")
    assert there.left(50) == ["b", "c", "d"], "four are one too many"
    there.publish("x", "y")
    there.connected.update("xy")
    assert there.left(100) == ["c", "d", "x", "y"], "b is late; who is connected stays although they are four"
    there.connected.clear()
    assert there.left(101) == ["d", "x", "y"]


def test_one_late_and_one_too_many_are_two_to_go() -> None:
    there = Remembering("a", settings=SETTINGS._replace(producers_max=2))
    assert there.left(0) == ["a"]
    there.publish("b", "c", "d")
    there.connected.update("bcd")
    assert there.left(99) == ["b", "c", "d"], "a goes first for being too many"
    there = Remembering("a", settings=SETTINGS._replace(producers_max=2))
    there.publish("b", "c", "d")
    assert there.left(100) == ["c", "d"], "a is late, b one too many"
