"""Effects and messages happen together, once: with SQLite, and with PostgreSQL where it is installed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.databases.inbox import Inbox
from magnetar.client.databases.outbox import OutboxTable
from magnetar.client.databases.sql_dialect import POSTGRESQL, SQLITE, SqlDialect
from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.entries import metadata_of
from tests.support.postgresql import postgresql

Connect = Callable[[], Any]
T = "persistent://public/default/t"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SqlDialect, Connect]]:
    place = tmp_path_factory.mktemp("database")
    if request.param == "sqlite":
        yield SQLITE, lambda: sqlite3.connect(place / "db", isolation_level="IMMEDIATE", timeout=0.2)
        return
    if shutil.which("postgres") is None:
        pytest.skip("PostgreSQL is not installed here")
    with postgresql() as connect:
        yield POSTGRESQL, connect


def message(entry: int, index: int = -1) -> Message[bytes]:
    metadata = metadata_of(EntryMaker("p").single(OutgoingMessage(b""), 0, 1_000 + entry))
    return Message(Envelope(T, -1, (7, entry), metadata, 0, 0, None), b"m", index, None)


def test_a_message_has_its_effect_once(database: tuple[SqlDialect, Connect]) -> None:
    """Also after a transaction that was taken back, and for each subscription by itself."""
    dialect, connect = database
    inbox = Inbox(dialect)
    with closing(connect()) as db:
        inbox.create(db)
        inbox.create(db)
        db.commit()
        assert inbox.first_time(db, "s", message(1))
        db.rollback()
        assert inbox.first_time(db, "s", message(1))
        db.commit()
        assert not inbox.first_time(db, "s", message(1))
        assert inbox.first_time(db, "s", message(1, 3)) and inbox.first_time(db, "other", message(1))
        assert inbox.first_time(db, "s", message(2))
        db.commit()
        assert inbox.forget(db, "s", 1_002) == 2
        assert inbox.first_time(db, "s", message(1)) and not inbox.first_time(db, "s", message(2))
        db.rollback()


def test_numbers_follow_the_commits(database: tuple[SqlDialect, Connect]) -> None:
    """A row that was added first and committed last has the higher sequence id, above what the broker has."""
    dialect, connect = database
    outbox = OutboxTable(dialect, "box")
    with closing(connect()) as db, closing(connect()) as other:
        outbox.create(db)
        db.commit()
        if dialect is POSTGRESQL:  # SQLite has one writer at a time
            outbox.add(other, "t", b"late", {"a": "b"}, "k", 5, 6)
        outbox.add(db, "t", b"early")
        outbox.add(db, "u", b"elsewhere")
        db.commit()
        outbox.number(db, T, 41, 10)
        db.commit()
        if dialect is not POSTGRESQL:
            outbox.add(other, "t", b"late", {"a": "b"}, "k", 5, 6)
        other.commit()
        outbox.number(db, T, -1, 10)
        db.commit()
        rows = outbox.numbered(db, T, 10)
        assert [(row.payload, row.sequence_id) for row in rows] == [(b"early", 42), (b"late", 43)]
        assert (rows[1].properties, rows[1].partition_key, rows[1].event_timestamp) == ({"a": "b"}, "k", 5)
        assert outbox.topics(db) == [T, "persistent://public/default/u"]
        outbox.delete(db, rows)
        db.commit()
        assert outbox.numbered(db, T, 10) == [] and outbox.topics(db) == ["persistent://public/default/u"]
        outbox.add(db, "t", b"next")
        outbox.number(db, T, -1, 10)
        assert [row.sequence_id for row in outbox.numbered(db, T, 10)] == [44], "numbers are not used twice"


def test_what_cannot_be_sent_is_refused_when_it_is_added(tmp_path: Path) -> None:
    outbox = OutboxTable(SQLITE)
    with closing(sqlite3.connect(tmp_path / "db")) as db:
        outbox.create(db)
        with pytest.raises(InvalidValueError, match="persistent"):
            outbox.add(db, "non-persistent://public/default/t", b"")
        with pytest.raises(InvalidValueError, match="bytes"):
            outbox.add(db, "t", "text")  # type: ignore[arg-type]
        with pytest.raises(InvalidValueError, match="from 0 to"):
            outbox.add(db, "t", b"", deliver_at=-1)
        with pytest.raises(InvalidValueError, match="texts"):
            outbox.add(db, "t", b"", {"a": 1})  # type: ignore[dict-item]
        assert outbox.topics(db) == []
    for name in ("a; DROP TABLE x", "", "a.b.c", "1", "x" * 100):
        with pytest.raises(InvalidValueError, match="name"):
            OutboxTable(SQLITE, name)
        with pytest.raises(InvalidValueError, match="name"):
            Inbox(SQLITE, name)
