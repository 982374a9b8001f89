"""Keep-alive with a client that stops taking, one that is not read, and one that leaves while a rate holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from magnetar.broker.connection.bounds.socket_pauses import RATE
from magnetar.broker.connection.listener import Connections
from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.protocol import commands as c
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.connections import PING, connected, fake_service, hang_up


def simulated(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_in(SimLoop(1), scenario())


def test_who_took_for_a_while_and_then_takes_nothing_for_two_intervals_is_closed() -> None:
    async def scenario() -> None:
        service = fake_service(keepAliveIntervalSeconds=5)
        client, transport = connected(Connections(), service, deaf=True)
        for _ in range(10):
            client.data_received(PING)
            await asyncio.sleep(2)
            transport.take()
        client.data_received(PING)
        await asyncio.sleep(4)
        assert not transport.aborted
        for _ in range(6):
            client.data_received(PING)
            await asyncio.sleep(2)
        assert transport.aborted
        assert any("took nothing" in said for said in service.said)

    simulated(scenario)


def test_who_is_not_read_cannot_be_silent_and_has_two_intervals_when_it_is_read_again() -> None:
    async def scenario() -> None:
        client, transport = connected(Connections(), fake_service(keepAliveIntervalSeconds=5))
        client.session.stop_reading(RATE)
        await asyncio.sleep(100)
        assert not transport.closing
        assert not any(isinstance(command, c.CommandPing) for command in transport.heard())
        client.session.read_again(RATE)
        await asyncio.sleep(4)
        assert not transport.closing
        await asyncio.sleep(7)
        assert transport.aborted

    simulated(scenario)


def test_who_is_closed_while_a_rate_holds_it_stands_in_no_line_any_more() -> None:
    async def scenario() -> None:
        limit = RateLimit(LimitLevel.TOPIC, "publishRate", RateAmounts(messages=1))
        limit.charge(5, 0)
        client, transport = connected(Connections())
        client.session.throttle((limit,))
        assert client.session.throttled and not transport.reading
        client.close("for a test")
        assert not client.session.throttled
        assert not limit._line
        hang_up(client)
        await asyncio.sleep(60)
        assert not transport.reading

    simulated(scenario)


def test_who_is_closed_joins_no_line_of_a_rate() -> None:
    async def scenario() -> None:
        limit = RateLimit(LimitLevel.TOPIC, "publishRate", RateAmounts(messages=1))
        limit.charge(5, 0)
        client, _ = connected(Connections())
        client.close("for a test")
        client.session.throttle((limit,))
        assert not client.session.throttled
        assert not limit._line
        hang_up(client)

    simulated(scenario)
