"""Where two or three features of a topic meet: each of these once went wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.delivery.dispatchers.shared_chunks import ChunkInfo
from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.broker.topic.publish.producer import PendingEntry, Producer, ProducerInfo
from magnetar.broker.topic.publish.receipt_order import OrderedReceipts
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import PersistenceError
from magnetar.model.subscription_types import SubType
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.commands import CommandSend, ProducerAccessMode
from magnetar.protocol.commands.ids import TxnId
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.loaded_topic import LoadedTopic
from tests.support.subscription_stand import Stand
from tests.support.tombstones import deletion
from tests.support.topic_bench import TopicBench, simulated

TXN = TxnId(0, 7)


@pytest.mark.parametrize("sub_type", [SubType.Exclusive, SubType.Failover])
def test_a_delay_that_ends_sends_nothing_again_to_a_consumer_that_did_not_wait(
    tmp_path: Path, sub_type: SubType
) -> None:
    """Delays, Exclusive and Failover (rule 7.2): it has had the message at once."""

    async def main() -> None:
        bench = TopicBench(tmp_path)
        _, connection = await bench.join(sub_type)
        bench.publish(1_000, 0)
        await bench.durable()
        assert connection.ordinals == [0, 1]
        await asyncio.sleep(2)
        assert connection.ordinals == [0, 1]

    simulated(main)


def test_what_compaction_keeps_of_trimmed_ledgers_is_not_hidden_by_transactions() -> None:
    """Transactions, compaction, trimming: the view, the next view and a restart (rules 9.10, 4.7.4)."""

    async def main() -> None:
        place = LoadedTopic()
        place.append("a", "a1")
        place.append("b", "b1", TXN)
        place.topic.transacting().end(TXN, commit=True, sent=True)
        await place.durable()
        aborted = TxnId(0, 8)
        place.append("a", "never", aborted)
        place.topic.transacting().end(aborted, commit=False, sent=True)
        await place.durable()
        await place.compact()
        place.topic.log.open_ledger()
        place.append("c", "c1")
        await place.durable()
        assert place.topic.trim() > 0
        await place.durable()
        await asyncio.sleep(1)
        wanted = ["a1", "b1", "c1"]
        assert await place.compacted() == wanted
        await place.compact()
        assert await place.compacted("again") == wanted
        await place.restart()
        assert await place.compacted() == wanted
        place.topic.close()
        await place.store.close()

    simulated(main)


def test_the_last_message_of_a_compacted_reader_is_one_that_it_gets() -> None:
    """Transactions and compaction: what is open or aborted after the horizon is not to be waited for (rule 5.9.12)."""

    async def main() -> None:
        place = LoadedTopic()
        place.append("a", "1")
        place.append("b", "1")
        place.topic.log.append(deletion("b"), 1, None)
        place.append("x", "open", TXN)
        await place.durable()
        compactor = await place.compact()
        source, topic = compactor.detached_source(), place.topic
        assert topic.last_visible() == 2
        assert await last_of(source, topic) == topic.log.position(0)
        topic.transacting().end(TXN, commit=False, sent=True)
        await place.durable()
        assert topic.last_visible() == 2
        assert await last_of(source, topic) == topic.log.position(0)
        place.append("c", "1")
        await place.durable()
        assert await last_of(source, topic) is None, "it is in the log"

    simulated(main)


async def last_of(source: CompactedSource, topic: Topic) -> Any:
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    return (await found)[0] if source.last_compacted(topic.last_visible(), found.set_result) else None


def test_nothing_is_trimmed_before_the_view_that_has_it_is_durable() -> None:
    """Compaction, trimming, a disk that refuses: readers of the old view go on in the log."""

    async def main() -> None:
        place = LoadedTopic()
        for i in range(25):
            place.append(f"k{i}", f"{i}")
        await place.durable()
        compactor = place.topic.compaction()
        switch, refused = compactor._switch, place.files

        async def refusing(view: Any) -> None:
            refused.faults.sync_error_rate = 1.0
            await switch(view)

        compactor._switch = refusing  # type: ignore[method-assign]
        compactor.begin(retain_keyless=False)
        await asyncio.sleep(2)
        assert compactor.view is None
        place.topic.log.open_ledger()
        assert place.topic.trim() == 0
        assert len(await place.compacted()) == 25
        refused.faults.sync_error_rate = 0.0
        await asyncio.sleep(3)
        assert compactor.status == "SUCCESS"
        assert place.topic.log.cursors[COMPACTION_SUBSCRIPTION].mark_delete == 24
        place.topic.log.open_ledger()
        assert place.topic.trim() > 0
        await place.restart()
        assert place.topic.log.cursors[COMPACTION_SUBSCRIPTION].mark_delete == 24
        assert len(await place.compacted()) == 25

    simulated(main)


def test_a_termination_that_was_refused_does_not_happen_later() -> None:
    """Termination, a disk that refuses, a restart (rule 4.7.1)."""

    async def main() -> None:
        place = LoadedTopic()
        place.append("a", "1")
        await place.durable()
        place.files.fail("sync", times=2)
        answers: list[object] = []
        place.topic.termination.terminate(lambda: answers.append("done"), answers.append)
        await asyncio.sleep(5)
        assert [type(answer) for answer in answers] == [PersistenceError]
        assert not place.topic.termination.terminated
        place.append("a", "2")
        await place.durable()
        place.kill()
        assert not place.topic.termination.terminated
        place.topic.termination.terminate(lambda: answers.append("done"), answers.append)
        await place.durable()
        place.kill()
        assert place.topic.termination.terminated

    simulated(main)


def test_a_topic_that_is_loaded_again_and_again_does_not_grow() -> None:
    """Unload with a backlog: every load opens a ledger, and empty ones are not kept."""

    async def main() -> None:
        place = LoadedTopic()
        place.topic.create_subscription("s", 0)
        place.append("a", "1")
        await place.durable()
        for _ in range(50):
            place.topic.close()
            place.load()
            await asyncio.sleep(0.1)
        assert len(place.topic.log.table.ledgers) == 2
        place.append("a", "2")
        await place.durable()
        positions = [place.topic.log.position(ordinal) for ordinal in (0, 1)]
        assert positions[0].ledger < positions[1].ledger, "never in a ledger that another life has filled (4.1.5)"
        await place.restart()
        assert [place.topic.log.position(ordinal) for ordinal in (0, 1)] == positions
        place.topic.close()
        await place.store.close()

    simulated(main)


def test_a_chunk_that_waits_for_its_consumer_is_no_standstill() -> None:
    """Chunks and the watch over what stands still: others could take it, but it is not theirs (rule 3.6.6)."""
    stand = Stand()
    stand.subscription.has_chunks(lambda entry: ChunkInfo("u", entry == b"entry-4"))
    slow, slow_connection = stand.join("slow", permits=1)
    stand.join("quick", permits=100)
    stand.append_many(5)
    assert slow_connection.ordinals == [0]
    assert stand.subscription.dispatcher is not None
    assert stand.subscription.dispatcher.in_replay == 4
    assert stand.subscription.should_send() == ""
    stand.subscription.flow(slow, 10)
    assert slow_connection.ordinals == [0, 1, 2, 3, 4]
    assert stand.subscription.should_send() == ""


class Connection:
    """What a producer's client hears."""

    session = None

    def __init__(self) -> None:
        self.heard: list[tuple[int, list[int]]] = []

    def receipts(self, ledger: int, first_entry: int, results: Any) -> None:
        self.heard.append((ledger, [result.sequence_id for result in results]))


def test_a_duplicate_has_its_receipt_also_after_deduplication_was_off_for_a_while() -> None:
    """Deduplication switched off and on with messages in flight."""
    connection = Connection()
    ordered = OrderedReceipts(cast("Any", connection))
    one, two, again = (PendingEntry(cast("Any", None), number, 0) for number in (1, 2, 1))
    ordered.appended(one)
    ordered.receipts(5, 0, [one, two])  # two was sent while it was off
    ordered.duplicate(again)
    assert connection.heard == [(5, [1, 2]), (-1, [1])]


def producer_on(topic: Topic, name: str, mode: ProducerAccessMode) -> Producer:
    info = ProducerInfo(0, name, True, 0, mode, False, "a:1", "", "", {}, False)
    connection = SimpleNamespace(session=object(), receipts=lambda *_: None, close=lambda: None)
    return Producer(info, topic.log, cast("Any", connection))


def test_who_waits_for_the_topic_obeys_the_policies_of_the_day_when_it_is_admitted() -> None:
    """Exclusive producers and policies: the queue is notified, too (rule 3.2.4)."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.log.on_durable = topic.results.durable
        first = producer_on(topic, "first", ProducerAccessMode.Exclusive)
        topic.add_producer(first, None, lambda error: None)
        waiting = producer_on(topic, "waiting", ProducerAccessMode.WaitForExclusive)
        assert not topic.add_producer(waiting, None, lambda error: None)
        topic.set_policies(TopicPolicies(deduplication_enabled=True))
        await place.durable()
        topic.producers.remove(first)
        await place.durable()
        assert topic.producers.holder("waiting") is waiting
        entry = build_entry(EntryMetadata("waiting", 1, 1), b"m")
        for _ in range(2):
            waiting.publish(CommandSend(0, 1, 1, None, False, None, False, None, entry))
            await place.durable()
        assert topic.log.end == 1

    simulated(main)
