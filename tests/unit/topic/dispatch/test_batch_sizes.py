"""What clients claim of batches, held against what entries hold."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from magnetar.broker.delivery.consumer_state import PERMITS_MAX, ConsumerState
from magnetar.broker.topic.dispatch.batch_sizes import UNSEEN_MAX, BatchSizes, RemainingMessages
from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.model.subscription_types import SubType
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import EntryMetadata, build_entry, messages_in
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.transactions.pending_acks import TransactionAcks, partial_batch
from tests.support.subscription_fakes import FakeLog
from tests.support.subscription_stand import Stand

ABSURD = (-(1 << 31), -1, 0, 1, 63, 64, 65, (1 << 31) - 1, 1 << 31, (1 << 63) - 1)
ALL = (1 << 64) - 1


class Ends:
    id, first, end = 1, 0, 100


def sizes(*counts: int, resident: int = 0) -> BatchSizes:
    log = FakeLog()
    log.append(*counts)
    log.resident = resident
    return BatchSizes(log)


@pytest.mark.parametrize("claimed", ABSURD)
def test_no_claim_makes_an_entry_larger(claimed: int) -> None:
    held = sizes(3, 1, 200)
    for ordinal, size in enumerate((3, 1, 200)):
        left = held.remaining(ordinal, (ALL,) * 40, claimed)
        assert left is not None
        assert left.size == size
        assert len(left.words) == (size + 63) // 64


def test_of_entries_that_left_the_memory_only_usual_batches_are_believed() -> None:
    held = sizes(3, resident=1)
    assert held.remaining(0, (1,), 0) == RemainingMessages((1,), 64)
    assert held.remaining(0, (ALL,) * 16, UNSEEN_MAX) == RemainingMessages((ALL,) * 16, UNSEEN_MAX)
    assert held.remaining(0, (1,), UNSEEN_MAX + 1) is None
    assert held.remaining(0, (1,) * 17, 0) is None
    assert held.remaining(0, (1,) * 17, 5) is None
    held.saw((1, 5000, 2))
    assert held.remaining(0, (1,), 5000) == RemainingMessages((1,), 5000)
    assert held.remaining(0, (1,), 5001) is None
    assert held.remaining(77, (1,), 0) == RemainingMessages((1,), 64), "unknown ordinals are the cursor's affair"


@pytest.mark.parametrize("resident", [0, 1])
def test_a_batch_whose_send_left_out_the_number_is_as_large_as_its_metadata_say(resident: int) -> None:
    """In memory or not, an ack set leaves the same; the entry counts as one message."""
    log = FakeLog()
    log.append(1)
    log.entries[0] = build_entry(EntryMetadata("p", 1, 2, num_messages_in_batch=10), bytes(100))
    log.resident = resident
    held = BatchSizes(log)
    for claimed in (0, 10):
        left = held.remaining(0, (0b11_1111_1100,), claimed)
        assert left is not None
        assert left.words == (0b11_1111_1100,)
        assert left.size == (10 if not resident or claimed else 64)
    log.entries[0] = build_entry(EntryMetadata("p", 1, 2, num_messages_in_batch=(1 << 31) - 1), bytes(100))
    if not resident:
        assert held.remaining(0, (ALL,), 0) == RemainingMessages((ALL,), 16), "as far as there is room"


@pytest.mark.parametrize("largest", [4999, 5000, 5001, 5056, 5057])
def test_what_clients_that_claim_no_size_acknowledge_of_the_largest_batch_counts(largest: int) -> None:
    """Official C++ and Python clients send words only; of 5,000 messages the last word is not full."""
    held = sizes(3, resident=1)
    held.saw((largest,))
    words = (ALL,) * -(-largest // 64)
    assert held.remaining(0, words, 0) == RemainingMessages(words, largest)
    assert held.remaining(0, (*words, ALL), 0) is None


@pytest.mark.parametrize("claimed", ABSURD)
def test_a_cursor_keeps_no_more_than_was_sent(claimed: int) -> None:
    """What an acknowledgement costs follows its words, even if they were not cut."""
    cursor = Cursor(Ends(), 1, "s", -1, None)
    cursor.acknowledge_indexes(5, (0b110,), max(claimed, 0))
    assert len(cursor.remaining_indexes(5)) <= 1


def test_every_word_of_an_ack_set_counts() -> None:
    """A batch of 200 messages has four; the last one is not full."""
    cursor = Cursor(Ends(), 1, "s", -1, None)
    assert not cursor.acknowledge_indexes(7, (ALL, 0, ALL, 0b1111_1110), 200)
    assert cursor.remaining_indexes(7) == (ALL, 0, ALL, 0b1111_1110)
    assert not cursor.acknowledge_indexes(7, (0, ALL, 0b100, ALL), 200)
    assert cursor.remaining_indexes(7) == (0, 0, 0b100, 0b1111_1110)
    assert not cursor.acknowledge_indexes(7, (ALL, ALL, ALL, 0b1000_0000), 200)
    assert cursor.remaining_indexes(7) == (0, 0, 0b100, 0b1000_0000)
    assert not cursor.acknowledge_indexes(7, (ALL, ALL, 0, ALL), 200)
    assert cursor.remaining_indexes(7) == (0, 0, 0, 0b1000_0000)
    assert cursor.acknowledge_indexes(7, (ALL, ALL, ALL), 200), "words at the end that are zero are left out"
    assert cursor.acknowledged(7)


@pytest.mark.parametrize("sub_type", list(SubType))
@pytest.mark.parametrize("claimed", ABSURD)
def test_a_batch_of_two_hundred_is_acknowledged_bit_by_bit(sub_type: SubType, claimed: int) -> None:
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True, active_consumer_failover_delay_ms=0)
    consumer, connection = stand.join(sub_type=sub_type, permits=1000)
    stand.append(200)
    answers: list[str] = []
    left = ALL | ALL << 64 | ALL << 128 | ALL << 192
    for index in (0, 63, 64, 130, 199):
        left &= ~(1 << index)
        words = tuple(left >> at & ALL for at in (0, 64, 128, 192))
        stand.subscription.acks.take_sets(consumer, [IndexAck(0, words, claimed)], lambda: answers.append(""))
    assert len(answers) == 5
    assert stand.cursor.live[0] == left & (1 << 200) - 1
    stand.subscription.acks.take(consumer, [0])
    stand.append(1)
    assert connection.ordinals == [0, 1]


@pytest.mark.parametrize("claimed", ABSURD)
def test_any_seek_leaves_the_next_one_possible(claimed: int) -> None:
    stand = Stand()
    stand.append(3, 1, 1)
    answers: list[str] = []
    for times, words in enumerate(((), (0b10,), (ALL,) * 100, (0,)), 1):
        _, connection = stand.join(permits=100)
        stand.subscription.seek_to(0, lambda: answers.append(""), words, claimed)
        assert connection.closed == 1
        assert len(answers) == times
    stand.join(permits=100)
    stand.subscription.seek_to(1)
    _, connection = stand.join(permits=100)
    assert connection.ordinals == [1, 2]


@pytest.mark.parametrize("step", ["reset", "acknowledge_indexes"])
def test_a_seek_that_fails_fences_nobody(step: str) -> None:
    stand = Stand()
    stand.append(3, 1, 1)
    stand.join(permits=100)

    def broken(*args: object) -> None:
        raise RuntimeError(step)

    setattr(stand.cursor, step, broken)
    with pytest.raises(RuntimeError, match=step):
        stand.subscription.seek_to(0, None, (0b10,), 3)
    delattr(stand.cursor, step)
    stand.subscription.seek_to(0)
    _, connection = stand.join(permits=100)
    assert connection.ordinals == [0, 1, 2]


def test_a_consumer_that_cannot_be_told_keeps_nobody_else() -> None:
    stand = Stand()
    stand.append(1)
    connections = [stand.join(f"c{i}", permits=10)[1] for i in range(3)]

    def broken() -> None:
        raise RuntimeError("no socket")

    connections[0].close = broken  # type: ignore[method-assign]
    stand.subscription.disconnect_all()
    assert [connection.closed for connection in connections[1:]] == [1, 1]
    assert not stand.subscription.consumers


def test_permits_end_where_an_int_does() -> None:
    class Open:
        writable = True

    state = ConsumerState("c", Open())
    for _ in range(3):
        state.flow((1 << 31) - 1)
    assert state.permits == PERMITS_MAX
    state.blocked = True
    for _ in range(3):
        state.flow((1 << 31) - 1)
    state.unblock()
    assert state.permits == PERMITS_MAX


def test_large_parts_survive_on_disk() -> None:
    """A decimal number of 20,000 bits is more than Python reads."""
    part = partial_batch(3, (0,) * 312 + (1,), 20_000)
    held = TransactionAcks(parts={3: part}, until=part._replace(ordinal=9))
    assert TransactionAcks.decode(held.encode()) == held
    assert TransactionAcks.decode(json.loads(json.dumps(held.encode()))) == held
    small = TransactionAcks(parts={3: partial_batch(3, (0b10,), 2)})
    assert TransactionAcks.decode([[], [[3, 0b01, 2]], None]) == small


def entry_of(count: int | None, payload: bytes, **more: object) -> bytes:
    return build_entry(replace(EntryMetadata("p", 1, 1, num_messages_in_batch=count), **more), payload)  # type: ignore[arg-type]


@pytest.mark.parametrize("claimed", [2, 100, 101, 5000, (1 << 31) - 1])
def test_an_entry_holds_what_it_has_room_for(claimed: int) -> None:
    """Whatever SEND claims beside it."""
    packed = {"compression": CompressionType.ZSTD}
    for entry, messages in (
        (entry_of(None, b""), 1),
        (entry_of(1, b"x" * 10), 1),
        (entry_of(100, b"x" * 600), 100),
        (entry_of(101, b"x" * 600), 100),
        (entry_of((1 << 31) - 1, b""), 1),
        (entry_of(-5, b"x" * 600), 1),
        (entry_of(5000, b"x" * 600, **packed), 5000),
        (entry_of((1 << 31) - 1, b"x" * 600, **packed), 1 << 20),
        (b"\x0e\x01" + bytes(4) + b"\xff\xff\xff\xff" + b"no metadata", 1),
        (b"", 1),
    ):
        assert messages_in(entry, claimed) == messages
    assert messages_in(entry_of(100, b"x" * 600), 1) == messages_in(entry_of(100, b"x" * 600), -3) == 1


def test_an_honest_claim_needs_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entry_of(100, b"x" * 600)
    monkeypatch.setattr("magnetar.protocol.entries.parse", None)
    assert messages_in(entry, 100) == 100
