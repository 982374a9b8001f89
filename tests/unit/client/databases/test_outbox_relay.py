"""The relay of an outbox in trouble: with one topic, with one message, and when it is cancelled."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.databases.outbox import OutboxTable
from magnetar.client.databases.outbox_relay import OutboxRelay
from magnetar.client.databases.sql_dialect import SQLITE
from magnetar.client.errors import MessageTooLargeError, RefusedError
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import InvalidValueError, ServerError

Connect = Callable[[], sqlite3.Connection]


class FakeClient:
    """Makes producers; of a topic that is refused none."""

    def __init__(self, refused: str = "", largest: int = 100) -> None:
        self.refused, self.largest = refused, largest
        self.stored: list[tuple[int, bytes]] = []
        self.open: list[str] = []
        self.sending = asyncio.Event()
        self.silent = False

    async def create_producer(self, topic: str, name: str, **_: Any) -> FakeProducer:
        if self.refused and topic.endswith(self.refused):
            raise RefusedError(f"open a producer on {topic}", ServerError.AuthorizationError, "no")
        assert topic not in self.open, "of two producers of a name the second is refused"
        self.open.append(topic)
        return FakeProducer(self, topic)


class FakeProducer:
    def __init__(self, client: FakeClient, topic: str) -> None:
        self._client, self._topic = client, topic

    def last_sequence_id(self) -> int:
        return -1

    async def send_message(self, message: OutgoingMessage) -> None:
        client = self._client
        client.sending.set()
        if client.silent:
            await asyncio.Event().wait()
        if len(message.payload) > client.largest:
            raise MessageTooLargeError(self._topic, len(message.payload), client.largest)
        assert message.sequence_id is not None
        client.stored.append((message.sequence_id, message.payload))

    async def close(self) -> None:
        self._client.open.remove(self._topic)


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    def made() -> sqlite3.Connection:
        return sqlite3.connect(tmp_path / "db", check_same_thread=False)

    return made


@pytest.fixture
def outbox(connect: Connect) -> OutboxTable:
    table = OutboxTable(SQLITE)
    with closing(connect()) as db:
        table.create(db)
        db.commit()
    return table


def leave(outbox: OutboxTable, connect: Connect, topic: str, *contents: bytes) -> None:
    with closing(connect()) as db:
        for content in contents:
            outbox.add(db, topic, content)
        db.commit()


def waiting(outbox: OutboxTable, connect: Connect) -> list[str]:
    with closing(connect()) as db:
        return [topic.rpartition("/")[2] for topic in outbox.topics(db)]


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110  # another thread's work
        await asyncio.sleep(0.01)


def test_trouble_with_one_topic_holds_up_no_other(outbox: OutboxTable, connect: Connect) -> None:
    """A topic that refused the relay had all topics after it wait for ever."""
    for topic in ("a", "b", "c"):
        leave(outbox, connect, topic, topic.encode())

    async def run() -> None:
        client: Any = FakeClient(refused="/b")
        with pytest.raises(RefusedError):
            await OutboxRelay(client, outbox, connect).send_waiting()
        assert [content for _, content in client.stored] == [b"a", b"c"]
        client.open.clear()
        leave(outbox, connect, "c", b"more")
        relay = OutboxRelay(client, outbox, connect, poll_seconds=0.01)
        running = asyncio.create_task(relay.run())
        await until(lambda: waiting(outbox, connect) == ["b"])
        client.refused = ""
        await until(lambda: not waiting(outbox, connect))
        relay.stop()
        await running
        assert not client.open

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_message_that_is_too_large_stops_no_other_and_keeps_no_number(outbox: OutboxTable, connect: Connect) -> None:
    """All that were sent with it stayed, and were sent again each time. With a number below theirs a broker that
    removes duplicates would take it for one of them, once it is not too large any more: it would be lost."""
    leave(outbox, connect, "t", b"one", b"x" * 1_000, b"two")

    async def run() -> None:
        client: Any = FakeClient()
        relay = OutboxRelay(client, outbox, connect)
        with pytest.raises(MessageTooLargeError):
            await relay.send_waiting()
        assert client.stored == [(0, b"one"), (2, b"two")]
        leave(outbox, connect, "t", b"three")
        with pytest.raises(MessageTooLargeError):
            await relay.send_waiting()
        client.largest = 10_000
        assert await relay.send_waiting() == 1
        assert [number for number, _ in client.stored] == [0, 2, 4, 5]
        assert waiting(outbox, connect) == []

    asyncio.run(run())


def test_a_relay_that_is_cancelled_leaves_its_name(outbox: OutboxTable, connect: Connect) -> None:
    """Its producers stayed open, and the next relay of the same client was refused for ever."""
    leave(outbox, connect, "t", b"one")

    async def run() -> None:
        client: Any = FakeClient()
        client.silent = True
        first = asyncio.create_task(OutboxRelay(client, outbox, connect).run())
        await client.sending.wait()
        first.cancel()
        await asyncio.wait([first])
        assert not client.open
        client.silent = False
        assert await OutboxRelay(client, outbox, connect).send_waiting() == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    "given",
    [
        {"event_timestamp": 1.5}, {"deliver_at": True}, {"deliver_at": "5"}, {"partition_key": 7},
        {"partition_key": b"k"}, {"partition_key": "\ud800"}, {"properties": {"a": "\ud800"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_would_stop_the_relay_is_not_added(outbox: OutboxTable, connect: Connect, given: dict[str, Any]) -> None:
    """The database takes it, and the relay could never send it, nor what comes after it."""
    with closing(connect()) as db:
        with pytest.raises(InvalidValueError):
            outbox.add(db, "t", b"", **given)
        db.commit()
    assert waiting(outbox, connect) == []
