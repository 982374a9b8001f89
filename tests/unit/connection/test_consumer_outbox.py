"""What of a run of entries goes to a consumer's client, under which ids and numbers, and how much that counts for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.consumer_outbox import ConsumerOutbox
from magnetar.broker.connection.indexed_outbox import IndexedOutbox
from magnetar.broker.connection.old_client_outbox import OldClientOutbox
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder
from magnetar.storage.ledgers.stored_run import NO_INDEX, StoredRun
from magnetar.testing.rawclient import make_entry

ENTRIES = [make_entry(b"x" * (300 + number), producer="p", sequence_id=number) for number in range(5)]
"""Far larger than what stands before them, so that no estimate is right that forgets either."""
CHECKSUM_BYTES = 6
"""The magic number and the sum; the test's decoder puts them before entries that have none."""
RUN = StoredRun(100, 7, 20, ENTRIES, None)


class Outbox:
    """Keeps what is put in, and how much that is said to be."""

    writable = True

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.said: list[int] = []

    def grew(self, size: int) -> None:
        self.said.append(size)


def consumer() -> tuple[ConsumerOutbox, Outbox]:
    out = Outbox()
    return ConsumerOutbox(cast(Any, SimpleNamespace(out=out)), 9, 3), out


def indexed() -> tuple[ConsumerOutbox, Outbox]:
    out = Outbox()
    return IndexedOutbox(cast(Any, SimpleNamespace(out=out)), 9, 3), out


def old() -> tuple[ConsumerOutbox, Outbox]:
    out = Outbox()
    return OldClientOutbox(cast(Any, SimpleNamespace(out=out)), 9, 3), out


def heard(out: Outbox) -> list[c.CommandMessage]:
    found: list[Any] = Decoder().feed(b"".join(out.parts))
    # about what they are, in one call: the flush that is due looks at it
    (said,) = out.said
    assert abs(said - sum(map(len, out.parts))) <= 20 * len(found)
    assert all(one.consumer_id == 9 and one.message_id.partition == 3 for one in found)
    return found


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("stop", range(1, 6))
@pytest.mark.parametrize("epoch", [None, 4])
def test_a_stretch_of_a_run(start: int, stop: int, epoch: int | None) -> None:
    """Each entry once, and no other: one alone, a part and the whole have ways of their own."""
    if start >= stop:
        return
    connection, out = consumer()
    connection.deliver(RUN, start, stop, epoch)
    found = heard(out)
    assert [(one.message_id.ledger, one.message_id.entry, one.entry) for one in found] == [
        (7, 20 + index, ENTRIES[index]) for index in range(start, stop)
    ]
    assert all(one.consumer_epoch == epoch and not one.redelivery_count and not one.ack_set for one in found)


@pytest.mark.parametrize("epoch", [None, 4])
def test_picked_entries_of_a_run(epoch: int | None) -> None:
    connection, out = consumer()
    connection.deliver_picked(RUN, [0, 3, 4], epoch)
    assert [(one.message_id.entry, one.entry, one.consumer_epoch) for one in heard(out)] == [
        (20 + index, ENTRIES[index], epoch) for index in (0, 3, 4)
    ]


@pytest.mark.parametrize("ack_set", [(), (5, -1)])
def test_one_entry_that_comes_again(ack_set: tuple[int, ...]) -> None:
    connection, out = consumer()
    connection.deliver_one(RUN, 2, 6, ack_set, 4)
    (one,) = heard(out)
    assert (one.message_id.entry, one.entry) == (22, ENTRIES[2])
    assert (one.redelivery_count, one.ack_set, one.consumer_epoch) == (6, ack_set, 4)


Way = Callable[[ConsumerOutbox], None]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (lambda to: to.deliver(RUN, 1, 4, None), [(1, 0, ()), (2, 0, ()), (3, 0, ())]),
        (lambda to: to.deliver(RUN, 2, 3, None), [(2, 0, ())]),
        (lambda to: to.deliver_picked(RUN, [0, 3, 4], None), [(0, 0, ()), (3, 0, ()), (4, 0, ())]),
        (lambda to: to.deliver_one(RUN, 2, 6, (5, -1), None), [(2, 6, (5, -1))]),
    ],
)
def test_clients_that_know_no_checksum_get_the_same_without_it(
    way: Way, expected: list[tuple[int, int, tuple[int, ...]]]
) -> None:
    connection, out = old()
    way(connection)
    assert [(one.message_id.entry, one.redelivery_count, one.ack_set, one.entry) for one in heard(out)] == [
        (20 + index, count, ack_set, ENTRIES[index]) for index, count, ack_set in expected
    ]
    current, full = consumer()
    way(current)
    assert len(b"".join(full.parts)) - len(b"".join(out.parts)) == CHECKSUM_BYTES * len(expected)


def test_entries_that_are_kept_nowhere_have_no_checksum_for_such_clients_either() -> None:
    connection, out = old()
    connection.deliver_unstored(ENTRIES)
    assert [one.entry for one in heard(out)] == ENTRIES
    current, full = consumer()
    current.deliver_unstored(ENTRIES)
    assert len(b"".join(full.parts)) - len(b"".join(out.parts)) == CHECKSUM_BYTES * len(ENTRIES)


def test_entries_that_are_kept_nowhere() -> None:
    connection, out = consumer()
    connection.deliver_unstored(ENTRIES)
    found = heard(out)
    assert [one.entry for one in found] == ENTRIES
    assert {(one.message_id.ledger, one.message_id.entry) for one in found} == {(0, 0)}


def of(one: c.CommandMessage) -> int | None:
    return None if one.broker_metadata is None else one.broker_metadata.index


@pytest.mark.parametrize("first", [0, 126, 70_000, NO_INDEX])
@pytest.mark.parametrize("counts", [None, [1, 5, 0, 2, 1]])
def test_indexes_before_entries(first: int, counts: list[int] | None) -> None:
    """Of the last message of each; none before an entry without messages, or if it is not known."""
    run = RUN._replace(message_index=first, counts=counts)
    expected: list[int | None] = [first + n for n in ((0, 1, 2, 3, 4) if counts is None else (0, 5, 5, 7, 8))]
    if counts is not None:
        expected[2] = None
    if first < 0:
        expected = [None] * 5
    for start in range(5):
        for stop in range(start + 1, 6):
            connection, out = indexed()
            connection.deliver(run, start, stop, 4)
            found = heard(out)
            assert [(of(one), one.entry, one.consumer_epoch, one.redelivery_count) for one in found] == [
                (expected[n], ENTRIES[n], 4, 0) for n in range(start, stop)
            ]
    connection, out = indexed()
    connection.deliver_picked(run, [1, 2, 4], None)
    assert [(of(one), one.message_id.entry) for one in heard(out)] == [(expected[n], 20 + n) for n in (1, 2, 4)]
    connection, out = indexed()
    connection.deliver_one(run, 3, 6, (5,), None)
    assert [(of(one), one.redelivery_count, one.ack_set) for one in heard(out)] == [(expected[3], 6, (5,))]


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_consumer_is_closed_once_and_on_a_connection_that_is_there(connected: bool, known: bool) -> None:
    said: list[c.Command] = []
    consumers = {9: object(), 10: object()} if known else {10: object()}
    session = SimpleNamespace(
        out=Outbox(), consumers=consumers, closed=not connected, send=said.append, protocol_version=5
    )
    connection = ConsumerOutbox(cast(Any, session), 9, -1)
    for _ in range(2):
        connection.close()
    assert list(consumers) == [10]
    assert said == ([c.CommandCloseConsumer(9, -1)] if connected and known else [])


def test_what_a_consumer_hears_besides() -> None:
    said: list[c.Command] = []
    session: Any = SimpleNamespace(out=Outbox(), send=said.append, protocol_version=12)
    connection = ConsumerOutbox(session, 9, -1)
    assert connection.session is session
    assert connection.writable
    connection.active_change(True)
    connection.active_change(False)
    connection.end_of_topic()
    assert said == [
        c.CommandActiveConsumerChange(9, True), c.CommandActiveConsumerChange(9, False), c.CommandReachedEndOfTopic(9)
    ]  # fmt: skip
