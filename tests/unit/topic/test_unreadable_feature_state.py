"""Features whose state cannot be read, is refused by the disk, or was left by a policy that is off by now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from magnetar.broker.delivery.delay_index import DelayIndex
from magnetar.broker.topic.cleanup.retention import apply_retention
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.broker.topic.publish.chunk_record import _Fact
from magnetar.broker.topic.publish.deduplication import DEDUPLICATION
from magnetar.broker.topic.publish.sequence_ids import SequenceIds
from magnetar.broker.topic.publish.topic_epoch import MemoryEpoch
from magnetar.broker.topic.subscription.explanation import explain
from magnetar.model.policies import Retention
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.commands.ids import TxnId
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic, ValueConnection
from tests.support.subscription_stand import Stand
from tests.support.topic_bench import TopicBench, simulated


@pytest.mark.parametrize("dumped", [b"", b"\x07", b"\x01" + bytes(15), b"\x01" + bytes(17), b"\x02" + bytes(16)])
def test_delays_of_another_format_are_refused(dumped: bytes) -> None:
    index = DelayIndex()
    with pytest.raises(ValueError, match=f"an index of delayed messages in an unknown format: .*, {len(dumped)} B"):
        index.load(dumped, 0)
    index.check()
    assert index.next_due() is None


def test_delayed_messages_whose_index_cannot_be_read_go_out_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreadable(self: DelayIndex, data: bytes, after_ms: int) -> None:
        raise ValueError("no index")

    async def main() -> None:
        bench = TopicBench(tmp_path)
        await bench.subscription()
        bench.publish(60_000, 0)
        await bench.durable()
        with monkeypatch.context() as patched:
            patched.setattr(DelayIndex, "load_pairs", unreadable)
            await bench.restart()
        _, connection = await bench.join()
        await asyncio.sleep(1)
        assert connection.ordinals == [0, 1]
        assert "persistent://public/default/delayed: its delayed messages go out at once: no index" in caplog.text

    simulated(main)


def test_a_chunk_that_the_disk_did_not_note_is_noted_with_the_next_write() -> None:
    async def main() -> None:
        place = LoadedTopic()
        place.append("k", "x")
        await place.durable()
        place.files.fail("append")
        place.topic.chunking.published_one()
        place.append("k", "y")
        await asyncio.sleep(5)
        place.append("k", "z")
        await place.durable()
        place.topic.close()
        place.files = place.files.crash(Random(2))  # what was refused may be there or not
        place.boot()
        assert place.topic.chunking.seen
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def test_what_a_topic_says_of_chunks_is_written_once_and_again_if_that_was_lost() -> None:
    fact = _Fact(False)
    written = fact.changes()
    assert written is not None and fact.changes() is None
    fact.lost()
    assert fact.changes() == written
    fact.durable()
    fact.lost()
    assert fact.so and fact.changes() is None


@pytest.mark.parametrize("enabled", [True, False])
def test_what_deduplication_knew_goes_when_it_was_switched_off_while_its_topic_was_not_loaded(enabled: bool) -> None:
    """Otherwise what is published without it would be taken for repetitions when it is switched on again."""

    async def main() -> None:
        place = LoadedTopic(TopicPolicies(deduplication_enabled=True))
        assert place.topic.checks.deduplication is not None
        ids: SequenceIds = place.topic.log.feature_state(DEDUPLICATION).open(cast(Any, None))
        ids.push("p", 5)
        place.topic.log.feature_state(DEDUPLICATION).touch()
        place.append("k", "x")
        await place.durable()
        assert place.topic.checks.last_sequence_id("p") == 5
        place.loaded_with = TopicPolicies(deduplication_enabled=enabled)
        await place.restart()
        assert place.topic.checks.last_sequence_id("p") == (5 if enabled else -1)
        await place.durable()
        place.loaded_with = TopicPolicies(deduplication_enabled=True)
        await place.restart()
        assert place.topic.checks.last_sequence_id("p") == (5 if enabled else -1)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def test_a_view_that_is_gone_is_named_and_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        place = LoadedTopic()
        for number in range(5):
            place.append(f"k{number % 2}", str(number))
        await place.durable()
        await place.compact()
        (view,) = [name for name in place.store.names() if name.startswith("internal://compacted/")]
        place.topic.close()
        place.store.delete_log(view)
        place.load()
        assert place.topic.compaction().view is None
        assert "the compacted view up to ordinal 5 is gone" in caplog.text
        assert await place.compacted() == ["0", "1", "2", "3", "4"], "the log has everything still"
        place.append("k0", "5")
        await place.durable()
        await place.compact()
        assert await place.compacted("again") == ["3", "5"]
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


@pytest.mark.parametrize(("time_ms", "ordinal"), [(0, 0), (1000, 0), (1001, 3)])
def test_without_a_view_a_time_is_looked_for_in_the_log(time_ms: int, ordinal: int) -> None:
    async def main() -> None:
        place = LoadedTopic()
        for number in range(3):
            place.append("k", str(number))
        await place.durable()
        answer: asyncio.Future[int | Exception] = asyncio.get_running_loop().create_future()
        place.topic.compaction().detached_source().since(time_ms, answer.set_result)
        assert await answer == ordinal
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def test_what_holds_entries_back_is_named_with_the_oldest_transaction_or_their_delay() -> None:
    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.create_subscription("s", 0)
        subscription = topic.subscriptions["s"]
        connection = ValueConnection()
        consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Shared)
        subscription.flow(consumer, 10)
        place.append("k", "0", TxnId(1, 7))
        place.append("k", "1", TxnId(1, 8))
        await place.durable()
        (found,) = [one.text for one in explain(subscription) if one.what == "gate"]
        assert found.endswith("on may not be read yet: transaction (1,7) is open and began there.")
        topic.transacting().end(TxnId(1, 7), commit=True, sent=True)
        await place.durable()
        await asyncio.sleep(1)
        (found,) = [one.text for one in explain(subscription) if one.what == "gate"]
        assert "transaction (1,8)" in found
        topic.transacting().end(TxnId(1, 8), commit=True, sent=True)
        await place.durable()
        await asyncio.sleep(1)
        assert connection.values == ["0", "1"]
        assert not [one for one in explain(subscription) if one.what == "gate"]
        topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def test_delayed_entries_are_counted_in_an_explanation(tmp_path: Path) -> None:
    async def main() -> None:
        bench = TopicBench(tmp_path)
        await bench.join()
        bench.publish(60_000, 70_000, 0)
        await bench.durable()
        found = {one.what: one.text for one in explain(bench.topic.subscriptions["s"])}
        assert found["delayed"] == "2 entries wait for the time they were sent for."
        await asyncio.sleep(65)
        found = {one.what: one.text for one in explain(bench.topic.subscriptions["s"])}
        assert found["delayed"] == "1 entries wait for the time they were sent for."

    simulated(main)


@pytest.mark.parametrize(("why", "what"), [("", "flowing"), ("it forgot to", "stuck")])
def test_where_nothing_holds_entries_up_they_flow_or_the_subscription_stands_still(
    why: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand()
    stand.join("c", permits=100)
    stand.append_many(2)
    stand.subscription.redeliver(stand.subscription.consumers[0], None)
    stand.subscription.consumers[0].state.pending.clear()
    monkeypatch.setattr(type(stand.subscription), "should_send", lambda self: why)
    (found,) = explain(stand.subscription)
    assert found.what == what
    assert found.text == ("It should be sending: it forgot to." if why else "Nothing holds up the 2 entries.")


def test_who_has_left_asks_for_nothing_again() -> None:
    """Its REDELIVER may have crossed the end of its consumer."""
    stand = Stand()
    gone, _ = stand.join("gone", permits=2)
    stays, connection = stand.join("stays", permits=2)
    stand.append_many(4)
    stand.subscription.remove_consumer(gone)
    before = list(connection.ordinals)
    for ordinals in (None, [0, 1, 2, 3]):
        stand.subscription.redeliver(gone, ordinals, epoch=9)
    assert connection.ordinals == before and len(stays.state.pending) == 2
    assert gone.epoch != 9


def test_where_everything_is_retained_no_pass_looks_at_anything() -> None:
    class Untouched:
        policies = TopicPolicies(retention=Retention(-1, -1))
        closed = False

    assert asyncio.run(apply_retention(cast(Any, Untouched()), 0)) == 0


def test_an_epoch_in_memory_is_the_last_that_was_moved_to() -> None:
    done: list[int] = []
    epoch = MemoryEpoch()
    assert epoch.current is None
    for number in (1, 5):
        epoch.move(number, lambda: done.append(1))
        assert epoch.current == number
    assert len(done) == 2


def test_a_rule_that_says_nothing_holds_nothing_back() -> None:
    rule = DispatchRule()
    assert rule.readable_end(9) == 9
    assert (rule.next_open(3, 9), rule.next_closed(3, 9)) == (3, 9)
    dead: Sequence[int] = rule.dead(3, 9)
    assert list(dead) == []
