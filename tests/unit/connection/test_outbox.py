"""The outbox: one write for what is put in one turn, and when it says that it takes no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.bounds.unsent_bytes import UnsentBytes
from tests.support.connections import FakeTransport


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


class Taker:
    unsent = 0

    def writable_again(self) -> None: ...

    def takes_too_much(self, unsent: int) -> None: ...


def outbox(transport: FakeTransport, on_writable: Callable[[], None], high: int = 1_000) -> Outbox:
    loop = asyncio.get_running_loop()
    return Outbox(loop, transport, on_writable, high, UnsentBytes(1 << 30, list), Taker())


def test_what_is_put_in_one_turn_leaves_in_one_write_in_order() -> None:
    async def scenario() -> None:
        transport = FakeTransport(asyncio.Protocol())
        out = outbox(transport, lambda: None)
        for i in range(10):
            out.put(b"%d" % i)
        out.parts.append(b"abc")
        out.grew(3)
        assert not transport.written
        await asyncio.sleep(0)
        assert transport.written == b"0123456789abc"
        assert out.writes == 1
        out.put(b"x" * 5_000)
        out.put(b"y" * 5_000)
        await asyncio.sleep(0)
        assert len(transport.written) == 10_013
        assert out.writes == 2
        assert out.total == 10_013

    run(scenario)


def test_high_water_is_told_and_so_is_its_end() -> None:
    async def scenario() -> None:
        calls: list[bool] = []
        transport = FakeTransport(asyncio.Protocol())
        out = outbox(transport, lambda: calls.append(out.writable))
        out.put(b"x" * 999)
        assert out.writable
        out.put(b"x")
        assert not out.writable
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert calls == [True]
        out.pause()
        assert not out.writable
        out.resume()
        assert calls == [True, True]

    run(scenario)


def test_a_lost_connection_is_written_nothing() -> None:
    async def scenario() -> None:
        calls: list[int] = []
        transport = FakeTransport(asyncio.Protocol())
        out = outbox(transport, lambda: calls.append(1))
        out.put(b"x" * 2_000)
        out.end()
        out.put(b"y")
        out.resume()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert transport.written == b""
        assert calls == []

    run(scenario)


def test_a_wake_up_asks_for_one_flush_however_much_is_put_in() -> None:
    """A message costs no call of the loop: the first of a turn asks for the flush, by either way in."""

    class Loop:
        def __init__(self) -> None:
            self.asked: list[Callable[[], None]] = []

        def call_soon(self, call: Callable[[], None]) -> None:
            self.asked.append(call)

    loop, transport, told = Loop(), FakeTransport(asyncio.Protocol()), list[bool]()
    out = Outbox(cast("Any", loop), transport, lambda: told.append(True), 100, UnsentBytes(1 << 30, list), Taker())

    def grow() -> None:
        out.parts.append(b"g")
        out.grew(1)

    def put() -> None:
        out.put(b"p")

    for first, then in ((put, put), (put, grow), (grow, put), (grow, grow)):
        first()
        then()
        then()
        assert len(loop.asked) == 1
        loop.asked.pop()()
        out.flush()
        assert loop.asked == []
    assert (out.writes, out.total, len(transport.written), told) == (4, 12, 12, [])
    out.put(b"x" * 100)
    loop.asked.pop(0)()
    (again,) = loop.asked
    again()
    assert told == [True], "who was held up by the outbox itself goes on"


def test_sockets_together_are_given_so_much_in_one_turn_and_the_rest_in_the_next_ones_in_order() -> None:
    """A thousand consumers of a topic with large messages are not written to in one go; who leaves does not wait."""

    async def scenario() -> None:
        unsent = UnsentBytes(1 << 40, list)
        loop, transports = asyncio.get_running_loop(), [FakeTransport(asyncio.Protocol()) for _ in range(12)]
        outboxes = [Outbox(loop, transport, lambda: None, 1_000, unsent, Taker()) for transport in transports]
        for out in outboxes:
            out.put(bytes(1 << 20))

        def written() -> list[int]:
            return [len(transport.written) >> 20 for transport in transports]

        await asyncio.sleep(0)
        assert written() == [1] * 4 + [0] * 8
        outboxes[11].flush()
        outboxes[9].end()
        outboxes[10].put(b"!")
        outboxes[0].put(b"?")
        await asyncio.sleep(0)
        assert written() == [1] * 8 + [0] * 3 + [1]
        await asyncio.sleep(0)
        assert written() == [1] * 9 + [0, 1, 1]
        assert (len(transports[10].written), len(transports[0].written)) == ((1 << 20) + 1, (1 << 20) + 1)
        assert all(out.writable for out in outboxes if out is not outboxes[9])

    run(scenario)


def test_many_small_writes_are_a_share_of_a_turn_as_well() -> None:
    async def scenario() -> None:
        unsent = UnsentBytes(1 << 40, list)
        loop, transports = asyncio.get_running_loop(), [FakeTransport(asyncio.Protocol()) for _ in range(1_000)]
        for transport in transports:
            Outbox(loop, transport, lambda: None, 1_000, unsent, Taker()).put(b"x")
        turns = 0
        while not transports[-1].written:
            before = sum(len(transport.written) for transport in transports)
            await asyncio.sleep(0)
            turns += 1
            assert sum(len(transport.written) for transport in transports) - before <= 256
        assert turns == 4

    run(scenario)
