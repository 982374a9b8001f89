"""Publish back-pressure: a connection stops reading a client that publishes too much; messages keep their order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.listener import Connections
from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.model.errors import PersistenceError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from tests.support.connections import WINDOW, connected, fake_service, hang_up, publisher, sends


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def results(count: int) -> Sequence[PendingEntry]:
    return [PendingEntry(cast(Any, None), i, i) for i in range(count)]


def test_reading_stops_at_the_limit_and_goes_on_at_half_of_it() -> None:
    """Too many pending publishes stop the reading of a connection until half of them are done (rule 3.3.10)."""

    async def scenario() -> None:
        listener, transport, connection, published = publisher(Connections())
        listener.data_received(sends(WINDOW - 1))
        assert transport.reading
        listener.data_received(sends(1))
        assert not transport.reading
        assert len(published) == WINDOW
        connection.receipts(3, 0, results(WINDOW // 2 - 1))
        assert not transport.reading
        connection.receipts(3, 4, results(1))
        assert transport.reading
        hang_up(listener)

    run(scenario)


def test_reading_stops_when_all_together_have_too_many_bytes_waiting() -> None:
    async def scenario() -> None:
        service = fake_service(maxMessagePublishBufferSizeInMB=1)
        journal = service.store.journal
        listener, transport, connection, _ = publisher(Connections(), service)
        quiet, calm = connected(Connections(), service)
        journal.pending_bytes = 1 << 20
        listener.data_received(sends(3))
        quiet.data_received(codec.encode(c.CommandPing()))
        assert not transport.reading
        assert calm.reading, "one that publishes nothing is not made to wait"
        connection.receipts(3, 0, results(1))
        assert not transport.reading
        journal.pending_bytes = 1 << 19
        connection.receipts(3, 1, results(1))
        assert transport.reading
        # with nothing of its own pending it always may
        journal.pending_bytes = 1 << 20
        listener.data_received(sends(1))
        assert not transport.reading
        connection.receipts(3, 2, results(2))
        assert transport.reading
        hang_up(listener, quiet)

    run(scenario)


@pytest.mark.parametrize("megabytes", [-1, 0])
def test_without_that_limit_reading_goes_on(megabytes: int) -> None:
    """As in Apache Pulsar; how many messages of a connection wait is counted nevertheless."""

    async def scenario() -> None:
        service = fake_service(maxMessagePublishBufferSizeInMB=megabytes)
        listener, transport, _connection, _ = publisher(Connections(), service)
        service.store.journal.pending_bytes = 1 << 50
        listener.data_received(sends(3))
        assert transport.reading
        listener.data_received(sends(service.settings.maxPendingPublishRequestsPerConnection))
        assert not transport.reading
        hang_up(listener)

    run(scenario)


@pytest.mark.parametrize("how", ["failed", "unstored", "dropped"])
def test_whatever_becomes_of_them_they_wait_no_longer(how: str) -> None:
    async def scenario() -> None:
        listener, transport, connection, _ = publisher(Connections())
        listener.data_received(sends(WINDOW))
        assert not transport.reading
        if how == "failed":
            some = cast(Sequence[PendingEntry], [SimpleNamespace(sequence_id=i) for i in range(WINDOW)])
            connection.failed(some, PersistenceError("the disk refused"))
        elif how == "unstored":
            connection.unstored(results(WINDOW), dropped=False)
        else:
            connection.dropped(WINDOW)
        assert transport.reading
        assert listener.session.pending_publishes == 0
        hang_up(listener)

    run(scenario)


def test_a_rate_limit_and_the_disk_each_hold_the_connection() -> None:
    async def scenario() -> None:
        listener, transport, connection, _ = publisher(Connections())
        listener.data_received(sends(WINDOW))
        limit = RateLimit(LimitLevel.TOPIC, "publishRate", RateAmounts(messages=50))
        limit.charge(5, 0)
        listener.session.throttle((limit,))
        connection.receipts(3, 0, results(WINDOW))
        assert not transport.reading, "the rate limit still holds it"
        listener.data_received(sends(WINDOW))
        await asyncio.sleep(0.05)
        assert not transport.reading, "the disk still holds it"
        connection.receipts(3, WINDOW, results(WINDOW))
        assert transport.reading
        hang_up(listener)

    run(scenario)


def test_messages_larger_than_a_slice_come_in_order() -> None:
    async def scenario() -> None:
        listener, _, _, published = publisher(Connections(), fake_service())
        listener.data_received(sends(5_000))
        while len(published) < 5_000:
            before = len(published)
            await asyncio.sleep(0)
            assert len(published) > before
        assert published == list(range(5_000))
        hang_up(listener)

    run(scenario)
