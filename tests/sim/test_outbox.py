"""An outbox and its relay through crashes of both: each message is stored once, in the order of the commits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from magnetar.app.node import Broker
from magnetar.client.aio.client import Client
from magnetar.client.databases.outbox import OutboxRow, OutboxTable
from magnetar.client.databases.outbox_relay import OutboxRelay
from magnetar.client.databases.sql_dialect import SQLITE, SqlConnection
from magnetar.client.machines.message_id import MessageId
from magnetar.config.settings import Settings
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.simloop import SimClock
from tests.sim.world import T, World, caught, run_seeds

TOTAL = 50
SETTINGS = Settings(brokerDeduplicationEnabled=True)


def new_client(world: World) -> Client:
    url = f"pulsar://{HOST}:{PORT}"
    return Client(url, operation_timeout_seconds=20, clock=SimClock(world.loop), rng=world.rng)


async def everything_once(world: World) -> None:
    """Whatever dies, each committed message is in the topic once, in the order of the commits."""
    with TemporaryDirectory() as place:
        await _everything_once(world, Path(place) / "db")


async def _everything_once(world: World, path: Path) -> None:
    await world.boot()
    rng, outbox = world.rng, OutboxTable(SQLITE)

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level="IMMEDIATE")

    with closing(connect()) as db:
        outbox.create(db)
        db.commit()
    async with new_client(world) as client:
        await (await client.subscribe(T, "keeps what is stored")).close()

    async def application() -> None:
        for number in range(TOTAL):
            with closing(connect()) as db:
                outbox.add(db, T, b"%d" % number, partition_key=f"k{number}")
                if rng.random() < 0.2:
                    db.rollback()
                    outbox.add(db, T, b"%d" % number)
                db.commit()
            await asyncio.sleep(rng.uniform(0.0, 0.2))

    async def trouble() -> None:
        for _ in range(3):
            await asyncio.sleep(rng.uniform(0.3, 2.0))
            if rng.random() < 0.6:
                await world.crash()
            else:
                for link in world.network.links:
                    link.cut()

    working = asyncio.gather(application(), trouble())
    for _ in range(100):
        async with new_client(world) as client:
            relay = world.loop.create_task(OutboxRelay(client, outbox, connect, poll_seconds=0.1).run())
            await asyncio.wait([relay], timeout=rng.uniform(0.1, 3.0))
            relay.cancel()
            await asyncio.wait([relay])
        with closing(connect()) as db:
            if working.done() and not outbox.topics(db):
                break
    await working
    stored = await _read(world)
    assert stored == list(range(TOTAL)), stored


async def _read(world: World) -> Sequence[int]:
    async with new_client(world) as client:
        reader = await client.create_reader(T, MessageId.earliest)
        found: list[int] = []
        while await reader.has_message_available():
            found.append(int((await reader.read_next(5_000)).data()))
        return found


def test_everything_once() -> None:
    """By a fixed name, without a time-out, with sequence ids of its own (rule 3.4.12)."""
    run_seeds(everything_once, 4, settings=SETTINGS)


def as_it_is(_: Broker) -> None:
    """What is wrong in the last simulations is the relay."""


def test_a_relay_that_numbers_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = OutboxTable.number

    def anew(self: OutboxTable, connection: SqlConnection, topic: str, above: int, limit: int) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"UPDATE {self._table} SET sequence = NULL")
        whole(self, connection, topic, above, limit)

    monkeypatch.setattr(OutboxTable, "number", anew)
    caught(everything_once, as_it_is, saying="[", settings=SETTINGS)


def test_a_relay_that_deletes_before_the_receipt_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = OutboxTable.numbered

    def early(self: OutboxTable, connection: SqlConnection, topic: str, limit: int) -> list[OutboxRow]:
        found = whole(self, connection, topic, limit)
        self.delete(connection, found)
        return found

    monkeypatch.setattr(OutboxTable, "numbered", early)
    caught(everything_once, as_it_is, saying="[", settings=SETTINGS)
