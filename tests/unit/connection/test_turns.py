"""How long one connection works while others wait, counted in commands and turns of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from magnetar.broker.connection import listener as listening
from magnetar.broker.connection.bounds.turns import COSTS, GRACE, ROUND, TURN, USUAL, Turns
from magnetar.broker.connection.handlers import command_table
from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.session import Session
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import SLICE_COMMANDS
from tests.support.connections import PING, connected, hang_up, pongs, until


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_a_flood_of_pings_is_answered_in_turns() -> None:
    async def scenario() -> None:
        connections = Connections()
        flood, transport = connected(connections)
        flood.data_received(PING * 5_000)
        assert not transport.reading
        turns = 0
        while not transport.reading:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 5_000 // max(SLICE_COMMANDS, TURN)
        await asyncio.sleep(0)
        assert pongs(transport) == 5_000
        hang_up(flood)

    run(scenario)


def test_others_are_served_between_two_turns() -> None:
    async def scenario() -> None:
        connections = Connections()
        flood, noisy = connected(connections)
        quiet, calm = connected(connections)
        flood.data_received(PING * 20_000)
        await asyncio.sleep(0)
        before = pongs(noisy)
        quiet.data_received(PING)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert pongs(calm) == 1
        assert pongs(noisy) - before <= 4 * TURN
        assert not noisy.reading
        hang_up(flood, quiet)

    run(scenario)


def test_many_floods_share_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred busy connections do not work a hundred turns before the loop looks at its sockets."""
    handled = 0

    def ping(session: Session, command: c.CommandPing) -> None:
        nonlocal handled
        handled += 1

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandPing: ping})

    async def scenario() -> None:
        nonlocal handled
        connections = Connections()
        floods = [connected(connections)[0] for _ in range(100)]
        await asyncio.sleep(0)
        handled = 0
        for flood in floods:
            flood.data_received(PING * 1_000)
        assert handled <= ROUND + TURN + 100 * GRACE
        for _ in range(20):
            handled = 0
            await asyncio.sleep(0)
            assert 0 < handled <= ROUND + TURN
        hang_up(*floods)

    run(scenario)


def test_who_asks_little_does_not_queue_behind_those_who_never_stop() -> None:
    async def scenario() -> None:
        connections = Connections()
        floods = [connected(connections)[0] for _ in range(100)]
        quiet, calm = connected(connections)
        await asyncio.sleep(0)
        for flood in floods:
            flood.data_received(PING * 1_000)
        assert connections.turns.left <= 0
        quiet.data_received(PING * GRACE)
        await asyncio.sleep(0)
        assert pongs(calm) == GRACE
        assert calm.reading
        hang_up(quiet, *floods)

    run(scenario)


def test_every_one_of_many_gets_its_turn() -> None:
    async def scenario() -> None:
        connections = Connections()
        floods = [connected(connections) for _ in range(50)]
        await asyncio.sleep(0)
        for flood, _ in floods:
            flood.data_received(PING * 600)
        for _ in range(200):
            await asyncio.sleep(0)
        assert [pongs(transport) for _, transport in floods] == [600] * 50
        assert all(transport.reading for _, transport in floods)
        assert not len(connections.turns)
        hang_up(*(flood for flood, _ in floods))

    run(scenario)


def test_order_is_kept_across_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look_up(session: Session, command: c.CommandLookupTopic) -> None:
        seen.append(command.request_id)

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: look_up})

    async def scenario() -> None:
        connections = Connections()
        flood, transport = connected(connections)
        frames = b"".join(codec.encode(c.CommandLookupTopic("t", i)) for i in range(3_000))
        for start in range(0, len(frames), 10_001):
            # also what comes although the socket is not read
            flood.data_received(frames[start : start + 10_001])
        await until(lambda: transport.reading)
        assert seen == list(range(3_000))
        hang_up(flood)

    run(scenario)


def test_a_long_command_is_done_in_steps_and_the_next_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def long(session: Session, command: c.CommandLookupTopic) -> Iterator[int]:
        for step in range(6):
            done.append(f"step {step}")
            yield TURN // 2

    def ping(session: Session, command: c.CommandPing) -> None:
        done.append("ping")

    monkeypatch.setattr(
        listening, "HANDLERS", {**command_table.HANDLERS, c.CommandPing: ping, c.CommandLookupTopic: long}
    )

    async def scenario() -> None:
        connections = Connections()
        flood, transport = connected(connections)
        flood.data_received(codec.encode(c.CommandLookupTopic("t", 1)) + PING)
        assert len(done) <= 3
        assert not transport.reading
        for _ in range(10):
            await asyncio.sleep(0)
        assert done == [*(f"step {step}" for step in range(6)), "ping"]
        assert transport.reading
        hang_up(flood)

    run(scenario)


def test_long_commands_of_many_share_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that go on in a later turn cost that round as much as those of the first."""
    steps = [0]

    def long(session: Session, command: c.CommandLookupTopic) -> Iterator[int]:
        for _ in range(20):
            steps[0] += 1
            yield TURN // 2

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: long})

    async def scenario() -> None:
        connections = Connections()
        floods = [connected(connections)[0] for _ in range(5)]
        for flood in floods:
            flood.data_received(codec.encode(c.CommandLookupTopic("t", 1)))
        while steps[0] < 5 * 20:
            before = steps[0]
            await asyncio.sleep(0)
            assert steps[0] - before <= 2 * ROUND // TURN
        hang_up(*floods)

    run(scenario)


def test_a_lost_connection_drops_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def long(session: Session, command: c.CommandLookupTopic) -> Iterator[int]:
        for step in range(100):
            done.append(step)
            yield TURN

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: long})

    async def scenario() -> None:
        connections = Connections()
        flood, _ = connected(connections)
        flood.data_received(codec.encode(c.CommandLookupTopic("t", 1)) * 3)
        await asyncio.sleep(0)
        hang_up(flood)
        before = len(done)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(done) == before < 100
        assert not len(connections.turns)

    run(scenario)


def test_bytes_that_are_none_close_after_what_came_before_them() -> None:
    async def scenario() -> None:
        connections = Connections()
        flood, transport = connected(connections)
        flood.data_received(PING * 2_000 + b"\xff" * 16)
        assert not transport.closing
        for _ in range(50):
            await asyncio.sleep(0)
        assert transport.closing
        assert pongs(transport) == 2_000
        hang_up(flood)

    run(scenario)


def test_bytes_that_are_none_wait_for_the_commands_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[int] = []
    count = 2 * TURN // USUAL
    look_up = lambda session, command: handled.append(command.request_id)  # noqa: E731
    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: look_up})

    async def scenario() -> None:
        flood, transport = connected(Connections())
        flood.data_received(b"".join(codec.encode(c.CommandLookupTopic("t", i)) for i in range(count)) + b"\xff" * 16)
        assert len(handled) < count
        assert not transport.closing
        await until(lambda: transport.closing)
        assert handled == list(range(count))
        hang_up(flood)

    run(scenario)


def test_known_costs_fit_into_a_turn() -> None:
    assert max(COSTS.values()) <= TURN <= ROUND
    assert 0 < USUAL <= TURN
    assert set(COSTS) <= set(command_table.HANDLERS)


def test_a_round_ends_by_itself() -> None:
    async def scenario() -> None:
        turns = Turns()
        turns.spent(ROUND + 5)
        assert turns.left < 0
        await asyncio.sleep(0)
        assert turns.left == ROUND

    run(scenario)


class Counted:
    """A connection that works so many turns of so many units each, and notes its name each time."""

    def __init__(self, turns: Turns, name: str, done: list[str], times: int, units: int = 0) -> None:
        self.turns, self.name, self.done, self.times, self.units = turns, name, done, times, units

    def turn(self) -> None:
        self.done.append(self.name)
        self.times -= 1
        self.turns.left -= self.units
        if self.times:
            self.turns.queue(self)


def test_who_queues_gets_a_turn_in_the_next_round_although_nothing_was_spent() -> None:
    """Each connection has one turn per round, in order, also if it queues again in its turn; without waiting ones no
    round is due."""

    async def scenario() -> None:
        turns, done = Turns(), list[str]()
        for name, times in (("a", 3), ("b", 1), ("c", 2)):
            turns.queue(Counted(turns, name, done, times))
        assert (len(turns), done) == (3, [])
        for wanted, waiting in (("abc", 2), ("abcac", 1), ("abcaca", 0), ("abcaca", 0)):
            await asyncio.sleep(0)
            assert ("".join(done), len(turns)) == (wanted, waiting)
        turns.queue(Counted(turns, "d", done, 1))
        await asyncio.sleep(0)
        assert done[-1] == "d", "a second wave is served as the first"

    run(scenario)


def test_who_finds_the_round_used_up_is_first_in_the_next_one() -> None:
    async def scenario() -> None:
        turns, done = Turns(), list[str]()
        for name in "abcde":
            turns.queue(Counted(turns, name, done, 2, ROUND // 2))
        for wanted in ("ab", "abcd", "abcdea", "abcdeabc", "abcdeabcde"):
            await asyncio.sleep(0)
            assert "".join(done) == wanted
        assert len(turns) == 0
        turns.queue(Counted(turns, "f", done, 1, ROUND // 2 - 1))
        turns.queue(Counted(turns, "g", done, 1, ROUND // 2))
        turns.queue(Counted(turns, "h", done, 1))
        await asyncio.sleep(0)
        assert "".join(done[-3:]) == "fgh", "one unit is left"

    run(scenario)


def test_rounds_begin_once_per_turn_of_the_loop() -> None:
    """A round begins once per turn of the loop, however often connections work or queue meanwhile."""

    async def scenario() -> None:
        turns, done = Turns(), list[str]()
        turns.spent(1)
        turns.queue(Counted(turns, "a", done, 5))
        turns.spent(1)
        assert turns.left == ROUND - 2
        for times in (1, 2, 3):
            await asyncio.sleep(0)
            assert done == ["a"] * times
            assert turns.left == ROUND

    run(scenario)


def test_a_session_that_handles_no_more_leaves_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is closed, or has published as fast as it may: its turn changes nothing until it goes on."""
    handled: list[c.CommandPing] = []
    ping = lambda session, command: handled.append(command)  # noqa: E731
    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandPing: ping})

    async def scenario() -> None:
        flood, transport = connected(Connections())
        flood.data_received(PING * 3 * TURN)
        before, session = len(handled), flood.session
        assert 0 < before < 3 * TURN and session.busy
        session.halted = True
        session.go_on()
        assert (len(handled), session.busy) == (before, True)
        session.halted = False
        session.go_on()
        assert len(handled) > before
        await until(lambda: transport.reading)
        assert len(handled) == 3 * TURN
        hang_up(flood)

    run(scenario)
