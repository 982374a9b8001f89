"""Jobs at a real broker that keeps working read what the protocol gives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.rest import Rest
from magnetar.jobs.reader import segment_reader
from magnetar.jobs.reader.unit_reader import Access, Unit, check_directory, frame, read, units
from magnetar.jobs.replay import ReplayRequest, load_or_make, make_plan, replay
from magnetar.jobs.report import TopicReport, WhatIf, facts_of, topic_report, topics_of
from magnetar.jobs.verification.audit import audit
from magnetar.jobs.verification.comparison import WAYS, Comparison, Side, compare
from magnetar.model.errors import InvalidValueError, NotFoundError
from magnetar.protocol import commands as c
from magnetar.protocol.batches import Batch
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.testing.rawtransaction import RawTransaction
from tests.support.batch_writer import BatchWriter
from tests.support.numbered_messages import publish_numbers
from tests.support.real_broker import TOPIC, RealBroker, real_broker
from tests.unit.jobs.stores import T, stored

pytestmark = pytest.mark.spark

Found = list[tuple[int, int, bytes]]


def tell(tmp_path: Path, story: Callable[[RealBroker, str], Any], **settings: Any) -> None:
    # nothing is subscribed, and a slow machine must not find that the broker has trimmed what a test looks at
    kept = {
        "defaultRetentionTimeInMinutes": -1,
        "defaultRetentionSizeInMB": -1,
        "brokerDeleteInactiveTopicsEnabled": False,
    }

    async def run() -> None:
        async with real_broker(tmp_path, **kept, **settings) as broker:
            await story(broker, broker.node.broker.service.service_url)

    asyncio.run(run())


async def by_both(url: str, directory: Path) -> tuple[list[Unit], Found, Found]:
    """Units of the mixed way, what they give, and what the protocol alone gives up to the same end."""
    mixed, plain = Access(url=url, directory=str(directory)), Access(url=url)
    found = await asyncio.to_thread(units, mixed, "t")
    got, missing = await asyncio.to_thread(stored, mixed, found)
    assert not missing
    want, missing = await asyncio.to_thread(stored, plain, [Unit(T, found[0].start, found[-1].stop, 0)])
    assert not missing
    return found, got, want


def test_the_same_as_by_protocol(tmp_path: Path) -> None:
    """The topic has several ledgers, an aborted and a committed transaction with their markers, and a running
    producer."""

    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish_numbers, url, 0, 40, topic=T)
        client = await broker.client()
        for end in ("commit", "abort"):
            txn = await RawTransaction.begin(client)
            producer = await client.producer(T)
            for number in range(3):
                await txn.publish(producer, b"%s %d" % (end.encode(), number))
            await getattr(txn, end)()
            await producer.close()
            assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
            await asyncio.to_thread(publish_numbers, url, 40, 60, batch=7, topic=T)
        await client.close()
        stop = threading.Event()

        def go_on() -> None:
            at = 1000
            while not stop.is_set():
                publish_numbers(url, at, at + 50, batch=5, topic=T)
                at += 50

        going = threading.Thread(target=go_on)
        going.start()
        found: list[Unit] = []
        got: Found = []
        try:
            for _ in range(10):
                found, got, want = await by_both(url, tmp_path)
                assert got == want
                assert {unit.piece is None for unit in found} == {True, False}
        finally:
            stop.set()
            await asyncio.to_thread(going.join)
        await asyncio.to_thread(check_directory, Access(url=url, directory=str(tmp_path)), found)
        assert len({unit.start.ledger for unit in found if unit.piece is not None}) == 2
        assert not any(b"abort" in data for _, _, data in got)
        assert sum(b"commit" in data for _, _, data in got) == 3

    tell(tmp_path, story, transactionCoordinatorEnabled=True)


def test_a_segment_that_is_gone_is_read_by_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This works as long as the broker has its entries; what it has trimmed as well is named exactly."""
    # Entries that were moved would be found in the directory; here they were not.
    monkeypatch.setattr(segment_reader, "moved_pieces", lambda *_: [])

    async def story(broker: RealBroker, url: str) -> None:
        for first in (0, 20):
            await asyncio.to_thread(publish_numbers, url, first, first + 20, topic=T)
            assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        await asyncio.to_thread(publish_numbers, url, 40, 50, topic=T)
        access = Access(url=url, directory=str(tmp_path))
        found = await asyncio.to_thread(units, access, "t")
        want = (await asyncio.to_thread(stored, access, found))[0]
        assert len(want) == 50
        gone = [unit if unit.piece is None else unit._replace(piece=unit.piece._replace(segment=77)) for unit in found]
        assert await asyncio.to_thread(stored, access, gone) == (want, [])
        broker.node.broker.service.topics[T].log.trim(20)
        left, missing = await asyncio.to_thread(stored, access, gone)
        assert left == want[20:]
        assert [(one.start, one.stop) for one in missing] == [(found[0].start, found[0].stop)]
        # opened segments are read although the broker has let go of the entries
        assert await asyncio.to_thread(stored, access, found) == (want, [])

    tell(tmp_path, story)


def test_a_frame_has_the_rows_of_the_topic(spark: Any, tmp_path: Path) -> None:
    async def story(broker: RealBroker, url: str) -> None:
        await asyncio.to_thread(publish_numbers, url, 0, 300, batch=11, topic=T)
        assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        await asyncio.to_thread(publish_numbers, url, 300, 400, topic=T)
        access = Access(url=url, directory=str(tmp_path))

        def rows() -> list[Any]:
            found = units(access, "t")
            assert {unit.piece is None for unit in found} == {True, False}
            columns = ["__key", "__sequenceId", "__batchIndex"]
            return list(frame(spark, access, found, columns).orderBy("__sequenceId").collect())

        got = [(bytes(row[0]), bytes(row[1]), row[2]) for row in await asyncio.to_thread(rows)]
        assert got == [(b"%d" % number, b"k%d" % (number % 7), number) for number in range(400)]

    tell(tmp_path, story)


def entries_of(numbers: Sequence[int], *, name: str = "p", batch: int = 3, text: bytes = b"v%d") -> list[Batch]:
    writer = BatchWriter(name, max_messages=batch)
    return list(writer.pack(1_700_000_000_000, [text % number for number in numbers], numbers))


def send(url: str, entries: Sequence[Batch], topic: str = T) -> None:
    """Append entries as they are, in this order, whichever producer they name."""
    with Lookup(url, timeout=10) as lookup, Producer(lookup, topic) as producer:
        for one in entries:
            producer.send(*one)
        producer.flush()


def test_audit_finds_every_planted_defect_and_nothing_else(spark: Any, tmp_path: Path) -> None:
    """Every planted defect is found, by name and place, and nothing else."""

    async def story(broker: RealBroker, url: str) -> None:
        clean = entries_of(range(60))
        other = entries_of(range(1000, 1030), name="q")
        await asyncio.to_thread(send, url, [one for pair in zip(clean, other, strict=False) for one in pair])
        ledger = broker.node.broker.service.topics[T].log.position(0).ledger
        assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        access = Access(url=url, directory=str(tmp_path))

        def audited(*, dense: bool = False) -> tuple[dict[str, int], list[tuple[str, str, int | None]], int]:
            result = audit(spark, access, units(access, "t"), dense=dense)
            found = [(one.kind, one.place, one.sequence) for one in result.findings]
            return result.counts, found, result.messages

        assert await asyncio.to_thread(audited) == ({}, [], 60)
        # 30 to 59 of p were never sent; then ids 90, 91, 92 twice, 93 with another content, 94 before 93
        again = entries_of([90, 91, 92])
        wrong = [*again, *again, *entries_of([94]), *entries_of([93]), *entries_of([93], text=b"w%d")]
        await asyncio.to_thread(send, url, wrong)
        last = broker.node.broker.service.topics[T].log.position(24).ledger
        counts, found, messages = await asyncio.to_thread(audited)
        assert messages == 69
        assert counts == {"repeat": 3, "reused": 1}
        assert sorted(found) == [
            ("repeat", f"{last}:0:0", 90),
            ("repeat", f"{last}:0:1", 91),
            ("repeat", f"{last}:0:2", 92),
            ("reused", f"{last}:3:0", 93),
        ]
        await asyncio.to_thread(send, url, entries_of([80]))
        counts, found, _ = await asyncio.to_thread(audited)
        assert counts == {"repeat": 3, "reused": 1, "order": 1}
        assert ("order", f"{last}:5:0", 80) in found
        counts, found, _ = await asyncio.to_thread(audited, dense=True)
        assert ("skipped", f"{ledger}:18:2", 30) in found
        # bits that turn on the disk: the entries around them are named
        store = Path(tmp_path) / "ledgers"
        data = bytearray((store / segment_name(1)).read_bytes())
        data[data.index(b"v17")] ^= 1
        (store / segment_name(1)).write_bytes(data)
        counts, found, _ = await asyncio.to_thread(audited)
        assert counts["gap"] == 1
        _, place, _ = next(one for one in found if one[0] == "gap")
        assert place.startswith(f"{ledger}:")

    tell(tmp_path, story)


def test_compare_finds_exactly_the_differences(spark: Any, tmp_path: Path) -> None:
    """Two topics with other batches are equal; planted differences are found, and nothing else."""

    async def story(broker: RealBroker, url: str) -> None:
        a, b = T, "persistent://public/default/b"
        numbers = [*range(300), *range(20_000, 20_300)]
        await asyncio.to_thread(send, url, entries_of(numbers, batch=7), a)
        await asyncio.to_thread(send, url, entries_of(numbers, batch=11), b)
        assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        access = Access(url=url, directory=str(tmp_path))

        def compared(way: str) -> tuple[Comparison, list[tuple[str, int, int]]]:
            result = compare(spark, Side("a", access, units(access, a)), Side("b", access, units(access, b)), way=way)
            return result, [(one.kind, one.copies_a, one.copies_b) for one in result.differences]

        for way in WAYS:
            result, found = await asyncio.to_thread(compared, way)
            assert (result.messages_a, result.messages_b, result.counts, found) == (600, 600, {}, [])
        await asyncio.to_thread(send, url, entries_of([20_300]), a)
        await asyncio.to_thread(send, url, entries_of([20_301], text=b"w%d"), a)
        await asyncio.to_thread(send, url, entries_of([20_301, 20_302]), b)
        result, found = await asyncio.to_thread(compared, "producer")
        assert found == [("only in A", 1, 0), ("differs", 1, 1), ("only in B", 0, 1)]
        assert [one.id for one in result.differences] == [20_300, 20_301, 20_302]
        assert result.differing == 1
        log = broker.node.broker.service.topics[a].log
        assert result.differences[0].place_a == f"{a} {log.position(log.end - 2)}:0"
        assert result.differences[0].place_b == ""
        result, found = await asyncio.to_thread(compared, "content")
        assert sorted(found) == [("only in A", 1, 0), ("only in A", 1, 0), ("only in B", 0, 1), ("only in B", 0, 1)]

    tell(tmp_path, story)


def test_a_replay_that_runs_three_times_publishes_once(spark: Any, tmp_path: Path) -> None:
    """A filtered backlog with holes is run three times, the last time in other tasks, and published once."""

    async def story(broker: RealBroker, url: str) -> None:
        client = await broker.client()
        consumer = await client.subscribe(T, "s", sub_type=c.SubType.Shared)
        await asyncio.to_thread(publish_numbers, url, 0, 20, topic=T)
        consumer.flow(100)
        ids = [(await consumer.receive()).message_id for _ in range(20)]
        await consumer.ack(*[ids[number] for number in (0, 1, 2, 7, 8, 11)])
        service = broker.node.broker.service
        access, rest = Access(url=url), Rest(service.web_service_url)
        target = "persistent://public/default/again"
        wanted = ReplayRequest("one", T, "s", target, "cast(value AS string) != '13'").checked()

        def run() -> tuple[int, bool]:
            path = tmp_path / "plan.json"
            ranges, again = load_or_make(path, wanted, lambda: make_plan(access, rest, wanted))
            return replay(spark, access, wanted, ranges), again

        kept = [number for number in range(20) if number not in (0, 1, 2, 7, 8, 11, 13)]
        for again in (False, True):
            assert await asyncio.to_thread(run) == (len(kept), again)
            # what is acknowledged after the plan was made changes nothing
            await consumer.ack(ids[15])
        rows = await asyncio.to_thread(lambda: list(_values(access, target)))
        assert sorted(rows) == sorted((b"%d" % number, b"k%d" % (number % 7)) for number in kept)
        with pytest.raises(InvalidValueError, match=r"the filter 'nothing = 1' cannot be used.*columns: value, __key"):
            plain = ReplayRequest("x", T, None, target, None)
            ranges = await asyncio.to_thread(make_plan, access, None, plain)
            await asyncio.to_thread(replay, spark, access, ReplayRequest("x", T, None, target, "nothing = 1"), ranges)
        with pytest.raises(NotFoundError, match="no subscription 'other'; it has s"):
            await asyncio.to_thread(make_plan, access, rest, ReplayRequest("x", T, "other", target, None))
        assert list(service.topics[T].subscriptions) == ["s"]
        await client.close()

    tell(tmp_path / "data", story, brokerDeduplicationEnabled=True)


def _values(access: Access, topic: str) -> Iterator[tuple[bytes, bytes]]:
    for unit in units(access, topic):
        for batch in read(access, unit, ["__key"]):
            yield from zip(batch.column("value").to_pylist(), batch.column("__key").to_pylist(), strict=True)


def test_a_report_matches_what_was_sent(tmp_path: Path) -> None:
    """The report of a fresh broker is compared with what was sent."""

    async def story(broker: RealBroker, url: str) -> None:
        client = await broker.client()
        consumer = await client.subscribe(T, "s")
        for first in (0, 10):
            await asyncio.to_thread(publish_numbers, url, first, first + 10, topic=T)
            assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        await client.close()
        client = await broker.client()
        consumer = await client.subscribe(T, "s")
        consumer.flow(15)
        ids = [(await consumer.receive()).message_id for _ in range(15)]
        await consumer.ack(ids[-1], cumulative=True)
        rest = Rest(broker.node.broker.service.web_service_url)

        def reported(what_if: WhatIf) -> TopicReport:
            assert topics_of(rest, "public/default") == [T]
            facts = facts_of(Access(url=url), rest, T, aged=True)
            return topic_report(facts, what_if, 1_700_000_000_000 + 120_000, 1.0)

        found = await asyncio.to_thread(reported, WhatIf())
        log = broker.node.broker.service.topics[T].log
        assert (found.size, found.entries) == (log.retained_bytes(), 20)
        ledgers = {one.id: one for one in log.table.ledgers}
        whole, half = (ledgers[one.ledger] for one in (ids[0], ids[14]))
        assert found.kept == whole.bytes + half.bytes // 2
        assert found.backlog == found.size - found.kept
        assert (found.slowest, found.until, found.oldest_ms) == ("s", "for ever", 1_700_000_000_000)
        assert found.zstd is not None
        assert found.lz4 is not None
        assert (await asyncio.to_thread(reported, WhatIf(retention_minutes=1))).freed == whole.bytes
        assert (await asyncio.to_thread(reported, WhatIf(retention_minutes=3))).freed == 0
        with pytest.raises(InvalidValueError, match="there is no namespace public/nothing"):
            await asyncio.to_thread(topics_of, rest, "public/nothing")
        await client.close()

    tell(tmp_path, story)
