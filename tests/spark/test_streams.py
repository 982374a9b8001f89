"""The stream's driver side at a real broker, called as Spark calls it, without a Spark session.

What is checked after every micro-batch: its tasks are the same when another process plans it from the offsets alone.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import pickle
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.source_options import source_options
from magnetar.spark.progress import progress_of
from magnetar.spark.source.planning import backlog, rate_estimator, topic_tracker
from magnetar.spark.source.reading import stream_reader as stream_module
from magnetar.spark.source.reading.batch_reader import BatchReader
from magnetar.spark.source.reading.stream_reader import StreamReader
from tests.support.batch_writer import BatchWriter
from tests.support.real_broker import TOPIC, RealBroker, real_broker

PUBLIC = "persistent://public/default/"
pytestmark = pytest.mark.spark
Story = Callable[[RealBroker, str], Awaitable[None]]


def tell(tmp_path: Path, story: Story, **settings: Any) -> None:
    async def run() -> None:
        async with real_broker(tmp_path, **settings) as broker:
            await story(broker, broker.node.broker.service.service_url)

    asyncio.run(run())


def publish(url: str, topic: str, first: int, count: int, *, batch: int = 1, at: int = 1) -> None:
    """Numbers as values; publish times from ``at`` on, a second apart."""
    with Lookup(url, timeout=10) as lookup, Producer(lookup, topic) as producer:
        writer = BatchWriter(producer.name, max_messages=batch)
        for number in range(first, first + count, batch):
            numbers = range(number, min(number + batch, first + count))
            for packed in writer.pack(at + (number - first) * 1000, [b"%d" % one for one in numbers], numbers):
                producer.send(*packed)
        producer.flush()


class Query:
    """A stream and its checkpoint."""

    def __init__(self, url: str, **options: str) -> None:
        self.options = {"service.url": url, "subscription": "q", "startingOffsets": "earliest", "metadata": "none"}
        self.options |= options
        self.batches: list[list[int]] = []
        self.tasks: list[int] = []
        self.end: dict[str, Any] | None = None
        self.reader = self.again()

    def again(self) -> StreamReader:
        """Go on in a new process."""
        return StreamReader(source_options(self.options))

    def step(self) -> bool:
        """One micro-batch, if there is something new."""
        start = self.end if self.end is not None else json.loads(json.dumps(self.reader.initialOffset()))
        end = json.loads(json.dumps(self.reader.latestOffset(start, self.reader.getDefaultReadLimit())))
        if end == start:
            return False
        tasks = self.reader.partitions(start, end)
        assert tasks == self.again().partitions(start, end)
        worker = pickle.loads(pickle.dumps(self.reader))
        self.batches.append(
            sorted(number for task in tasks for found in worker.read(task) for number in numbers(found))
        )
        self.tasks.append(len(tasks))
        self.end = end
        return True

    def run(self) -> Query:
        """Trigger.AvailableNow: until there is nothing new, with what Spark asks last."""
        self.reader.prepareForTriggerAvailableNow()
        while self.step():
            pass
        self.reader.stop()
        self.reader = self.again()
        return self

    def everything(self) -> list[int]:
        return sorted(itertools.chain(*self.batches))


def test_a_backlog_is_not_one_micro_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any limit, from two topics in several ledgers; both are taken up to the same publish time."""
    monkeypatch.setattr(backlog, "FEW", 10)

    async def story(broker: RealBroker, url: str) -> None:
        for part in range(3):
            await asyncio.to_thread(publish, url, f"{PUBLIC}many", part * 80, 80, at=part * 80_000)
            await asyncio.to_thread(publish, url, f"{PUBLIC}few", 1000 + part * 20, 20, at=part * 80_000)
            for name in ("many", "few"):
                assert (await broker.ask("PUT", f"{TOPIC}/{name}/unload"))[0] == 204
        query = Query(url, topics="many,few", backlogBytesPerTrigger="2500")
        await asyncio.to_thread(query.run)
        everything = [*range(240), *range(1000, 1060)]
        assert query.everything() == everything
        assert 4 < len(query.batches) < 60
        # What was published at one time is read together: messages of "few" at 0, 80 and 160 s.
        taken = [(max((n for n in one if n < 1000), default=0), [n for n in one if n >= 1000]) for one in query.batches]
        reached = 0
        for most, others in taken:
            reached = max(reached, most)
            assert all((number - 1000) // 20 * 80 + (number - 1000) % 20 <= reached + 1 for number in others)
        all_at_once = Query(url, topics="many,few", backlogBytesPerTrigger="0", subscription="all")
        await asyncio.to_thread(all_at_once.run)
        assert all_at_once.batches == [everything]
        # Nothing is left but the two subscriptions, and those have no backlog.
        await asyncio.to_thread(BatchReader(source_options({"service.url": url, "topic": "many"}), None).partitions)
        for name in ("many", "few"):
            subscriptions = (await broker.stats(name))["subscriptions"]
            assert {key: one["msgBacklog"] for key, one in subscriptions.items()} == {"q": 0, "all": 0}

    tell(tmp_path, story)


def test_more_tasks_than_topics_across_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "FEW", 10)

    async def story(broker: RealBroker, url: str) -> None:
        for part in range(3):
            await asyncio.to_thread(publish, url, f"{PUBLIC}t", part * 40, 40, batch=2)
            assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        query = await asyncio.to_thread(Query(url, topic="t", minPartitions="3").run)
        assert (query.batches, query.tasks) == ([list(range(120))], [3])
        wide = await asyncio.to_thread(Query(url, topic="t", minPartitions="7", subscription="wide").run)
        assert (wide.batches, wide.tasks) == ([list(range(120))], [7])
        limited = Query(url, topic="t", minPartitions="3", maxMessagesPerTrigger="50", subscription="limited")
        await asyncio.to_thread(limited.run)
        assert limited.batches == [list(range(50)), list(range(50, 100)), list(range(100, 120))]
        assert limited.tasks[:2] == [3, 3]

    tell(tmp_path, story)


def test_a_run_ends_at_its_bound_and_a_later_run_at_a_later_one(tmp_path: Path) -> None:
    """Bounds are positions inside a batch, times, or for one topic of two; one before the checkpoint reads nothing."""

    async def story(broker: RealBroker, url: str) -> None:
        for topic, first in (("t", 0), ("u", 500)):
            await asyncio.to_thread(publish, url, f"{PUBLIC}{topic}", first, 100, batch=10, at=1_000_000)
        await asyncio.to_thread(read_by_bounds, url)

    tell(tmp_path, story)


def read_by_bounds(url: str) -> None:
    """Read by bounds of topics t and u, which have ten messages in a batch and a second apart from second 1,000 on."""
    query = Query(url, topics="t,u", maxMessagesPerTrigger="40")

    def until(**bound: str) -> list[int]:
        before = len(query.batches)
        query.reader.stop()
        query.reader = StreamReader(source_options({**query.options, **bound}))
        query.run()
        everything = query.everything()
        assert everything == sorted(set(everything))
        return sorted(itertools.chain(*query.batches[before:]))

    ledgers = {
        name: place.split(":")[0]
        for name, place in query.reader.latestOffset(query.reader.initialOffset(), ReadAllAvailable())["p"].items()
    }
    topic = f"{PUBLIC}t"
    inside = json.dumps({topic: f"{ledgers[topic]}:2:3", "u": "@1030000"})
    assert until(endingOffsets=inside) == [*range(23), *range(500, 530)]
    for passed in (f"{ledgers[topic]}:0", "@1000000"):
        assert until(endingOffsets=json.dumps({"t": passed, "u": "0:0"})) == []
    assert until(endingOffsets=inside) == []
    assert until(endingTime="1050000") == [*range(23, 50), *range(530, 550)]
    publish(url, topic, 100, 10, batch=10, at=2_000_000)
    assert until(endingTime="9999999") == [*range(50, 110), *range(550, 600)]
    # A query that does not end by itself has no end.
    bounded = StreamReader(source_options({**query.options, "endingTime": "5"}))
    with pytest.raises(InvalidValueError, match=r"use .trigger\(availableNow=True\)"):
        bounded.latestOffset(query.end or {}, bounded.getDefaultReadLimit())
    with pytest.raises(InvalidValueError, match=r"'endingOffsets' names .*/tt, which is not read"):
        until(endingOffsets='{"tt": "1:2"}')
    query.reader.stop()


def test_a_micro_batch_takes_about_the_time_that_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock here is moved by micro-batches only: a hundredth of a second for each message, and one to plan."""
    now = [0.0]
    monkeypatch.setattr(stream_module, "steady_seconds", lambda: now[0])
    monkeypatch.setattr(rate_estimator, "FIRST", 10)

    def read(url: str) -> None:
        publish(url, f"{PUBLIC}t", 0, 4_000, batch=7)
        query = Query(url, topic="t", targetTriggerMs="5000", backlogBytesPerTrigger="0")
        while query.step():
            now[0] += 1 + len(query.batches[-1]) / 100
            assert query.reader.getDefaultReadLimit() == ReadMaxRows(query.reader._limits().messages)
        # Idle, which does not count; then what is repeated ends where it did, whatever the limit is by now.
        for _ in range(3):
            now[0] += 1_000
            assert not query.step()
        sizes = list(map(len, query.batches))
        assert query.everything() == list(range(4_000))
        assert sizes[0] == 10
        assert all(350 <= one <= 450 for one in sizes[8:-1]), sizes
        publish(url, f"{PUBLIC}t", 4_000, 1_000, batch=7)
        time.sleep(2 * topic_tracker._FRESH)
        assert query.step()
        assert 350 <= len(query.batches[-1]) <= 450
        small = Query(url, topic="t", targetTriggerMs="5000", maxMessagesPerTrigger="4", subscription="small")
        assert small.step()
        assert small.batches == [[0, 1, 2, 3]]
        query.reader.stop()
        small.reader.stop()

    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(read, url)

    tell(tmp_path, story)


def test_tasks_have_the_size_that_is_wanted(tmp_path: Path) -> None:
    """Slices are the same whether entries are counted or estimated, and in batch reads; ledgers do not matter."""

    async def story(broker: RealBroker, url: str) -> None:
        for part in range(3):
            await asyncio.to_thread(publish, url, f"{PUBLIC}t", part * 40, 40, batch=4)
            assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204

        def stream(name: str, **options: str) -> Query:
            return Query(url, topic="t", subscription=name, **options).run()

        def batch(**options: str) -> list[int]:
            found = source_options({"service.url": url, "topic": "t", "metadata": "none", **options})
            reader = BatchReader(found, None)
            tasks = [[n for some in reader.read(task) for n in numbers(some)] for task in reader.partitions()]
            assert sorted(itertools.chain(*tasks)) == list(range(120))
            return sorted(map(len, tasks))

        sized = await asyncio.to_thread(stream, "sized", maxRecordsPerPartition="24")
        assert (sized.everything(), sized.tasks) == (list(range(120)), [5])
        limited = await asyncio.to_thread(stream, "limited", maxRecordsPerPartition="24", maxMessagesPerTrigger="70")
        assert (list(map(len, limited.batches)), limited.tasks) == ([70, 50], [3, 3])
        most = await asyncio.to_thread(stream, "most", maxRecordsPerPartition="24", maxPartitions="2")
        assert (most.everything(), most.tasks) == (list(range(120)), [2])
        # More than the least that was asked for are not put together again.
        least = await asyncio.to_thread(stream, "least", maxRecordsPerPartition="24", minPartitions="2")
        assert least.tasks == [5]
        assert await asyncio.to_thread(batch, maxRecordsPerPartition="24", minPartitions="2") == [24] * 5
        assert len(await asyncio.to_thread(batch, maxRecordsPerPartition="24", minPartitions="10")) == 10
        assert len(await asyncio.to_thread(batch, maxBytesPerPartition="1")) == 30

    tell(tmp_path, story)


def numbers(rows: Any) -> list[int]:
    """The values of a record batch."""
    return [int(value.as_py()) for value in rows.column("value")]


def test_partitions_that_come_while_a_query_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic grows from two to five partitions while it is written and read: nothing is lost, order per partition."""
    monkeypatch.setattr(topic_tracker, "_DISCOVERY_INTERVAL", 0.1)

    async def story(broker: RealBroker, url: str) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/p/partitions", 2))[0] == 204
        query = Query(url, topic="p", maxMessagesPerTrigger="37")
        written = 0
        for count in (2, 3, 5):
            if count > 2:
                assert (await broker.ask("POST", f"{TOPIC}/p/partitions", count))[0] == 204
            for partition in range(count):
                name = f"{PUBLIC}p-partition-{partition}"
                writing = asyncio.to_thread(publish, url, name, written, 50, batch=7)
                await asyncio.gather(writing, asyncio.to_thread(query.step))
                written += 50
        query.reader.stop()
        query.reader = query.again()
        await asyncio.to_thread(query.run)
        assert query.everything() == list(range(written))
        assert max(map(len, query.batches)) == 37
        assert query.end is not None and len(query.end["p"]) == 5

    tell(tmp_path, story)


def test_what_arrives_during_available_now_is_for_the_next_run(tmp_path: Path) -> None:
    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish, url, f"{PUBLIC}t", 0, 100, batch=10)
        query = Query(url, topic="t", maxMessagesPerTrigger="33")
        await asyncio.to_thread(query.reader.prepareForTriggerAvailableNow)
        while await asyncio.to_thread(query.step):
            await asyncio.to_thread(publish, url, f"{PUBLIC}t", 100 * (len(query.batches) + 1), 10)
        assert [len(one) for one in query.batches] == [33, 33, 33, 1]
        assert query.everything() == list(range(100))
        await asyncio.to_thread(query.run)
        assert len(query.everything()) == 140

    tell(tmp_path, story)


def test_topics_that_come_between_two_runs_are_kept_until_they_are_read(tmp_path: Path) -> None:
    """They are read from their beginning, wherever the query itself began."""

    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish, url, f"{PUBLIC}x-a", 0, 10)
        query = Query(url, topicsPattern="public/default/x-.*", startingOffsets="latest", maxMessagesPerTrigger="4")
        await asyncio.to_thread(query.run)
        assert query.everything() == []
        await asyncio.to_thread(publish, url, f"{PUBLIC}x-a", 10, 5)
        await asyncio.to_thread(query.run)
        assert query.everything() == list(range(10, 15))
        await asyncio.to_thread(publish, url, f"{PUBLIC}x-b", 15, 10)
        await asyncio.to_thread(query.reader.prepareForTriggerAvailableNow)
        assert await asyncio.to_thread(query.step)
        # Nothing of it is processed yet: it must not be trimmed.
        assert (await broker.stats("x-b"))["subscriptions"]["q"]["msgBacklog"] == 10
        await asyncio.to_thread(query.run)
        assert query.everything() == list(range(10, 25))
        assert (await broker.stats("x-b"))["subscriptions"]["q"]["msgBacklog"] == 0

    tell(tmp_path, story)


def test_lag_is_part_of_the_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_tracker, "_LAG_INTERVAL", 0.0)

    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish, url, f"{PUBLIC}t", 0, 100, batch=10, at=1_000_000)
        query = Query(url, topic="t", maxMessagesPerTrigger="33")
        await asyncio.to_thread(check_lag, query)

    tell(tmp_path, story)


def check_lag(query: Query, *, index: bool = False) -> None:
    """Check the lag of a topic with a hundred messages, ten in a batch and a second apart; ``index`` if the broker
    shows it."""
    name = next(iter(query.reader.initialOffset()["p"]))
    left = []
    while query.step():
        latest = query.reader.reportLatestOffset()
        assert latest is not None and query.end is not None
        (found,) = progress_of({"id": "q", "sources": [{"endOffset": query.end, "latestOffset": json.dumps(latest)}]})
        left.append(found.messages_behind)
        done = sum(map(len, query.batches))
        if done < 100:
            assert found.behind == (name,)
            age = time.time() - (1_000 + done // 10 * 10)
            assert found.ms_behind is not None and abs(found.ms_behind / 1000 - age) < 30
        else:
            assert (found.behind, found.messages_behind, found.ms_behind) == ((), 0, 0)
    query.reader.stop()
    assert left == ([67, 34, 1, 0] if index else [None, None, None, 0])


def test_topics_that_are_unloaded_while_a_query_runs(tmp_path: Path) -> None:
    """Topics are unloaded as by a load manager: the broker closes consumers and keeps connections."""

    async def story(broker: RealBroker, url: str) -> None:
        query = Query(url, topic="t", operationTimeoutMs="5000", maxMessagesPerTrigger="10")
        for part in range(3):
            await asyncio.to_thread(publish, url, f"{PUBLIC}t", part * 10, 10)
            await asyncio.sleep(2 * topic_tracker._FRESH)
            assert await asyncio.to_thread(query.step)
            assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
            # What Spark says next is that all is processed, before it asks for more.
            assert query.end is not None
            await asyncio.to_thread(query.reader.commit, query.end)
        assert query.batches == [list(range(10)), list(range(10, 20)), list(range(20, 30))]
        assert (await broker.stats("t"))["subscriptions"]["q"]["msgBacklog"] == 0
        query.reader.stop()

    tell(tmp_path, story)
