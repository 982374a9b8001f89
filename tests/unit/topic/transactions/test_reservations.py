"""What transactions reserve on a subscription, and that an end leaves nothing of it behind (rule 9.12)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from magnetar.model.subscription_types import SubType
from magnetar.protocol.commands.ids import TxnId
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic
from tests.support.topic_bench import OrdinalConnection

NOBODY = cast(Any, None)
"""No consumer is there from whom an entry could be taken."""


async def reserved(place: LoadedTopic, txn: TxnId, ordinal: int) -> None:
    """One entry, durably."""
    subscription = place.topic.subscriptions["s"]
    place.topic.transacting().acknowledge(subscription, NOBODY, txn, [ordinal], [], lambda: None)
    await place.durable()


async def with_entries() -> LoadedTopic:
    """Six of them, and a subscription that has none acknowledged."""
    place = LoadedTopic()
    for i in range(6):
        place.append("k", str(i))
    place.topic.create_subscription("s", 0)
    await place.durable()
    place.topic.transacting()
    return place


async def gone(place: LoadedTopic) -> None:
    place.topic.close()
    await place.store.close()


@pytest.mark.parametrize("commit", [True, False])
def test_after_their_end_a_subscription_is_read_as_before_them(commit: bool) -> None:
    """What holds entries back while transactions are open is asked for nothing afterwards, however many there were."""

    async def main() -> None:
        place = await with_entries()
        transactions, subscription = place.topic.transacting(), place.topic.subscriptions["s"]
        assert subscription.pump.dispatch_filter is not None
        rules = list(subscription.pump.dispatch_filter._all)
        for number in range(3):
            txn = TxnId(0, number)
            await reserved(place, txn, number)
            assert len(subscription.pump.dispatch_filter._all) == len(rules) + 1
            assert subscription.pump.sender.parts is not subscription.cursor
            transactions.end(txn, commit=commit, sent=False)
            await place.durable()
            assert subscription.pump.dispatch_filter._all == rules
            assert subscription.pump.sender.parts is subscription.cursor
            assert len(transactions._owing) <= 1, "nothing grows with each of them"
        assert subscription.cursor.mark_delete == (2 if commit else -1)
        await gone(place)

    run_in(SimLoop(1), main())


def test_a_subscription_of_the_same_name_holds_back_what_is_reserved_on_it() -> None:
    """Also if the one before it was deleted while something was reserved on that."""

    async def main() -> None:
        place = await with_entries()
        await reserved(place, TxnId(0, 1), 0)
        place.topic.delete_subscription("s", lambda: None)
        await place.durable()
        place.topic.create_subscription("s", 0)
        await place.durable()
        await reserved(place, TxnId(0, 2), 0)
        dispatch_filter = place.topic.subscriptions["s"].pump.dispatch_filter
        assert dispatch_filter is not None and dispatch_filter.next_open(0, 6) == 1
        await gone(place)

    run_in(SimLoop(1), main())


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_whose_marker_the_disk_refused_lets_through_what_stands_behind_its_entries(commit: bool) -> None:
    """No entry comes with the decision then, and so none that would have the subscriptions look again."""

    async def main() -> None:
        place = await with_entries()
        txn = TxnId(0, 1)
        place.append("k", "in the transaction", txn)
        place.append("k", "behind")
        await place.durable()
        connection = OrdinalConnection()
        subscription = place.topic.subscriptions["s"]
        consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
        subscription.flow(consumer, 100)
        await asyncio.sleep(1)
        assert connection.ordinals == [0, 1, 2, 3, 4, 5]
        place.files.fail("append", times=1)
        place.topic.transacting().end(txn, commit=commit, sent=True)
        await asyncio.sleep(5)
        assert connection.ordinals == [0, 1, 2, 3, 4, 5, *([6] if commit else []), 7]
        assert place.topic.log.end == 8, "the marker is nowhere"
        await gone(place)

    run_in(SimLoop(1), main())


def test_a_commit_that_is_durable_after_the_topic_was_unloaded_reaches_the_cursor() -> None:
    async def main() -> None:
        place = await with_entries()
        await reserved(place, TxnId(0, 1), 0)
        place.topic.transacting().end(TxnId(0, 1), commit=True, sent=False)
        place.topic.close()
        await asyncio.sleep(1)  # nobody says meanwhile that a cursor has it
        place.load()
        await place.durable()
        assert place.topic.subscriptions["s"].cursor.mark_delete == 0
        await place.restart()
        assert place.topic.subscriptions["s"].cursor.mark_delete == 0
        await gone(place)

    run_in(SimLoop(1), main())


@pytest.mark.parametrize("ordinal", [0, 3])
def test_what_is_trimmed_is_remembered_as_aborted_no_more(ordinal: int) -> None:
    """Not the first entry of all, either: what is written down of transactions ends with their entries."""

    async def main() -> None:
        place = await with_entries()
        transactions, txn = place.topic.transacting(), TxnId(0, 1)
        transactions.wrote(txn, ordinal)
        transactions.end(txn, commit=False, sent=False)
        await place.durable()
        assert transactions.buffer.next_hidden(0, 6) == ordinal
        for first, left in ((ordinal, ordinal), (ordinal + 1, 6)):
            transactions.trimmed(first)
            await place.durable()
            assert transactions.buffer.next_hidden(0, 6) == left
        await gone(place)

    run_in(SimLoop(1), main())
