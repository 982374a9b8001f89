"""What was trimmed before it was read: the client's reader and ``failOnDataLoss`` notice it at a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.bulk.data_loss import DataGap, DataLossError
from magnetar.client.bulk.range_reader import RangeReader
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.read_position import ReadPosition
from magnetar.model.names import TopicName
from magnetar.protocol.commands.ids import TxnId
from tests.support.batch_writer import BatchWriter
from tests.support.real_broker import TOPIC, RealBroker, real_broker

T = "persistent://public/default/t"
pytestmark = pytest.mark.spark


def publish(url: str, count: int, first: int) -> None:
    with Lookup(url, timeout=10) as lookup, Producer(lookup, T) as producer:
        values = [b"%d" % number for number in range(first, first + count)]
        for batch in BatchWriter(producer.name, max_messages=1).pack(1, values, range(first, first + count)):
            producer.send(*batch)
        producer.flush()


def read(url: str, start: ReadPosition, end: ReadPosition, *, strict: bool) -> tuple[list[int], list[DataGap]]:
    gaps: list[DataGap] = []
    with Lookup(url, timeout=10) as lookup:
        found = RangeReader(lookup, T, start, end, fail_on_data_loss=strict, on_gap=gaps.append)
        return [one.entry for chunk in found for one in chunk], gaps


def spark_reads(url: str, start: ReadPosition, end: ReadPosition, *, strict: bool) -> int:
    from magnetar.spark.options.source_options import source_options
    from magnetar.spark.source.planning.planner import Range
    from magnetar.spark.source.reading.read_task import read_task

    options = source_options({"service.url": url, "topic": T, "failOnDataLoss": str(strict).lower()})
    return sum(batch.num_rows for batch in read_task(options, (Range(T, start, end),)))


def tell(tmp_path: Path, story: Callable[[RealBroker, str], Any]) -> None:
    async def run() -> None:
        async with real_broker(tmp_path) as broker:
            await story(broker, broker.node.broker.service.service_url)

    asyncio.run(run())


def test_a_trimmed_beginning_within_a_ledger(tmp_path: Path) -> None:
    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish, url, 6, 0)
        topic = broker.node.broker.service.find(TopicName.parse(T))
        assert topic is not None
        ledger = topic.log.position(0).ledger
        start, end = ReadPosition(ledger, 1), ReadPosition(ledger, 6)
        assert await asyncio.to_thread(read, url, start, end, strict=True) == ([1, 2, 3, 4, 5], [])
        topic.trim_to(4, 0)  # as retention does
        gap = DataGap(T, start, ReadPosition(ledger, 4), certain=True)
        assert await asyncio.to_thread(read, url, start, end, strict=False) == ([4, 5], [gap])
        with pytest.raises(DataLossError, match=f"between {ledger}:1:0 and {ledger}:4:0 is trimmed or deleted") as lost:
            await asyncio.to_thread(read, url, start, end, strict=True)
        assert lost.value.gap == gap
        assert await asyncio.to_thread(spark_reads, url, start, end, strict=False) == 2
        with pytest.raises(DataLossError, match="failOnDataLoss=false"):
            await asyncio.to_thread(spark_reads, url, start, end, strict=True)

    tell(tmp_path, story)


def test_whole_ledgers_that_are_gone(tmp_path: Path) -> None:
    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish, url, 4, 0)
        log = broker.node.broker.service.topics[T].log
        old = log.position(0).ledger
        assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        await asyncio.to_thread(publish, url, 4, 4)
        new = log.position(4).ledger
        end = ReadPosition(new, 4)
        # after the last message of a ledger: not known to be more until something was there
        after = ReadPosition(old, 4)
        assert await asyncio.to_thread(read, url, after, end, strict=True) == ([0, 1, 2, 3], [])
        log.trim(4)
        gap = DataGap(T, after, ReadPosition(new, 0), certain=False)
        assert await asyncio.to_thread(read, url, after, end, strict=True) == ([0, 1, 2, 3], [gap])
        # a range that ends in the ledger that is gone
        with pytest.raises(DataLossError, match=f"between {old}:1:0 and {old}:4:0 is"):
            await asyncio.to_thread(read, url, ReadPosition(old, 1), after, strict=True)

    tell(tmp_path, story)


def test_markers_are_no_gap(tmp_path: Path) -> None:
    """Entries that no reader gets leave holes; nothing is missing (rule 9.10)."""

    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish, url, 3, 0)
        topic = broker.node.broker.service.topics[T]
        topic.transacting().end(TxnId(0, 1), commit=True, sent=True)
        await asyncio.to_thread(publish, url, 2, 3)
        ledger = topic.log.position(0).ledger
        found = await asyncio.to_thread(read, url, ReadPosition(ledger, 0), ReadPosition(ledger, 6), strict=True)
        assert found == ([0, 1, 2, 4, 5], [])

    tell(tmp_path, story)
