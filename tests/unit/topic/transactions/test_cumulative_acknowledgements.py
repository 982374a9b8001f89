"""Cumulative acknowledgements in transactions, on a disk: who may reserve what, what an end does (rule 9.12)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest

from magnetar.model.errors import TransactionConflictError
from magnetar.protocol.commands.ids import TxnId
from magnetar.testing.simloop import SimLoop, run_in
from magnetar.transactions.pending_acks import PartialBatch
from tests.support.loaded_topic import LoadedTopic

ONE, OTHER = TxnId(0, 1), TxnId(0, 2)


def whole(ordinal: int) -> PartialBatch:
    return PartialBatch(ordinal, 0, 0)


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]]) -> None:
    async def main() -> None:
        place = LoadedTopic()
        for i in range(12):
            place.append("k", str(i))
        place.topic.create_subscription("s", 0)
        await place.durable()
        place.topic.subscriptions["s"].skip_until(3)
        await place.durable()
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


async def reserve(place: LoadedTopic, txn: TxnId, until: PartialBatch) -> None:
    """Answered when it is durable."""
    done: list[bool] = []
    place.topic.transacting().acknowledge_until(place.topic.subscriptions["s"], txn, until, lambda: done.append(True))
    assert done == []
    await place.durable()
    assert done == [True]


async def end(place: LoadedTopic, txn: TxnId, *, commit: bool) -> None:
    place.topic.transacting().end(txn, commit=commit, sent=False)
    await place.durable()


def refused(place: LoadedTopic, ordinal: int) -> str:
    position = place.topic.log.position(ordinal)
    return re.escape(f"{position.ledger}:{position.entry}")


def test_what_lies_at_the_mark_is_refused_and_the_next_entry_is_not() -> None:
    async def scenario(place: LoadedTopic) -> None:
        for ordinal in (0, 3):
            with pytest.raises(TransactionConflictError, match=f"{refused(place, ordinal)} within range of cursor's"):
                await reserve(place, ONE, whole(ordinal))
        assert place.topic.transacting().beside.now == {}, "who is refused reserves nothing"
        await reserve(place, ONE, whole(4))
        await end(place, ONE, commit=True)
        assert place.topic.subscriptions["s"].cursor.mark_delete == 4

    simulated(scenario)


@pytest.mark.parametrize("again", ["", "restart", "kill"])
def test_one_transaction_holds_it_at_a_time_and_only_goes_forward(again: str) -> None:
    """Also after the broker came back."""

    async def scenario(place: LoadedTopic) -> None:
        await reserve(place, ONE, PartialBatch(6, 0b0011, 4))
        if again:
            await place.restart() if again == "restart" else place.kill()
        for txn, until in (
            (OTHER, whole(9)), (ONE, whole(5)), (ONE, PartialBatch(6, 0b0001, 4)), (ONE, PartialBatch(6, 0b0011, 4)),
        ):  # fmt: skip
            with pytest.raises(TransactionConflictError, match=f"currentPosition: {refused(place, 6)}"):
                await reserve(place, txn, until)
        await reserve(place, ONE, PartialBatch(6, 0b0111, 4))
        await reserve(place, ONE, whole(6))
        await reserve(place, ONE, PartialBatch(7, 0b0001, 4))
        await end(place, ONE, commit=True)
        cursor = place.topic.subscriptions["s"].cursor
        assert (cursor.mark_delete, cursor.remaining_indexes(7)) == (6, (0b1110,))
        await reserve(place, OTHER, whole(9))

    simulated(scenario)


@pytest.mark.parametrize("again", ["", "restart", "kill"])
def test_an_abort_leaves_the_cursor_and_lets_others_reserve(again: str) -> None:
    async def scenario(place: LoadedTopic) -> None:
        await reserve(place, ONE, whole(8))
        await end(place, ONE, commit=False)
        if again:
            await place.restart() if again == "restart" else place.kill()
        assert place.topic.subscriptions["s"].cursor.mark_delete == 3
        await reserve(place, OTHER, PartialBatch(5, 0b1111, 4))
        await end(place, OTHER, commit=True)
        assert place.topic.subscriptions["s"].cursor.mark_delete == 5

    simulated(scenario)


@pytest.mark.parametrize("again", ["", "restart", "kill"])
def test_a_subscription_that_is_gone_takes_its_reservations_along(again: str) -> None:
    """One that comes later under its name is another one: nothing of it is reserved, and a commit changes nothing."""

    async def scenario(place: LoadedTopic) -> None:
        place.topic.create_subscription("other", 0)
        await reserve(place, ONE, whole(6))
        kept: list[bool] = []
        place.topic.transacting().acknowledge_until(
            place.topic.subscriptions["other"], ONE, whole(5), lambda: kept.append(True)
        )
        place.topic.delete_subscription("s", lambda: None)
        await place.durable()
        assert kept == [True]
        if again:
            await place.restart() if again == "restart" else place.kill()
        place.topic.create_subscription("s", 0)
        await place.durable()
        assert (
            set(place.topic.transacting().beside.now)
            == set(place.topic.transacting().beside.settled.pending)
            == {"other"}
        )
        await reserve(place, OTHER, whole(2))
        await end(place, ONE, commit=True)
        assert place.topic.subscriptions["s"].cursor.mark_delete == -1
        assert place.topic.subscriptions["other"].cursor.mark_delete == 5
        await end(place, OTHER, commit=True)
        assert place.topic.subscriptions["s"].cursor.mark_delete == 2

    simulated(scenario)
