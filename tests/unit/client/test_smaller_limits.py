"""A broker that takes smaller entries than the one before: what waited for its receipt and is too large now fails."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.client.aio.client import Client
from magnetar.client.errors import MessageTooLargeError
from magnetar.protocol import commands as c
from tests.support.scripted_broker import TOPIC, Link, scripted_broker


def opens(link: Link, limit: int, *, partitions: bool) -> int:
    link.greet(limit)
    if partitions:
        link.partitions(0)
    link.look_up()
    asked = link.expect(c.CommandProducer)
    link.send(c.CommandProducerSuccess(asked.request_id, "p", -1, b"", producer_ready=True))
    return asked.producer_id


@pytest.mark.parametrize("chunked", [False, True])
def test_what_is_too_large_now_fails_and_the_rest_goes_on(chunked: bool) -> None:
    """It was sent again, the broker ended the connection over it, and so on: nothing behind it was ever sent."""
    large = 60_000 if chunked else 40_000

    def generous(link: Link) -> None:
        opens(link, 50_000, partitions=True)
        for _ in range(4 if chunked else 3):
            link.expect(c.CommandSend)

    def strict(link: Link) -> None:
        producer = opens(link, 20_000, partitions=False)
        for sequence_id in (0, 2):
            sent = link.expect(c.CommandSend)
            assert sent.sequence_id == sequence_id
            at = c.MessageIdData(1, sequence_id)
            link.send(c.CommandSendReceipt(producer, sequence_id, at, 0))
        link.send(c.CommandSuccess(link.expect(c.CommandCloseProducer).request_id))
        link.until_closed()

    async def main(url: str) -> None:
        async with asyncio.timeout(12), Client(url, operation_timeout_seconds=5) as client:
            producer = await client.create_producer(
                TOPIC, "p", send_timeout_millis=0, chunking_enabled=chunked, batching_enabled=False
            )
            small, huge, last = [producer.send_nowait(b"x" * size) for size in (10, large, 20)]
            with pytest.raises(MessageTooLargeError):
                await huge
            assert [(await one).entry_id() for one in (small, last)] == [0, 2]

    with scripted_broker(generous, strict) as url:
        asyncio.run(main(url))
