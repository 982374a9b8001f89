"""What settings make of a client that takes its answers slowly."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.connection.listener import Connections
from tests.support.connections import PING, connected, fake_service, hang_up, pongs, until


@pytest.mark.parametrize("waits", [False, True])
def test_commands_with_an_answer_wait_unless_that_is_switched_off(waits: bool) -> None:
    """pulsarChannelPauseReceivingRequestsIfUnwritable; nothing is lost either way."""

    async def scenario() -> None:
        service = fake_service(
            pulsarChannelPauseReceivingRequestsIfUnwritable=waits, pulsarChannelWriteBufferHighWaterMark=100
        )
        slow, transport = connected(Connections(), service, deaf=True)
        slow.data_received(PING * 50)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not slow.session.out.writable
        assert slow.session.busy is waits
        assert (pongs(transport) == 50) is not waits
        transport.deaf = False
        transport.take()
        await until(lambda: pongs(transport) == 50)
        hang_up(slow)

    asyncio.run(scenario())


@pytest.mark.parametrize(("low", "high", "taken"), [(1000, 5000, 1000), (9000, 5000, 5000)])
def test_when_a_connection_counts_as_writable_again(low: int, high: int, taken: int) -> None:
    """pulsarChannelWriteBufferLowWaterMark goes to the transport, the high one at most."""

    async def scenario() -> None:
        service = fake_service(pulsarChannelWriteBufferLowWaterMark=low, pulsarChannelWriteBufferHighWaterMark=high)
        listener, transport = connected(Connections(), service)
        assert (transport.low, transport.high) == (taken, high)
        hang_up(listener)

    asyncio.run(scenario())
