"""Ranges that begin and end at markers, at aborted messages, at chunks and inside batches, at a real broker.

Whatever cuts a log into ranges, each message must be in exactly one of them. Needs no Spark session: what runs in a
task is called directly.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.bulk.positions import last_position, written_position
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.columnar.arrow_decoder import arrow_schema
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.spark.options.limits import ReadLimits
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.planning.offset_resolution import resolve_end, resolve_start
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.planning.pushed_filters import understood
from magnetar.spark.source.planning.topic_tracker import TopicTracker
from magnetar.spark.source.reading.read_task import read_task
from magnetar.spark.source.reading.value_schemas import value_decoder
from tests.spark.mixed_log import Written, write_mixed
from tests.support.real_broker import real_broker

T = "persistent://public/default/t"
pytestmark = pytest.mark.spark


def read(url: str, start: ReadPosition, end: ReadPosition, topic: str = T, **options: str) -> list[bytes]:
    checked = source_options(
        {"service.url": url, "topic": topic, "metadata": "none", "pollTimeoutMs": "5000", **options}
    )
    batches = read_task(checked, (Range(topic, start, end),))
    return [value.as_py() for batch in batches for value in batch.column("value")]


def read_published_at(url: str, one: Range, ms: int) -> list[bytes]:
    options = source_options({"service.url": url, "topic": one.topic, "metadata": "__publishTime"})
    schema = arrow_schema(value_decoder(options).schema, ("__publishTime",))
    at = dt.datetime.fromtimestamp(ms // 1000, dt.UTC) + dt.timedelta(milliseconds=ms % 1000)
    pushed, left = understood([EqualTo(("__publishTime",), at)], schema)
    assert left == []
    return [value.as_py() for batch in read_task(options, (one,), pushed) for value in batch.column("value")]


def check_ranges(url: str, topic: str, written: Written) -> None:
    """Every range between two entries, and a few inside the batch, gives what is owned by it."""
    with Lookup(url, timeout=10) as lookup:
        last = last_position(lookup, topic)
        ledger = last.ledger
        stable = [number for number in range(written.stable) if written.owned[number]][-1] + 1
        assert (last.entry, written_position(lookup, topic)) == (stable, ReadPosition(ledger, len(written.owned)))
        for asked in (stable, stable + 1, written.stable, len(written.owned)):
            assert resolve_end(lookup, topic, ReadPosition(ledger, asked), strict=True) == last
        beyond = ReadPosition(ledger, len(written.owned) + 1)
        with pytest.raises(DataLossError, match="the topic ends at"):
            resolve_end(lookup, topic, beyond, strict=True)
        assert resolve_end(lookup, topic, beyond, strict=False) == last
        with pytest.raises(DataLossError, match=f"startingOffsets says {beyond}, and the topic ends at"):
            resolve_start(lookup, topic, beyond, strict=True)
        assert resolve_start(lookup, topic, beyond, strict=False) == beyond
        # The next one is no loss, nor is what cannot be read yet.
        for asked in (stable, len(written.owned)):
            assert resolve_start(lookup, topic, ReadPosition(ledger, asked), strict=True) == ReadPosition(ledger, asked)
    for start in range(stable):
        for end in range(start + 1, stable + 1):
            expected = sorted(value for owned in written.owned[start:end] for value in owned)
            assert sorted(read(url, ReadPosition(ledger, start), ReadPosition(ledger, end), topic)) == expected, (
                start,
                end,
            )
    assert sorted(read(url, START, ReadPosition(ledger, 1, 2), topic)) == [b"m0", b"m1", b"m2"]
    assert sorted(read(url, ReadPosition(ledger, 1, 2), ReadPosition(ledger, 3), topic)) == [b"a0a1", b"m3"]


def check_limits(url: str, topic: str, written: Written) -> None:
    """Micro-batches of one message, as the driver cuts them: nothing twice, nothing left out, none of them empty."""
    options = source_options({"service.url": url, "topic": topic, "startingOffsets": "earliest"})
    live, got = TopicTracker(options, "limited"), []
    at = live.initial()
    while (end := live.admit(at, live.latest(), ReadLimits(messages=1))) != at:
        got.append(read(url, at[topic], end[topic], topic))
        at = end
    live.close()
    everything = [value for owned in written.owned[: written.stable] for value in owned]
    assert sorted(value for one in got for value in one) == sorted(everything)
    # The message that is never whole counts as one, too.
    assert [len(one) for one in got if one] == [1] * len(everything)


def test_every_range_of_a_mixed_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with real_broker(tmp_path, transactionCoordinatorEnabled=True) as broker:
            url = broker.node.broker.service.service_url
            written = await write_mixed(await broker.client(), T)
            await asyncio.to_thread(check_ranges, url, T, written)
            await asyncio.to_thread(check_limits, url, T, written)

    asyncio.run(run())


def test_a_message_whose_chunks_are_still_to_come_is_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with real_broker(tmp_path) as broker:
            url = broker.node.broker.service.service_url
            client = await broker.client()
            producer = await client.producer(T)
            now = int(time.time() * 1000)

            def chunk(number: int) -> bytes:
                metadata = EntryMetadata(
                    producer.name,
                    1,
                    now + number,
                    uuid="u",
                    num_chunks_from_msg=3,
                    chunk_id=number,
                    total_chunk_msg_size=6,
                )
                return build_entry(metadata, b"%d-" % number)

            for number in range(2):
                await producer.receipt(producer.send(b"", entry=chunk(number)))
            ledger = (await producer.publish(b"after")).ledger
            end = ReadPosition(ledger, 3)
            # Given up after a while: the producer may be gone.
            assert await asyncio.to_thread(read, url, START, end, chunkTimeoutMs="300") == [b"after"]
            reading = asyncio.create_task(asyncio.to_thread(read, url, START, end))
            await asyncio.sleep(0.5)
            assert not reading.done()
            await producer.receipt(producer.send(b"", entry=chunk(2)))
            assert sorted(await reading) == [b"0-1-2-", b"after"]
            # A filter that lets its first chunk through lets all of it through.
            assert await asyncio.to_thread(read_published_at, url, Range(T, START, end), now) == [b"0-1-2-"]
            # Whose range has the rest only has nothing of it.
            assert await asyncio.to_thread(read, url, ReadPosition(ledger, 1), ReadPosition(ledger, 4)) == [b"after"]

    asyncio.run(run())
