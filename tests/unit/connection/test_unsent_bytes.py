"""The budget of answers that are not taken: where it begins to be short, who is served then, and when that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.bounds.unsent_bytes import UnsentBytes
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.connections import FakeTransport

MOST = 8_000_000
STEP = 1_000_000
"""An eighth of it, after which the sockets are counted again."""
LITTLE = 131_072
"""What one connection may hold in any case."""


class Holder:
    def __init__(self, unsent: int = 0) -> None:
        self.unsent = unsent
        self.served = 0
        self.closed = False

    def writable_again(self) -> None:
        self.served += 1

    def takes_too_much(self, unsent: int) -> None:
        self.closed = True


def simulated(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    run_in(SimLoop(1), main())


@pytest.mark.parametrize(("more", "short"), [(0, False), (1, True)])
def test_it_is_short_as_soon_as_what_is_not_counted_yet_could_be_too_much(more: int, short: bool) -> None:
    async def scenario() -> None:
        unsent = UnsentBytes(MOST, lambda: [Holder(MOST - STEP + more)])
        unsent.written(STEP - 1)
        assert (unsent.short, unsent.bytes) == (False, STEP - 1)
        unsent.written(1)
        assert (unsent.short, unsent.bytes) == (short, MOST - STEP + more)

    simulated(scenario)


@pytest.mark.parametrize(("more", "closed"), [(0, False), (1, True)])
def test_above_twice_the_budget_and_not_at_it_connections_are_closed(more: int, closed: bool) -> None:
    async def scenario() -> None:
        holders = [Holder(MOST), Holder(MOST + more)]
        UnsentBytes(MOST, lambda: holders).count()
        assert [holder.closed for holder in holders] == [False, closed]

    simulated(scenario)


def test_during_a_shortage_it_is_counted_again_and_again_until_there_is_room() -> None:
    async def scenario() -> None:
        large, lost = Holder(MOST), Holder()
        unsent = UnsentBytes(MOST, lambda: [large])
        unsent.count()
        unsent.denied(large)
        unsent.denied(lost)
        unsent.forget(lost)
        await asyncio.sleep(1)
        assert (unsent.short, large.served) == (True, 0)
        large.unsent = 0
        await asyncio.sleep(0.2)
        assert (unsent.short, large.served) == (False, 1)
        unsent.count()
        await asyncio.sleep(1)
        assert (large.served, lost.served) == (1, 0), "once, and not one that has gone"

    simulated(scenario)


def test_in_a_shortage_an_outbox_takes_no_more_than_a_little_until_it_is_over() -> None:
    async def scenario() -> None:
        holder, transport = Holder(), FakeTransport(asyncio.Protocol())
        unsent = UnsentBytes(MOST, lambda: [holder])
        out = Outbox(asyncio.get_running_loop(), transport, lambda: None, 1_000_000, unsent, holder)
        unsent.short = True
        transport.unsent = LITTLE - 10
        out.put(bytes(10))
        assert out.writable
        out.put(b"x")
        assert not out.writable
        await asyncio.sleep(0)
        assert unsent.bytes == 11, "what was handed to the socket counts"
        unsent.count()
        assert (unsent.bytes, holder.served) == (0, 1)
        assert out.writable
        unsent.short = True
        transport.unsent = LITTLE + 1
        assert not out.writable
        out.end()
        unsent.count()
        assert holder.served == 1, "what has ended is not served"

    simulated(scenario)
