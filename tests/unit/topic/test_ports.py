"""Storage fits the seams; mypy does the checking, this module gives it something to check."""

from __future__ import annotations

from functools import partial

from magnetar.broker.topic.ports import ConsumerConnection, EntryRun, Log, SubscriptionCursor
from magnetar.storage.ledgers.cursor import Cursor as StoredCursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from tests.support.subscription_fakes import FakeConnection, FakeCursor, FakeLog


def as_log(log: ManagedLedger | FakeLog) -> Log:
    return log


def as_cursor(cursor: StoredCursor | FakeCursor) -> SubscriptionCursor:
    return cursor


def as_run(run: StoredRun) -> EntryRun:
    return run


def as_connection(connection: FakeConnection) -> ConsumerConnection:
    return connection


def test_fake_and_stored_cursor_have_one_face() -> None:
    log = FakeLog()
    log.append(*[1] * 10)
    stored = StoredCursor(_Ends(), 1, "c", -1, None)
    for cursor in (as_cursor(stored), as_cursor(FakeCursor(log))):
        answers: list[str] = []
        cursor.acknowledge([0, 2, 5, 99], partial(answers.append, "acked"))
        assert answers == ["acked"]
        assert (cursor.mark_delete, cursor.backlog()) == (0, 7)
        assert (cursor.next_unacknowledged(2), cursor.next_acknowledged(3, 9), cursor.next_acknowledged(6, 9)) == (
            3,
            5,
            9,
        )
        assert not cursor.acknowledge_indexes(1, (6,), 4)
        assert cursor.has_partial_batches
        assert not cursor.acknowledge_indexes(1, (5,), 4)
        assert cursor.remaining_indexes(1) == (4,)
        assert cursor.acknowledge_indexes(1, (0,), 4)
        assert cursor.mark_delete == 2
        cursor.reset(1)
        assert (cursor.mark_delete, cursor.backlog()) == (0, 9)


class _Ends:
    id = 1
    first = 0
    end = 10
