"""Memory that clients make the broker hold: unfinished frames, answers that are not taken, and what is left
afterwards."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from magnetar.broker.connection import listener as listening
from magnetar.broker.connection.bounds.unfinished_frames import FRAME_SECONDS, UnfinishedFrames
from magnetar.broker.connection.bounds.unsent_bytes import LITTLE, ONE_MAX, UnsentBytes
from magnetar.broker.connection.handlers import command_table
from magnetar.broker.connection.listener import UNFINISHED_MAX, Connections, Listener
from magnetar.broker.connection.session import Session
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.server import GREETING_MAX
from magnetar.testing.simloop import SimLoop
from tests.support.connections import FakeTransport, connected, fake_service, hang_up
from tests.support.loop_turns import settled

PING = codec.encode(c.CommandPing())
MB = 1 << 20
HALF = (5 * MB).to_bytes(4, "big") + (20).to_bytes(4, "big")
"""The beginning of a frame of 5 MB."""


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def simulate(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = SimLoop(1)
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()


def answering(size: int, handled: list[int]) -> Callable[[Session, c.CommandLookupTopic], None]:
    def look_up(session: Session, command: c.CommandLookupTopic) -> None:
        handled.append(command.request_id)
        session.out.put(b"\0" * size)

    return look_up


# output ----------------------------------------------------------------------------------------------------------


def test_commands_of_one_who_takes_nothing_wait_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[int] = []
    monkeypatch.setattr(
        listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: answering(100_000, handled)}
    )

    async def scenario() -> None:
        flood, transport = connected(Connections(), deaf=True)
        flood.data_received(b"".join(codec.encode(c.CommandLookupTopic("t", i)) for i in range(1_000)))
        await settled(100)
        assert len(handled) < 50
        assert transport.unsent < 5 * MB
        assert not transport.reading
        while len(handled) < 1_000:
            before = len(handled)
            transport.take()
            await settled(100)
            assert len(handled) > before
            assert transport.unsent < 5 * MB
        assert handled == list(range(1_000))
        transport.take()
        await settled()
        assert transport.reading
        hang_up(flood)

    run(scenario)


def test_what_nobody_answers_goes_on_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a client that writes its acknowledgements before it reads would wait for the broker, and the broker for
    it."""
    handled: list[int] = []
    flows: list[int] = []

    def flow(session: Session, command: c.CommandFlow) -> None:
        flows.append(command.permits)

    table = {**command_table.HANDLERS, c.CommandLookupTopic: answering(3 * MB, handled), c.CommandFlow: flow}
    monkeypatch.setattr(listening, "HANDLERS", table)

    async def scenario() -> None:
        flood, transport = connected(Connections(), deaf=True)
        flood.data_received(codec.encode(c.CommandLookupTopic("t", 1)))
        await settled()
        for i in range(1, 400):
            flood.data_received(codec.encode(c.CommandFlow(1, i)))
            await settled(2)
        assert flows == list(range(1, 400))
        assert transport.reading
        flood.data_received(PING + codec.encode(c.CommandFlow(1, 400)))
        await settled()
        assert len(flows) == 399
        transport.take()
        await settled()
        assert len(flows) == 400
        hang_up(flood)

    run(scenario)


def test_an_ack_that_wants_an_answer_waits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[int] = []
    acks: list[int | None] = []

    def ack(session: Session, command: c.CommandAck) -> None:
        acks.append(command.request_id)

    table = {**command_table.HANDLERS, c.CommandLookupTopic: answering(3 * MB, handled), c.CommandAck: ack}
    monkeypatch.setattr(listening, "HANDLERS", table)

    async def scenario() -> None:
        flood, transport = connected(Connections(), deaf=True)
        flood.data_received(codec.encode(c.CommandLookupTopic("t", 1)))
        await settled()
        one = (c.MessageIdData(1, 1),)
        for request_id in (None, 5, None):
            flood.data_received(codec.encode(c.CommandAck(1, c.AckType.Individual, one, request_id=request_id)))
        await settled()
        assert acks == [None]
        transport.take()
        await settled()
        assert acks == [None, 5, None]
        hang_up(flood)

    run(scenario)


def test_who_takes_nothing_for_two_intervals_is_closed_whatever_it_sends() -> None:
    async def scenario() -> None:
        service = fake_service(keepAliveIntervalSeconds=5)
        deaf, transport = connected(Connections(), service, deaf=True)
        slow, slowly = connected(Connections(), service, deaf=True)
        for _ in range(9):
            deaf.data_received(PING)
            slow.data_received(PING)
            await asyncio.sleep(2)
            slowly.take()
        assert transport.aborted
        assert not slowly.closing
        assert any("took nothing" in said for said in service.said)  # type: ignore[attr-defined]
        hang_up(deaf, slow)

    simulate(scenario)


def test_keep_alive_works_from_the_first_interval_on() -> None:
    async def scenario() -> None:
        silent, transport = connected(Connections(), fake_service(keepAliveIntervalSeconds=2))
        await asyncio.sleep(5)
        assert any(isinstance(command, c.CommandPing) for command in transport.heard())
        await asyncio.sleep(4)
        assert transport.aborted
        hang_up(silent)

    simulate(scenario)


def test_one_who_takes_nothing_of_what_it_did_not_ask_for_is_closed() -> None:
    """Commands without a request, changes of a topic list for instance, do not wait for the client."""

    async def scenario() -> None:
        watcher, transport = connected(Connections(), deaf=True)
        for _ in range(100):
            if transport.aborted:
                break
            watcher.session.out.put(b"x" * MB)
            await asyncio.sleep(0)
        assert transport.aborted
        assert transport.unsent <= ONE_MAX + 2 * MB
        hang_up(watcher)

    run(scenario)


class Holder:
    """A connection that is written to."""

    def __init__(self, unsent: int) -> None:
        self.unsent = unsent
        self.notified = 0
        self.closed = False

    def writable_again(self) -> None:
        self.notified += 1

    def takes_too_much(self, unsent: int) -> None:
        self.closed = True


def test_all_together_are_given_less_when_they_hold_too_much() -> None:
    async def scenario() -> None:
        holders = [Holder(9 * MB) for _ in range(10)]
        unsent = UnsentBytes(64 * MB, lambda: holders)
        unsent.written(8 * MB)
        assert unsent.short
        assert not any(holder.closed for holder in holders)
        unsent.denied(holders[0])
        for holder in holders:
            holder.unsent = MB
        unsent.count()
        assert not unsent.short
        assert [holder.notified for holder in holders] == [1] + [0] * 9

    run(scenario)


def test_those_that_hold_most_are_closed_at_twice_the_budget() -> None:
    async def scenario() -> None:
        holders = [Holder(size * MB) for size in (1, 60, 2, 50, 3, 40)]
        unsent = UnsentBytes(64 * MB, lambda: holders)
        unsent.written(8 * MB)
        assert [holder.closed for holder in holders] == [False, True, False, True, False, False]
        assert unsent.bytes == 46 * MB

    run(scenario)


def test_a_connection_that_holds_little_is_served_in_a_shortage() -> None:
    async def scenario() -> None:
        connections = Connections()
        connections.unsent.short = True
        (large, much), (small, _) = (connected(connections, deaf=True) for _ in range(2))
        much.unsent = 2 * LITTLE
        assert small.session.out.writable
        assert not large.session.out.writable
        connections.unsent.count()
        assert large.session.out.writable
        hang_up(large, small)

    run(scenario)


# unfinished frames -----------------------------------------------------------------------------------------------


def test_a_large_frame_before_connect_is_refused() -> None:
    async def scenario() -> None:
        connections = Connections()
        listener = Listener(fake_service(), connections)
        transport = FakeTransport(listener)
        listener.connection_made(transport)
        listener.data_received((GREETING_MAX + 1).to_bytes(4, "big") + b"\0" * 8)
        assert transport.closing
        hang_up(listener)
        accepted, open_one = connected(connections)
        accepted.data_received((GREETING_MAX + 1).to_bytes(4, "big") + b"\0\0\0\5" + b"\0" * 8)
        assert not open_one.closing
        hang_up(accepted)

    run(scenario)


def test_unfinished_frames_share_a_budget_first_come_first_served() -> None:
    async def scenario() -> None:
        connections = Connections()
        service = fake_service()
        senders = [connected(connections, service) for _ in range(40)]
        for _ in range(20):
            for sender, transport in senders:
                if transport.reading and not transport.closing:
                    fresh = not connections.unfinished.bytes or sender._held == 0
                    sender.data_received((HALF if fresh else b"") + b"x" * 200_000)
            await asyncio.sleep(0)
            assert connections.unfinished.bytes <= UNFINISHED_MAX + 40 * (LITTLE + 210_000)
        stopped = [transport for _, transport in senders if not transport.reading]
        assert len(stopped) == 40 - UNFINISHED_MAX // (5 * MB)
        # those that do not go on have to go, and the next ones get their turn
        await asyncio.sleep(2 * FRAME_SECONDS)
        assert sum(transport.aborted for _, transport in senders) >= UNFINISHED_MAX // (5 * MB)
        hang_up(*(sender for sender, _ in senders))
        assert connections.unfinished.bytes == 0

    simulate(scenario)


def test_a_frame_that_becomes_whole_makes_room() -> None:
    class One:
        def __init__(self) -> None:
            self.off = False
            self.closed = False

        def hold_off(self) -> None:
            self.off = True

        def carry_on(self) -> None:
            self.off = False

        def too_slow(self, held: int) -> None:
            self.closed = True

    async def scenario() -> None:
        frames = UnfinishedFrames(10 * MB)
        first, second, third = One(), One(), One()
        for one in (first, second, third):
            frames.changed(one, 0, MB, 4 * MB)
        assert third.off
        await asyncio.sleep(0)
        assert [one.off for one in (first, second, third)] == [False, False, True]
        frames.changed(first, MB, 0, 0)
        await asyncio.sleep(0)
        assert not third.off
        # the second one's frame is whole and another has begun: it queues after the others
        frames.changed(first, 0, 2 * MB, 3 * MB)
        assert first.off
        frames.changed(second, MB, MB - 1, 4 * MB)
        await asyncio.sleep(0)
        assert [one.off for one in (first, second, third)] == [False, True, False]
        assert frames.bytes == 4 * MB - 1
        # whole, though it was told not to read on: what was under way sufficed
        frames.changed(second, MB - 1, 0, 0)
        assert not second.off

    run(scenario)


# what is left over -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    "last", [b"", PING * 3_000, HALF + b"x" * 100_000, b"\xff" * 100, codec.encode(c.CommandFlow(1, 1)) * 900]
)
def test_a_lost_connection_is_freed_without_the_collector(
    loop: Callable[[], asyncio.AbstractEventLoop], last: bytes
) -> None:
    async def scenario() -> None:
        connections = Connections()
        made: list[Listener] = []

        def make() -> Listener:
            made.append(Listener(service, connections))
            return made[-1]

        service = fake_service(maxMessageSize=6 * MB)
        server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            client.sendall(codec.encode(c.CommandConnect("test", 21)))
            for _ in range(5):
                await asyncio.sleep(0.001)
            client.sendall(last)
            await asyncio.sleep(0.02)
        listener = made.pop()
        session = listener.session
        parts: list[Any] = [listener, session, listener._protocol]
        ends = [weakref.ref(part) for part in parts if hasattr(part, "__weakref__")]
        assert len(ends) >= 2
        del listener, session, parts
        for _ in range(100):
            await asyncio.sleep(0.001)
            if not any(end() for end in ends):
                break
        assert [end() for end in ends] == [None] * len(ends)
        assert len(connections) == 0
        assert connections.unfinished.bytes == 0
        server.close()

    gc.collect()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(scenario())
    finally:
        gc.enable()
