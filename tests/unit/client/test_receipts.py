"""Receipts pass for futures of asyncio, whether they are asked before or after the fate of their message is known."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.client.aio.topics.receipt import Receipt
from magnetar.client.errors import AlreadyClosedError
from magnetar.client.machines.outgoing.entry_fate import EntryFate


def _fate(messages: int = 3) -> EntryFate:
    fate = EntryFate(batch=True)
    fate.messages = messages
    return fate


def _tell(fate: EntryFate) -> None:
    """Do what a producer does when the fate is known."""
    for index, token in fate.tokens:
        if token.done():
            continue
        if fate.error is None:
            token.set_result(fate.message_id(index))
        else:
            token.set_exception(fate.error)


def test_all_ways_to_wait() -> None:
    asyncio.run(_wait_in_all_ways())


async def _wait_in_all_ways() -> None:
    loop, fate = asyncio.get_running_loop(), _fate(6)
    receipts = [Receipt(fate, index, loop) for index in range(6)]
    assert not receipts[0].done() and repr(receipts[0]) == "<Receipt pending>"
    with pytest.raises(asyncio.InvalidStateError):
        receipts[0].result()
    called: list[int] = []
    receipts[4].add_done_callback(lambda done: called.append(done.result().batch_index()))

    def store() -> None:
        fate.stored("t", -1, 7, 8)
        _tell(fate)

    loop.call_soon(store)
    first, gathered, waited, shielded = await asyncio.gather(
        receipts[0],
        asyncio.gather(receipts[1]),
        asyncio.wait([receipts[2].as_future()]),
        asyncio.wait_for(asyncio.shield(receipts[3]), 5),
    )
    assert [first.batch_index(), gathered[0].batch_index(), shielded.batch_index()] == [0, 1, 3]
    assert {one.result().batch_index() for one in waited[0]} == {2} and called == [4]
    # the last one was not asked before
    assert receipts[5].done() and receipts[5].exception() is None
    late = await receipts[5]
    assert (late.ledger_id(), late.entry_id(), late.batch_index(), late.batch_size) == (7, 8, 5, 6)


def test_a_failure_and_a_cancelled_wait() -> None:
    asyncio.run(_fail_and_cancel())


async def _fail_and_cancel() -> None:
    loop, fate = asyncio.get_running_loop(), _fate()
    receipts = [Receipt(fate, index, loop) for index in range(3)]
    waiting = asyncio.ensure_future(asyncio.wait_for(receipts[0], 60))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert receipts[0].cancelled() and not receipts[1].done()
    assert receipts[1].cancel() and not receipts[1].cancel()
    fate.failed(AlreadyClosedError("closed"))
    _tell(fate)
    with pytest.raises(AlreadyClosedError):
        await receipts[2]
    assert isinstance(receipts[2].exception(), AlreadyClosedError)
    assert repr(receipts[2]) == "<Receipt failed: closed>" and repr(receipts[1]) == "<Receipt cancelled>"
