"""Closing takes no longer than operation_timeout_seconds, whatever the broker does; nothing of the client goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.errors import AlreadyClosedError, ClientTimeoutError, ConnectionLostError
from magnetar.protocol.commands import SubType
from tests.sim.world import T
from tests.support.delivery_stage import Stage, play

OPERATION = 20.0


def freeze(stage: Stage) -> None:
    """The broker is stopped, or the network has gone: nothing arrives, nothing is closed."""
    for link in stage.world.network.links:
        link.freeze()


def kill(stage: Stage) -> None:
    """The broker is gone, and its port refuses."""
    stage.world.machine.power_off()


async def busy(stage: Stage, away: Callable[[Stage], None]) -> tuple[Producer, Consumer, list[asyncio.Future[Any]]]:
    """A producer and a consumer of a broker that is away, with messages and acknowledgements under way."""
    producer = await stage.client.create_producer(T)
    consumer = await stage.subscribe(consumer_type=SubType.Exclusive, ack_receipt_enabled=True)
    for number in range(3):
        await producer.send(b"%d" % number)
    messages = [await consumer.receive(5_000) for _ in range(3)]
    away(stage)
    waiting: list[asyncio.Future[Any]] = [producer.send_nowait(b"late").as_future()]
    waiting += [asyncio.ensure_future(consumer.acknowledge(one)) for one in messages]
    await asyncio.sleep(1)
    return producer, consumer, waiting


async def ended_in_time(stage: Stage, began: float, waiting: list[asyncio.Future[Any]]) -> None:
    assert stage.now - began < OPERATION + 0.1
    for one in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(one, AlreadyClosedError | ClientTimeoutError | ConnectionLostError), one
    assert stage.now - began < OPERATION + 0.1


@pytest.mark.parametrize("away", [freeze, kill])
@pytest.mark.parametrize("which", ["client", "producer", "consumer"])
def test_closing_ends_in_time(which: str, away: Callable[[Stage], None]) -> None:
    async def story(stage: Stage) -> None:
        producer, consumer, waiting = await busy(stage, away)
        began = stage.now
        if which == "client":
            await stage.client.close()
        elif which == "producer":
            await producer.close()
            waiting = waiting[:1]
        else:
            await consumer.close()
            waiting = waiting[1:]
        await ended_in_time(stage, began, waiting)

    play(story)


def test_a_client_whose_closing_is_cancelled_ends_at_once() -> None:
    """It was closing its producers one time-out longer."""

    async def story(stage: Stage) -> None:
        _, _, waiting = await busy(stage, freeze)
        began = stage.now
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await stage.client.close()
        assert stage.now - began < 2.1
        await ended_in_time(stage, began, waiting)

    play(story)
