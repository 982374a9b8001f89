"""Memory stays bounded whatever the backlog: a stopped consumer, a slow disk and a deaf client cost a fixed amount."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.config.settings import Settings
from magnetar.protocol.commands import CommandMessage, InitialPosition, SubType
from magnetar.storage.ledgers.entry_cache import EntryCache
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.network import Direction
from magnetar.testing.rawclient import RawClient
from tests.sim.clients import Publisher
from tests.sim.world import T, World, caught, run_seeds

S = "sub"
CACHE = 200_000
STORAGE = StoreSettings(
    segment_bytes=100_000, cache_bytes=CACHE, ledger_entries_max=300, ledger_min_rollover_ms=0, ledger_bytes_max=1 << 20
)
EXTENT = 256 << 10
"""What one group of one ledger may add beyond the cache's budget, and what one read takes at least."""


async def stopped(world: World) -> None:
    """3,000 entries of 1 KB for a consumer without permits, one that reads nothing, and one that catches up."""
    await world.boot()
    publisher = Publisher(world, "p", T, size=1_000, window=60)
    world.start(publisher.run(3_000))
    await asyncio.sleep(0.05)
    idle, deaf, late = [await RawClient.open(HOST, PORT) for _ in range(3)]
    for client in (idle, deaf, late):
        await client.connect()
    await idle.subscribe(T, "idle", SubType.Shared, initial_position=InitialPosition.Earliest)
    frozen = await deaf.subscribe(T, "deaf", SubType.Shared, initial_position=InitialPosition.Earliest)
    frozen.flow(100_000)
    await asyncio.sleep(0.02)
    next(link for link in world.network.links if link.client is deaf.transport).freeze(Direction.TO_CLIENT)
    consumer = await late.subscribe(T, S, SubType.Shared, initial_position=InitialPosition.Earliest)
    flowing = False
    for _ in range(400):
        await asyncio.sleep(0.05)
        broker = world.machine.broker
        assert broker.store.cache.bytes <= CACHE + EXTENT
        assert broker.store.journal.pending_bytes <= 60 * 1_100
        for listener in broker.connections:
            waiting = listener.session.transport.get_write_buffer_size()
            assert (
                waiting + listener.session.out.size
                <= Settings().pulsarChannelWriteBufferHighWaterMark + EXTENT + 100_000
            ), waiting
        if publisher.receipts == 3_000 and not flowing:
            flowing = True
            consumer.flow(3_000)
        if flowing and len(late._inbox.get(CommandMessage, ())) == 3_000:
            break
    world.check_tasks()
    assert publisher.receipts == 3_000
    assert len(late._inbox.get(CommandMessage, ())) == 3_000


def test_memory_is_bounded() -> None:
    run_seeds(stopped, 3, storage=STORAGE)


def test_a_cache_without_a_budget_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EntryCache, "_make_room", lambda self: None)
    caught(stopped, lambda broker: None, storage=STORAGE)
