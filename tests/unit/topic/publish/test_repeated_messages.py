"""What deduplication does with one message after the other, and when each receipt is sent (rules of 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, cast

import pytest

from magnetar.broker.topic.publish.deduplication import Deduplication, DeduplicationSettings
from magnetar.broker.topic.publish.producer import PendingEntry, Producer, ProducerInfo
from magnetar.broker.topic.publish.receipt_order import OrderedReceipts
from magnetar.broker.topic.publish.sequence_ids import SequenceIds
from magnetar.model.errors import NotAllowedError, PersistenceError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry

ENTRY = build_entry(EntryMetadata("p", 0, 1), b"x")


class Log:
    """Takes entries and makes them durable when the test says so; with its producer's connection in one."""

    name = "t"
    session = "client"

    def __init__(self) -> None:
        self.ids = SequenceIds()
        self.touched = 0
        self.pending: list[PendingEntry] = []
        self.counts: list[int] = []
        self.end = 0
        self.sent: list[tuple[int, int]] = []
        """Sequence id and entry of each receipt; entry -1: it was there already."""
        self.log: list[str] = []
        self.producer: Producer

    def feature_state(self, name: str) -> Log:
        return self

    def open(self, make: object) -> SequenceIds:
        return self.ids

    def touch(self) -> None:
        self.touched += 1

    def append(self, entry: bytes, messages: int, tag: Any) -> int:
        self.pending.append(tag)
        self.counts.append(messages)
        return len(self.pending)

    def durable(self, count: int | None = None) -> None:
        """The first so many entries; all without a number."""
        done = self.pending[:count]
        del self.pending[: len(done)]
        if not self.pending:
            self.ids.changes()
            self.ids.durable()
        if done:
            first, self.end = self.end, self.end + len(done)
            cast(Any, self.producer.connection).receipts(3, first, done)

    # the connection
    def receipts(self, ledger: int, first_entry: int, results: Sequence[PendingEntry]) -> None:
        assert results, "receipts for no message"
        assert ledger == (-1 if first_entry < 0 else 3)
        assert first_entry >= 0 or len(results) == 1
        self.sent += [(one.sequence_id, first_entry + at if ledger >= 0 else -1) for at, one in enumerate(results)]

    def failed(self, results: Sequence[PendingEntry], error: PersistenceError) -> None:
        self.log.append(f"failed {len(results)}")

    def dropped(self, count: int) -> None:
        self.log.append(f"dropped {count}")

    def unstored(self, results: Sequence[PendingEntry], *, dropped: bool) -> None:
        self.log.append(f"unstored {len(results)} {dropped}")

    def close(self) -> None:
        self.log.append("close")

    def fence(self) -> None:
        self.log.append("fence")

    def producing(self, name: str = "p") -> Producer:
        info = ProducerInfo(1, name, True, 0, c.ProducerAccessMode.Shared, False, "", "", "", {}, False)
        self.producer = Producer(info, cast(Any, self), cast(Any, self))
        deduplication = Deduplication(cast(Any, self), DeduplicationSettings(), lambda one: True, 0)
        self.producer.publish = deduplication.way_in(self.producer)
        assert deduplication.way_in(self.producer) is not None
        assert cast(Any, self.producer.connection).behind is self, "wrapped once, however often it is asked for"
        assert self.producer.connection.session == "client"
        return self.producer

    def send(self, sequence_id: int, highest: int | None = None, **more: Any) -> None:
        count = 1 if highest is None else highest - sequence_id + 1
        entry = more.get("entry", ENTRY)
        chunk, marker = more.get("chunk", False), more.get("marker", False)
        self.producer.publish(c.CommandSend(1, sequence_id, count, highest, chunk, None, marker, None, entry))


def test_what_was_sent_twice_is_stored_once_and_answered_twice() -> None:
    log = Log()
    log.producing()
    for sequence_id in (0, 1, 2):
        log.send(sequence_id)
    assert (len(log.pending), log.touched) == (3, 3)
    log.durable()
    for sequence_id in (0, 1, 2):
        log.send(sequence_id)
    assert (len(log.pending), log.touched) == (0, 3)
    assert log.sent == [(0, 0), (1, 1), (2, 2), (0, -1), (1, -1), (2, -1)]
    log.send(3)
    log.durable()
    assert log.sent[-1] == (3, 3)


def test_an_id_that_is_in_flight_is_not_known_to_be_a_repetition() -> None:
    """The first one may still fail (rule 3.4.4)."""
    log = Log()
    log.producing()
    log.send(5)
    for sequence_id in (5, 4):
        with pytest.raises(PersistenceError, match=r"\[t\]\[p\]Cannot determine whether the message is a duplicate"):
            log.send(sequence_id)
    assert len(log.pending) == 1
    log.durable()
    log.send(5)
    log.send(4)
    assert log.sent == [(5, 0), (5, -1), (4, -1)]


@pytest.mark.parametrize(
    ("first", "last", "outcome"),
    [(3, 9, "there"), (0, 0, "there"), (9, 10, "refused"), (5, 12, "refused"), (10, 12, "new"), (11, 11, "new")],
)
def test_a_batch_is_there_is_new_or_is_neither(first: int, last: int, outcome: str) -> None:
    """It is judged by its first id, and counts up to its highest."""
    log = Log()
    log.producing()
    log.send(0, 9)
    log.durable()
    if outcome == "refused":
        with pytest.raises(NotAllowedError, match=f"sequence ids {first} to {last} begins with .* stored up to 9; "):
            log.send(first, last)
    else:
        log.send(first, last)
    assert len(log.pending) == (outcome == "new")
    assert log.sent[1:] == [(first, -1)] * (outcome == "there")
    log.durable()
    if outcome == "new":
        log.send(last)
        assert log.sent[-1] == (last, -1)
    else:
        assert log.ids.last("p") == 9


def test_a_highest_id_below_the_first_means_nothing() -> None:
    """As in SEND without deduplication (rule 3.3.3)."""
    log = Log()
    log.producing()
    log.send(5, 3)
    assert [entry.highest_sequence_id for entry in log.pending] == [0]
    log.send(6, 6)
    assert [entry.highest_sequence_id for entry in log.pending] == [0, 6]
    log.durable()
    assert log.ids.last("p") == 6


@pytest.mark.parametrize("broken", [False, True])
def test_of_a_chunked_message_the_last_chunk_says_that_it_is_there(broken: bool) -> None:
    """All of them have its sequence id; what cannot be read is a message of its own (rule 3.4.7)."""
    log = Log()
    log.producing()

    def chunk(number: int) -> bytes:
        return build_entry(EntryMetadata("p", 4, 1, uuid="u", num_chunks_from_msg=3, chunk_id=number), b"x")

    for number in (0, 1):
        log.send(4, entry=chunk(number), chunk=True)
        assert log.touched == 0
    log.send(4, entry=b"?" * 20 if broken else chunk(2), chunk=True)
    assert (log.touched, len(log.pending)) == (1, 3)
    log.durable()
    assert log.ids.last("p") == 4
    log.send(4, entry=chunk(0), chunk=True)
    assert len(log.pending) == 1, "the first chunks are stored again, and nobody joins them"
    log.send(4, entry=chunk(2), chunk=True)
    log.durable()
    assert log.sent[3:] == [(4, 3), (4, -1)]


@pytest.mark.parametrize(
    ("fields", "last"),
    [
        ({}, True), ({"chunk_id": 0}, False), ({"chunk_id": 0, "num_chunks_from_msg": 1}, True),
        ({"chunk_id": 1, "num_chunks_from_msg": 3}, False), ({"chunk_id": 2, "num_chunks_from_msg": 3}, True),
    ],
)  # fmt: skip
def test_a_chunk_is_the_last_if_its_message_says_how_many_it_has(fields: dict[str, int], last: bool) -> None:
    log = Log()
    log.producing()
    log.send(4, entry=build_entry(EntryMetadata("p", 4, 1, uuid="u", **fields), b"x"), chunk=True)  # type: ignore[arg-type]
    assert log.touched == last


def test_markers_are_not_judged() -> None:
    log = Log()
    log.producing()
    for _ in range(2):
        log.send(7, marker=True)
    assert (len(log.pending), log.touched) == (2, 0)
    log.send(7)
    log.durable()
    assert log.ids.last("p") == 7


@pytest.mark.parametrize("seed", range(15))
def test_receipts_come_in_the_order_of_the_messages(seed: int) -> None:
    """A repetition waits for what was sent before it, whatever groups the disk makes of that."""
    rng = Random(seed)
    log = Log()
    log.producing()
    following, settled = 0, 0
    asked: list[int] = []
    for _ in range(120):
        if following == settled or rng.random() < 0.5 or not settled:
            asked.append(following)
            log.send(following)
            following += 1
        elif not log.pending or rng.random() < 0.6:
            again = rng.randrange(settled)
            asked.append(again)
            log.send(again)
        if rng.random() < 0.3:
            log.durable(rng.choice((1, 2, None)))
            if not log.pending:
                settled = following
    log.durable()
    assert [sequence_id for sequence_id, _ in log.sent] == asked
    stored = [entry for _, entry in log.sent if entry >= 0]
    assert stored == list(range(following))


def test_who_waits_for_its_turn_is_dropped_with_its_producer() -> None:
    """After a failed write, a take-over or an unload: the client sends all of it again."""
    for end, said in (("close", "close"), ("fence", "fence")):
        log = Log()
        producer = log.producing()
        log.send(0)
        log.durable()
        log.send(1)
        log.send(0)
        log.send(0)
        assert log.sent == [(0, 0)]
        getattr(producer.connection, end)()
        assert log.log == ["dropped 2", said]
        log.log.clear()
        getattr(producer.connection, end)()
        assert log.log == [said], "nobody waits any more"
        log.durable()
        assert log.sent == [(0, 0), (1, 1)]


def test_what_else_a_connection_is_told_goes_through() -> None:
    log = Log()
    connection = log.producing().connection
    assert isinstance(connection, OrderedReceipts)
    connection.failed([cast(Any, None)] * 2, PersistenceError("full"))
    connection.dropped(3)
    connection.unstored([cast(Any, None)], dropped=True)
    assert log.log == ["failed 2", "dropped 3", "unstored 1 True"]


def test_who_waits_for_a_receipt_that_is_dropped_is_dropped_with_it() -> None:
    """A producer that was closed without its connection: what it sent counts as decided, or the connection would be
    held up for good."""
    log = Log()
    producer = log.producing()
    log.send(0)
    log.durable()
    log.send(1)
    log.send(0)
    producer.close()
    producer.connection.dropped(1)
    assert log.log == ["dropped 1", "dropped 1"]
    producer.connection.dropped(1)
    assert log.log[2:] == ["dropped 1"]
