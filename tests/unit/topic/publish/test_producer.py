"""One producer's messages on their way into the log: which are looked at in between, and that a closed one has none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.topic.publish.producer import PendingEntry, Producer, ProducerInfo
from magnetar.model.errors import ServiceNotReadyError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry, deliver_at
from magnetar.protocol.frames import with_checksum

INFO = ProducerInfo(1, "p", True, 0, c.ProducerAccessMode.Shared, False, "", "", "", {}, False)


class Way:
    """A log, and what the topic has put before it; both remember what came."""

    def __init__(self) -> None:
        self.stored: list[tuple[int, PendingEntry]] = []
        self.looked_at: list[tuple[int, PendingEntry]] = []
        log = SimpleNamespace(
            append=lambda entry, count, tag: self.stored.append((count, tag)),
            append_all=lambda entries, tags: self.stored.extend((1, tag) for tag in tags),
        )
        self.producer = Producer(INFO, cast("Any", log), cast("Any", None))
        self.producer.append = cast("Any", lambda entry, count, tag: self.looked_at.append((count, tag)))

    def send(self, entry: bytes, messages: int = 1, *, sequence_id: int = 5, highest: int | None = None) -> None:
        self.producer.publish(c.CommandSend(1, sequence_id, messages, highest, False, None, False, None, entry))


def entry(size: int, **more: Any) -> bytes:
    """An entry whose metadata have exactly so many bytes."""

    def made(padding: int) -> bytes:
        return build_entry(EntryMetadata("p", 0, 1, properties=(("k", "v" * padding),), **more), b"payload")

    padding = size - 40
    for _ in range(3):  # lengths are numbers of several bytes themselves
        padding += size - int.from_bytes(made(padding)[6:10], "big")
    found = made(padding)
    assert int.from_bytes(found[6:10], "big") == size
    return found


@pytest.mark.parametrize("size", [100, 255, 256, 300, 0xFFFF, 0x10000, 0x10014, 0x100FF, 0x10100, 0x2_0005])
def test_a_message_that_is_delayed_is_looked_at_however_long_its_metadata_are(size: int) -> None:
    """When it is due stands behind its properties (rule 7.11)."""
    way = Way()
    way.send(entry(size, deliver_at_time=1 << 40))
    assert (len(way.looked_at), way.stored) == (1, [])


@pytest.mark.parametrize("size", [100, 255])
def test_a_message_that_is_not_delayed_goes_straight_into_the_log(size: int) -> None:
    way = Way()
    way.send(entry(size))
    assert ([count for count, _ in way.stored], way.looked_at) == ([1], [])


def test_a_batch_is_never_delayed_and_counts_its_messages() -> None:
    way = Way()
    way.send(entry(200, deliver_at_time=1 << 40, num_messages_in_batch=1), 2)
    whole = build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=3), bytes(100))
    way.send(whole, 3)
    assert ([count for count, _ in way.stored], way.looked_at) == ([1, 3], [])


@pytest.mark.parametrize(("highest", "kept"), [(None, 0), (0, 0), (4, 0), (5, 5), (9, 9)])
def test_a_highest_sequence_id_below_the_first_means_nothing(highest: int | None, kept: int) -> None:
    """Rule 3.3.3."""
    way = Way()
    way.send(entry(100), sequence_id=5, highest=highest)
    ((_, pending),) = way.stored
    assert pending == PendingEntry(way.producer, 5, kept)


def test_a_producer_that_was_closed_publishes_nothing_more() -> None:
    way = Way()
    way.producer.close()
    assert not way.producer.open
    with pytest.raises(ServiceNotReadyError, match="the producer is closed"):
        way.send(entry(100))
    assert (way.stored, way.looked_at) == ([], [])


# many at once --------------------------------------------------------------------------------------------------


def run_of(*entries: bytes) -> c.SendRun:
    return c.SendRun(1, list(range(5, 5 + len(entries))), list(entries), any(b"\x98\x01" in one for one in entries))


def test_many_are_stored_as_one_by_one() -> None:
    way, single = Way(), Way()
    entries = [entry(100), entry(255), entry(0x10000)]
    assert way.producer.store_run(run_of(*entries[:2]))
    for number, one in enumerate(entries[:2]):
        single.send(one, sequence_id=5 + number)
    assert [(count, tag[1:]) for count, tag in way.stored] == [(count, tag[1:]) for count, tag in single.stored]
    assert all(tag.producer is way.producer for _, tag in way.stored)


@pytest.mark.parametrize("size", [100, 255, 256, 0x10000])
def test_many_of_which_one_is_delayed_are_looked_at_one_by_one(size: int) -> None:
    way = Way()
    assert not way.producer.store_run(run_of(entry(100), entry(size, deliver_at_time=1 << 40), entry(100)))
    assert (way.stored, way.looked_at) == ([], [])


def test_a_payload_that_looks_like_a_delay_changes_nothing() -> None:
    way = Way()
    alike = build_entry(EntryMetadata("p", 0, 1), b"\x98\x01" * 9)
    assert way.producer.store_run(run_of(alike, alike))
    assert len(way.stored) == 2


def test_many_are_refused_one_by_one_after_the_end_and_where_each_is_checked() -> None:
    """What a topic asks of every message stands in ``publish``."""
    way = Way()
    way.producer.publish = lambda message: None
    assert not way.producer.store_run(run_of(entry(100), entry(100)))
    way = Way()
    way.producer.close()
    assert not way.producer.store_run(run_of(entry(100), entry(100)))
    assert way.stored == []


def test_metadata_that_begin_with_the_delay_are_looked_at() -> None:
    """No client has to write its fields in the order of their numbers."""
    whole = build_entry(EntryMetadata("p", 0, 1, deliver_at_time=1 << 40), b"payload")
    size = int.from_bytes(whole[6:10], "big")
    begin = whole.index(b"\x98\x01", 10)
    delay = whole[begin : begin + 8]
    first = whole[6:10] + delay + whole[10:begin] + whole[begin + 8 :]
    turned = with_checksum(first)
    assert (deliver_at(turned), len(turned), turned[10:12]) == (1 << 40, len(whole), b"\x98\x01")
    assert int.from_bytes(turned[6:10], "big") == size
    way = Way()
    way.send(turned)
    assert (len(way.looked_at), way.stored) == (1, [])
    assert not way.producer.store_run(run_of(turned, turned))
