"""Clients that say an old protocol version in CONNECT get what such clients read (rule 1.2.4).

EMQ's Erlang client says 10 and expects no checksum in a MESSAGE: it died of the first one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from typing_extensions import override

from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.frames import without_checksum
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import DisconnectedError, RawClient, make_entry
from tests.sim.world import T, World
from tests.support.conversations import connected, talk

N = "non-persistent://public/default/n"


class KeepingClient(RawClient):
    """Keeps what it reads: the decoder puts a checksum where there was none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.read = b""

    @override
    def data_received(self, data: bytes) -> None:
        self.read += data
        super().data_received(data)


async def of_version(version: int) -> KeepingClient:
    client = await KeepingClient.open(HOST, PORT)
    assert isinstance(client, KeepingClient)
    await client.connect(protocol_version=version)
    return client


@pytest.mark.parametrize(("version", "summed"), [(0, False), (10, False), (11, True), (21, True)])
@pytest.mark.parametrize("topic", [T, N])
@pytest.mark.parametrize("kind", list(c.SubType))
def test_clients_below_version_11_get_entries_without_checksums(
    version: int, summed: bool, topic: str, kind: c.SubType
) -> None:
    """In a run, one alone and a second time; what was sent without a checksum, too. The ids are the same."""

    async def simulation(world: World) -> None:
        client, other = await of_version(version), await connected()
        consumer = await client.subscribe(topic, "s", kind)
        producer = await other.producer(topic)
        entries = [make_entry(b"x" * n, producer="p", sequence_id=n, key=f"k{n}") for n in range(1, 8)]
        times = 2 if topic == T else 1
        consumer.flow(100)
        await client.partitions(topic)
        for entry in entries[:6]:
            producer.send(b"", entry=entry)
        producer.send(b"", entry=without_checksum(entries[6]))
        for _ in range(times):
            got = [await consumer.receive() for _ in entries]
            assert sorted((one.entry for one in got), key=len) == entries
            client.say(c.CommandRedeliverUnacknowledgedMessages(consumer.consumer_id))
        assert [client.read.count(entry[:6]) for entry in entries] == [times if summed else 0] * len(entries)
        assert [client.read.count(entry[6:]) for entry in entries] == [times] * len(entries)

    talk(simulation)


@pytest.mark.parametrize(("version", "told"), [(8, False), (9, True)])
def test_the_end_of_a_topic_is_told_from_version_9_on(version: int, told: bool) -> None:
    async def simulation(world: World) -> None:
        client = await of_version(version)
        consumer = await client.subscribe(T, "s")
        consumer.flow(1)
        topic: Any = world.machine.broker.service.topics[T]
        topic.termination.terminate(lambda: None, lambda _: None)
        await asyncio.sleep(1)
        assert bool(client.heard(c.CommandReachedEndOfTopic)) is told

    talk(simulation)


@pytest.mark.parametrize(("version", "told"), [(11, False), (12, True)])
def test_which_consumer_is_active_is_told_from_version_12_on(version: int, told: bool) -> None:
    async def simulation(world: World) -> None:
        client = await of_version(version)
        await client.subscribe(T, "s", c.SubType.Failover)
        await asyncio.sleep(5)
        assert bool(client.heard(c.CommandActiveConsumerChange)) is told

    talk(simulation)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("opened", ["consumer", "producer"])
def test_clients_below_version_5_lose_their_connection_with_what_is_closed(version: int, opened: str) -> None:
    """They know no CLOSE_CONSUMER and no CLOSE_PRODUCER of a broker, and would wait forever."""

    async def simulation(world: World) -> None:
        client = await of_version(version)
        kind: type[c.Command] = c.CommandCloseProducer
        if opened == "consumer":
            await client.subscribe(T, "s")
            kind = c.CommandCloseConsumer
        else:
            await client.producer(T)
        world.machine.broker.service.unload(TopicName.parse(T))
        if version == 5:
            await client.hear(kind)
            return
        with pytest.raises(DisconnectedError):
            await client.hear(kind)

    talk(simulation)
