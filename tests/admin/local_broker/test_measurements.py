"""What the broker shows of itself as a whole, counted again from what was done and from what lies on its disk."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from magnetar.admin.local_broker.stats.measurements import measurements
from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.storage.log import records
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.world import SMALL, T, World, run_seed
from tests.support.conversations import connected, talk

NOTHING_OF_THE_KIND = (
    "pulsar_connection_create_fail_count", "pulsar_connection_closed_total_count",
    "pulsar_broker_throttled_connections", "pulsar_broker_pending_bytes_to_dispatch",
    "magnetar_connections_unsent_bytes", "pulsar_broker_lookup_failures_total", "topic_load_failed_total",
    "pulsar_topic_load_failed_count", "magnetar_subscriptions_stuck_total",
    "pulsar_ml_cache_pendingreads_matched_total",
    "magnetar_journal_pending_bytes", "magnetar_journal_failing",
    "magnetar_journal_full", "magnetar_space_moved_bytes_total", "magnetar_space_emptied_segments_total",
)  # fmt: skip


def measured(world: World) -> dict[str, float]:
    broker = world.machine.broker
    found = measurements(broker.service, broker.rates, broker.connections)
    return {one.family + one.suffix: one.value for one in found if not dict(one.labels).get("quantile")}


def blocks(world: World) -> list[records.BlockHeader]:
    """The blocks of all segments, as they lie on the disk."""
    files, found = world.machine.files, list[records.BlockHeader]()
    for name in sorted(name for name in files.names() if name.startswith("segment-") and "." not in name):
        file = files.open(name)
        data = file.read(0, file.size())
        at = records.find_block(data, records.SEGMENT_HEADER_SIZE, -1, None)
        while at >= 0:
            header = records.parse_block_header(data, at)
            assert header is not None
            found.append(header)
            end = at + records.BLOCK_HEADER_SIZE + header.length
            at = records.find_block(data, end, header.sequence, None)
    return found


@pytest.mark.parametrize("sync", [True, False])
def test_a_broker_counts_what_it_did_and_nothing_else(sync: bool) -> None:
    async def simulation(world: World) -> None:
        fresh = measured(world)
        assert fresh["magnetar_journal_entries_total"] == 0
        assert fresh["magnetar_journal_writes_total"] == fresh["magnetar_journal_written_bytes_total"] == 0
        assert blocks(world) == []
        assert fresh["pulsar_ml_cache_inserted_entries_total"] == fresh["pulsar_ml_cache_used_size"] == 0
        assert fresh["pulsar_active_connections"] == fresh["pulsar_connection_created_total_count"] == 0
        client = await connected()
        producer = await client.producer(T)
        for number in range(5):
            await producer.publish(b"%d" % number)
        consumer = await client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        for _ in range(5):
            await consumer.ack((await consumer.receive()).message_id)
        await asyncio.sleep(1)
        shown = measured(world)
        written = blocks(world)
        assert shown["magnetar_journal_entries_total"] == 5
        assert shown["magnetar_journal_writes_total"] == len(written)
        assert shown["magnetar_journal_syncs_total"] == (len(written) if sync else 0)
        assert shown["magnetar_journal_sync_data"] == sync
        size = sum(records.BLOCK_HEADER_SIZE + block.length for block in written)
        assert size <= shown["magnetar_journal_written_bytes_total"] <= size + records.PAGE * len(written)
        assert shown["pulsar_broker_publish_latency_count"] == 5
        assert shown["pulsar_ml_cache_inserted_entries_total"] >= 5
        assert shown["pulsar_ml_cache_entries"] == (
            shown["pulsar_ml_cache_inserted_entries_total"] - shown["pulsar_ml_cache_evicted_entries_total"]
        )
        assert shown["pulsar_active_connections"] == shown["pulsar_connection_created_total_count"] == 1
        assert shown["pulsar_connection_create_success_count"] == 1
        for family in NOTHING_OF_THE_KIND:
            assert (fresh[family], shown[family]) == (0, 0), family

    async def booted(world: World) -> None:
        await world.boot()
        await simulation(world)

    run_seed(booted, 1, storage=replace(SMALL, sync_data=sync))


def test_connections_are_counted_by_how_they_began_and_ended() -> None:
    async def simulation(world: World) -> None:
        clients = [await connected() for _ in range(3)]
        await RawClient.open(HOST, PORT)  # says nothing
        bad = await RawClient.open(HOST, PORT)
        bad.say_bytes(b"\xff" * 16)
        await bad.lost
        await clients[0].close()
        await asyncio.sleep(1)
        shown = measured(world)
        wanted = {
            "pulsar_active_connections": 3, "pulsar_connection_created_total_count": 5,
            "pulsar_connection_create_success_count": 3, "pulsar_connection_create_fail_count": 1,
            "pulsar_connection_closed_total_count": 2,
        }  # fmt: skip
        assert {family: shown[family] for family in wanted} == wanted

    talk(simulation)


def test_lookups_loads_and_transactions_are_counted_by_how_they_ended() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        before = measured(world)
        for _ in range(3):
            await client.lookup(T)
        assert (await client.lookup("persistent://no/such/topic")).error is not None
        with pytest.raises(RawClientError):
            await client.producer("persistent://no/such/topic")
        await client.producer(T)
        ended: list[Any] = [await RawTransaction.begin(client, 5_000) for _ in range(6)]
        await ended[0].commit()
        for txn in ended[1:3]:
            await txn.abort()
        shown = measured(world)
        added = {name: value - before.get(name, 0) for name, value in shown.items()}
        assert (added["pulsar_broker_lookup_answers_total"], added["pulsar_broker_lookup_failures_total"]) == (3, 1)
        assert added["pulsar_broker_lookup_count"] == 4
        assert added["pulsar_txn_created_total"] == 6
        assert (added["pulsar_txn_committed_total"], added["pulsar_txn_aborted_total"]) == (1, 2)
        assert (shown["pulsar_txn_active_count"], shown["pulsar_txn_timeout_total"]) == (3, 0)
        await asyncio.sleep(20)
        late = measured(world)
        assert (late["pulsar_txn_active_count"], late["pulsar_txn_timeout_total"]) == (0, 3)
        assert late["pulsar_txn_aborted_total"] == 5

    talk(simulation, Settings(transactionCoordinatorEnabled=True))
