"""Offloading through REST and real sockets: copies, adoption, release, reading back, disk space (docs/offload.md)."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.app import node
from magnetar.app.node import store_settings
from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.rawclient import payload_of
from tests.support.offloaded_topic import (
    SMALL_LEDGERS,
    URL,
    T,
    finished,
    keep,
    ledgers,
    publish,
    value,
    values,
)
from tests.support.real_broker import RealBroker, Scenario, real_broker

FOLDER = "public/default/t/"
"""The topic's own folder of the object store."""

ALL = {"ledgerId": 1 << 60, "entryId": 0}


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(settings: Settings) -> StoreSettings:
        return replace(store_settings(settings), segment_bytes=16 << 10, cache_bytes=1)

    monkeypatch.setattr(node, "store_settings", small)


def run(path: Path, *scenarios: Scenario, **settings: Any) -> None:
    """Run each scenario on a broker that is started on the data of the one before."""

    async def on_a_broker() -> None:
        options = {**SMALL_LEDGERS, "offloadUrl": f"file://{path}/copies", **settings}
        for scenario in scenarios:
            async with asyncio.timeout(60), real_broker(path / "data", **options) as broker:
                await scenario(broker)

    asyncio.run(on_a_broker())


async def offloaded(broker: RealBroker) -> dict[str, Any]:
    assert (await broker.ask("PUT", f"{URL}/offload", ALL))[0] == 204
    return await finished(broker)


def segment_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path / "data" / "ledgers").glob("segment-*"))


def test_what_was_offloaded_is_read_in_order_also_after_a_restart_and_the_disk_is_free(tmp_path: Path) -> None:
    """What was offloaded is read in order, also after a restart, and its disk space is free (rule 14.7)."""

    async def first(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 250)
        before = segment_bytes(tmp_path)
        answer = await offloaded(broker)
        assert (answer["status"], answer["lastError"]) == ("SUCCESS", "")
        stats = (await broker.ask("GET", f"{URL}/internalStats"))[1]["ledgers"]
        assert [ledger["offloaded"] for ledger in stats] == [True] * 12 + [False]
        assert answer["firstUnoffloadedMessage"]["ledgerId"] == stats[-1]["ledgerId"]
        shown = await broker.stats("t")
        assert shown["lastOffloadLedgerId"] == stats[-2]["ledgerId"]
        assert (shown["lastOffloadSuccessTimeStamp"] > 0, shown["lastOffloadFailureTimeStamp"]) == (True, 0)
        assert await values(broker, 250) == [value(i) for i in range(250)]
        assert await broker.node.broker.upkeep.offload() == 12
        assert all(ledger["copy"]["released"] for ledger in (await ledgers(broker))[:-1])
        assert segment_bytes(tmp_path) < before / 3
        assert await values(broker, 250) == [value(i) for i in range(250)]
        assert broker.node.broker.store._reader.copies_read > 0

    async def second(broker: RealBroker) -> None:
        await publish(broker, 250, 260)
        assert await values(broker, 260) == [value(i) for i in range(260)]
        assert (await broker.ask("GET", f"{URL}/stats"))[1]["offloadedStorageSize"] > 240 * 400

    run(tmp_path, first, second)
    table = pq.ParquetDataset(str(tmp_path / "copies")).read()
    assert table.num_rows == 240, "others can read it, too"
    assert sum(len(data) for data in table["data"].to_pylist()) == sum(table["size"].to_pylist())


def test_a_topic_that_nobody_uses_after_a_restart_is_offloaded_and_released(tmp_path: Path) -> None:
    """It waited for somebody who used it, and its local entries stayed."""

    async def used(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 100)

    async def copied(broker: RealBroker) -> None:
        upkeep = broker.node.broker.upkeep
        assert T not in broker.node.broker.service.topics
        await upkeep.look_at_unused()
        assert T in broker.node.broker.service.topics
        await upkeep.offload()
        assert (await finished(broker))["status"] == "SUCCESS"

    async def freed(broker: RealBroker) -> None:
        await broker.node.broker.upkeep.look_at_unused()
        assert await broker.node.broker.upkeep.offload() == 5
        assert await values(broker, 100) == [value(i) for i in range(100)]

    async def at_rest(broker: RealBroker) -> None:
        await broker.node.broker.upkeep.look_at_unused()
        assert T not in broker.node.broker.service.topics

    run(tmp_path, used)
    run(tmp_path, at_rest, managedLedgerOffloadThresholdInSeconds=1 << 30)
    run(tmp_path, at_rest, managedLedgerOffloadThresholdInSeconds=0, offloadUrl="")
    run(tmp_path, copied, managedLedgerOffloadThresholdInSeconds=0, managedLedgerOffloadDeletionLagMs=-1)
    run(tmp_path, freed, managedLedgerOffloadDeletionLagMs=0)
    run(tmp_path, at_rest, managedLedgerOffloadDeletionLagMs=0, managedLedgerOffloadThresholdInSeconds=0)


def test_a_stop_in_the_middle_is_logged_and_the_same_request_completes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """GET says NOT_RUN after the start: nobody could see that the request was not done."""

    async def stopped(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 60)
        await broker.node.broker.service.offloader._one.acquire()  # the first copy does not end
        assert (await broker.ask("PUT", f"{URL}/offload", ALL))[0] == 204

    async def again(broker: RealBroker) -> None:
        assert (await broker.ask("GET", f"{URL}/offload"))[1]["status"] == "NOT_RUN"
        assert (await offloaded(broker))["status"] == "SUCCESS"
        assert await values(broker, 60) == [value(i) for i in range(60)]

    run(tmp_path, stopped, again)
    said = [record.getMessage() for record in caplog.records if record.name == "magnetar.broker.offloader"]
    assert said[0] == f"{T}: offloading was given up: the broker stops"
    assert sum("given up" in one for one in said) == 1


def test_trimming_deletes_the_copies_and_so_does_deleting_the_topic(tmp_path: Path) -> None:
    def copies() -> int:
        return len(list((tmp_path / "copies").rglob("*.parquet")))

    async def scenario(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 100)
        await offloaded(broker)
        assert copies() == 4
        upkeep = broker.node.broker.upkeep
        await upkeep.offload()
        await broker.ask("POST", f"{URL}/subscription/keeps/skip/50")
        assert await upkeep.trim() == 2
        await upkeep.offload()
        assert copies() == 2
        assert (await broker.ask("DELETE", f"{URL}?force=true"))[0] == 204
        await upkeep.offload()
        assert copies() == 0
        assert not broker.node.broker.store.discarded

    run(tmp_path, scenario)


def test_a_lost_copy_is_an_error_for_its_readers_and_never_a_gap(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 50)
        await offloaded(broker)
        await broker.node.broker.upkeep.offload()
        shutil.move(tmp_path / "copies", tmp_path / "gone")
        client = await broker.client()
        consumer = await client.subscribe(T, "keeps", c.SubType.Exclusive)
        consumer.flow(1000)
        subscription = broker.node.broker.service.topics[T].subscriptions["keeps"]
        pump = subscription.pump
        while not pump.reads.trouble:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert "ledger-" in pump.reads.trouble
        assert pump.read_at == 0
        assert not client.heard(c.CommandMessage)
        await publish(broker, 50, 51)
        shutil.move(tmp_path / "gone", tmp_path / "copies")
        got = [payload_of((await consumer.receive()).entry) for _ in range(51)]
        assert got == [value(i) for i in range(51)]
        await client.close()

    run(tmp_path, scenario)


def test_nothing_is_released_while_its_copy_cannot_be_read(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 50)
        await offloaded(broker)
        copies = sorted((tmp_path / "copies").rglob("*.parquet"))
        data = bytearray(copies[0].read_bytes())
        data[len(data) // 3] ^= 1
        copies[0].write_bytes(data)
        copies[1].unlink()
        assert await broker.node.broker.upkeep.offload() == 0
        assert broker.node.broker.service.offloader.counters.failures == 2
        assert await values(broker, 50) == [value(i) for i in range(50)]

    run(tmp_path, scenario)


def test_a_copy_is_adopted_only_if_it_is_the_ledger(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 50)
        service = broker.node.broker.service
        managed = service.topics[T].log
        found = await ledgers(broker)
        first = found[0]["ledgerId"]
        assert "is open" in found[-1]["refused"]
        archive = service.offloader._archive
        place = archive.store_at(service.settings.offloadUrl)

        async def written(name: str, ledger: int, change: bytes = b"") -> str:
            draft = place.draft(name)
            writer = archive.writer(draft.target, T, ledger, 0)
            table = managed.table.of_id(ledger)
            assert table is not None
            entries = await service.offloader._read(managed, table, _Collected())
            writer.add([entry + change for entry in entries.entries], entries.counts)
            writer.close()
            draft.commit()
            return name

        for name, reason in (
            (await written(FOLDER + "a.parquet", first, b"!"), "not adopted"),
            (await written(FOLDER + "b.parquet", found[1]["ledgerId"]), "not adopted"),
            (FOLDER + "c.parquet", "no such object"),
        ):
            status, answer = await broker.ask("POST", f"{URL}/offload/{first}", {"name": name})
            assert status == 409 and reason in answer["reason"], (name, answer)
        assert (await broker.ask("POST", f"{URL}/offload/{first}", {"name": "../a"}))[0] == 400
        # the very bytes of the ledger, but in a place that is another topic's
        elsewhere = await written("public/default/other/d.parquet", first)
        for view, body in (
            (f"offload/{first}", {"name": elsewhere}),
            (
                "compaction/view",
                {"generation": 0, "horizon": 1, "removed": 0, "files": [
                    {"name": elsewhere, "digest": "0", "unit": 0, "entries": 1, "bytes": 1}
                ]},
            ),
        ):  # fmt: skip
            status, answer = await broker.ask("POST", f"{URL}/{view}", body)
            assert status == 403 and "where objects of persistent://public/default/t belong" in answer["reason"]
        good = await written(FOLDER + "d.parquet", first)
        for _ in range(2):
            status, answer = await broker.ask("POST", f"{URL}/offload/{first}", {"name": good})
            assert status == 200 and answer["released"] is False
        last = found[-1]["ledgerId"]
        assert (await broker.ask("POST", f"{URL}/offload/{last}", {"name": good}))[0] == 409
        assert await broker.node.broker.upkeep.offload() == 1
        assert await values(broker, 50) == [value(i) for i in range(50)]

    run(tmp_path, scenario)


class _Collected:
    """Takes what a writer takes, and keeps it."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.counts: list[int] = []

    def add(self, entries: list[bytes], counts: list[int] | None) -> None:
        self.entries += entries
        self.counts += counts or [1] * len(entries)


def test_policies_begin_offloading_and_without_a_store_nothing_begins(tmp_path: Path) -> None:
    namespace = "/admin/v2/namespaces/public/default"

    async def scenario(broker: RealBroker) -> None:
        await keep(broker)
        await publish(broker, 0, 100)
        upkeep = broker.node.broker.upkeep
        await upkeep.offload()
        assert (await finished(broker))["status"] == "NOT_RUN"
        assert (await broker.ask("PUT", f"{namespace}/offloadDeletionLagMs", 1 << 40))[0] in (200, 204)
        assert (await broker.ask("PUT", f"{namespace}/offloadThreshold", 45 * 420))[0] in (200, 204)
        assert (await broker.ask("GET", f"{namespace}/offloadThreshold"))[1] == 45 * 420
        await upkeep.offload()
        assert (await finished(broker))["status"] == "SUCCESS"
        assert [ledger["copy"] is not None for ledger in await ledgers(broker)] == [True, True, True, False, False]
        assert await upkeep.offload() == 0, "the lag is long"
        assert (await broker.ask("PUT", f"{namespace}/offloadThresholdInSeconds", 0))[0] in (200, 204)
        await upkeep.offload()
        assert (await finished(broker))["status"] == "SUCCESS"
        assert [ledger["copy"] is not None for ledger in await ledgers(broker)] == [True] * 4 + [False]

    async def without(broker: RealBroker) -> None:
        await publish(broker, 100, 150)
        answer = await offloaded(broker)
        assert answer["status"] == "ERROR" and "offloadUrl" in answer["lastError"]
        assert (await broker.stats("t"))["lastOffloadFailureTimeStamp"] > 0
        assert await values(broker, 150) == [value(i) for i in range(150)]
        assert (await broker.ask("DELETE", f"{URL}?force=true"))[0] == 204
        await publish(broker, 0, 1)
        assert (await finished(broker))["status"] == "NOT_RUN", "another topic of that name"
        assert (await broker.stats("t"))["lastOffloadFailureTimeStamp"] == 0

    run(tmp_path, scenario)
    run(tmp_path, without, offloadUrl="")
