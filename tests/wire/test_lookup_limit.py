"""maxConcurrentLookupRequest: lookups and questions for partitions above it are refused, as in Apache Pulsar."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.model.errors import ServerError, TooManyLookupsError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient
from tests.sim.world import ports_of
from tests.wire.bench import Wires, on_broker

WORDS = "Failed due to too many pending lookup requests"
PARTITIONED = {"allowAutoTopicCreationType": "partitioned"}


async def refused(wires: Wires, client: RawClient) -> bool:
    """Whether a lookup is refused, and a question for partitions and REST with it."""
    found = await client.lookup("t")
    partitions = await client.partitions("other")
    for one in (found, partitions):
        assert (one.error, one.message) in ((None, None), (ServerError.TooManyRequests, WORDS)), one
    assert (found.error is None) == (partitions.error is None)
    ports = ports_of(wires.world)
    if found.error is None:
        ports.broker.lookup(TopicName.parse("t"), None)
        await ports.topics.partition_count(TopicName.parse("third"), auto_create=True)
        return False
    with pytest.raises(TooManyLookupsError) as told:
        ports.broker.lookup(TopicName.parse("t"), None)
    assert told.value.status == 503
    with pytest.raises(TooManyLookupsError):
        await ports.topics.partition_count(TopicName.parse("third"), auto_create=True)
    return True


def hung_metadata(wires: Wires) -> asyncio.Event:
    """No partitioned topic is made before the event that is returned."""
    partitioned: Any = wires.world.machine.broker.resources.partitioned
    create, goes_on = partitioned.create, asyncio.Event()

    async def later(*given: Any, **named: Any) -> Any:
        await goes_on.wait()
        return await create(*given, **named)

    partitioned.create = later
    return goes_on


def test_one_that_waits_counts_until_its_answer() -> None:
    async def test(wires: Wires) -> None:
        first, second, lost = [await wires.open() for _ in range(3)]
        assert not await refused(wires, second)
        goes_on = hung_metadata(wires)
        waiting = asyncio.ensure_future(first.partitions("new"))
        lost.say(c.CommandPartitionedTopicMetadata("another", lost.new_id()))
        await asyncio.sleep(1)
        lost.transport.abort()  # it counts as long as it is under way
        assert await refused(wires, second)
        goes_on.set()
        assert (await waiting).partitions == 1
        await asyncio.sleep(1)
        assert not await refused(wires, second)

    on_broker(test, maxConcurrentLookupRequest=2, **PARTITIONED)


def test_none_at_all() -> None:
    async def test(wires: Wires) -> None:
        assert await refused(wires, await wires.open())

    on_broker(test, maxConcurrentLookupRequest=0)
