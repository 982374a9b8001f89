"""Clients of several clusters: one dies, another takes its place, the first one comes back (docs/decisions/057).

What is confirmed is stored in one of the clusters, in the order in which it was sent, and comes to a consumer there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from magnetar.client.aio.client import Client
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.aio.services.auto_cluster_failover import AutoClusterFailover
from magnetar.client.aio.services.service_info import ServiceInfo
from magnetar.client.aio.services.service_info_provider import ServiceInfoProvider
from magnetar.client.errors import ClientError
from magnetar.client.machines.message_id import MessageId
from magnetar.config.settings import Settings
from magnetar.protocol.commands import InitialPosition
from magnetar.testing.broker import PORT, BrokerMachine
from magnetar.testing.simloop import SimClock
from tests.sim.world import T, World, caught, run_seeds

FIRST, SECOND = f"pulsar://broker:{PORT}", f"pulsar://second:{PORT}"


def new_client(world: World, service: str | AutoClusterFailover | ServiceInfoProvider) -> Client:
    return Client(
        service, operation_timeout_seconds=20, connection_timeout_ms=2_000, clock=SimClock(world.loop), rng=world.rng
    )


async def boot_both(world: World) -> BrokerMachine:
    await world.boot()
    second = BrokerMachine(world.loop, world.network, settings=Settings(), storage=world.storage, host="second")
    await second.start()
    return second


async def stored(world: World, url: str) -> list[int]:
    async with new_client(world, url) as client:
        reader = await client.create_reader(T, MessageId.earliest)
        found: list[int] = []
        while await reader.has_message_available():
            found.append(int((await reader.read_next(5_000)).data()))
        return found


async def until_at(world: World, client: Client, url: str, seconds: float) -> None:
    until = world.loop.time() + seconds
    while client.get_service_info().service_url != url:
        assert world.loop.time() < until, f"not at {url} after {seconds} s"
        await asyncio.sleep(0.1)


class Sender:
    """Sends numbers one after the other for as long as it is wanted, each until it is confirmed."""

    def __init__(self, world: World, producer: Producer) -> None:
        self.confirmed: list[int] = []
        self.wanted = True
        self._world = world
        self._producer = producer

    async def run(self) -> None:
        while self.wanted:
            await self._producer.send(b"%d" % len(self.confirmed))
            self.confirmed.append(len(self.confirmed))
            await asyncio.sleep(self._world.rng.uniform(0.0, 0.5))

    async def goes_on(self, seconds: float) -> None:
        """Wait until something more is confirmed."""
        count, until = len(self.confirmed), self._world.loop.time() + seconds
        while len(self.confirmed) <= count + 1:
            assert self._world.loop.time() < until, f"nothing was confirmed in {seconds} s"
            await asyncio.sleep(0.1)


async def failover(world: World) -> None:
    """The primary cluster dies for minutes and comes back; so does the second one later."""
    second = await boot_both(world)
    interval, threshold, back = 1.0, world.rng.randint(1, 3), world.rng.randint(1, 3)
    client = new_client(
        world,
        AutoClusterFailover(ServiceInfo(FIRST), [ServiceInfo(SECOND)], int(interval * 1_000), threshold, back),
    )
    producer = await client.create_producer(T, send_timeout_millis=0)
    consumer = await client.subscribe(T, "s", initial_position=InitialPosition.Earliest)
    received: set[int] = set()

    async def consume() -> None:
        while True:
            received.add(int((await consumer.receive()).data()))  # not acknowledged: all of it stays

    consuming = world.loop.create_task(consume())
    sender = Sender(world, producer)
    sending = world.loop.create_task(sender.run())
    for _ in range(2):
        await sender.goes_on(5.0)
        assert client.get_service_info().service_url == FIRST
        world.machine.kill() if world.rng.random() < 0.5 else world.machine.power_off()
        # a probe of a dead machine may take its whole time-out
        await until_at(world, client, SECOND, (threshold + 1) * (interval + 2.5))
        await sender.goes_on(5.0)
        await asyncio.sleep(world.rng.uniform(0.0, 60.0))
        await world.machine.start()
        await until_at(world, client, FIRST, (back + 1) * (interval + 2.5))
    sender.wanted = False
    await sending
    await asyncio.sleep(5.0)
    consuming.cancel()
    await client.close()
    first, other = await stored(world, FIRST), await stored(world, SECOND)
    assert set(sender.confirmed) <= {*first, *other}, "confirmed and in no cluster"
    assert list(dict.fromkeys(first)) == sorted(set(first)) and list(dict.fromkeys(other)) == sorted(set(other))
    assert set(first) <= received, "stored where the client is, and not received"
    assert other and set(sender.confirmed) - set(other), "both clusters were used"
    await second.stop()


def test_failover() -> None:
    run_seeds(failover, 3)


async def update_of_the_url(world: World) -> None:
    """An application moves a client: producers and consumers come there at once, also from a long pause."""
    second = await boot_both(world)
    client = new_client(world, FIRST)
    producer = await client.create_producer(T, send_timeout_millis=0)
    consumer = await client.subscribe(T, "s")
    await producer.send(b"1")
    assert (await consumer.receive(5_000)).data() == b"1"
    if world.rng.random() < 0.5:
        world.machine.power_off()
        await asyncio.sleep(world.rng.uniform(100.0, 400.0))  # pauses are up to a minute by now
    before = world.loop.time()
    client.update_service_url(SECOND)
    await producer.send(b"2")
    assert (await consumer.receive(5_000)).data() == b"2"
    assert world.loop.time() - before < 3.0, "it waited for the end of a pause"
    assert client.get_service_info().service_url == SECOND
    await client.close()
    assert await stored(world, SECOND) == [2]
    await second.stop()


def test_update_of_the_url() -> None:
    run_seeds(update_of_the_url, 4)


async def several_hosts(world: World) -> None:
    """The hosts of one URL are tried in order, the last good one first; each may die and come back."""
    second = await boot_both(world)
    client = new_client(world, f"pulsar://nowhere:1,broker:{PORT},second:{PORT}")
    producer = await client.create_producer(T, send_timeout_millis=0)
    sender = Sender(world, producer)
    sending = world.loop.create_task(sender.run())
    for dying, other in ((world.machine, second), (second, world.machine)):
        await sender.goes_on(5.0)
        dying.power_off()
        await sender.goes_on(60.0)
        assert producer.is_connected()
        await dying.start()
        del other
    sender.wanted = False
    await sending
    await client.close()
    first, other_ones = await stored(world, FIRST), await stored(world, SECOND)
    assert set(sender.confirmed) <= {*first, *other_ones} and first and other_ones
    await second.stop()


def test_several_hosts() -> None:
    run_seeds(several_hosts, 3)


async def a_silent_link(world: World) -> None:
    """A link that carries nothing is noticed within three keep-alive intervals; the message goes over another one, for
    which the broker looks up to 5 s whether the old one lives (connectionLivenessCheckTimeoutMillis)."""
    await world.boot()
    interval = world.rng.choice((1.0, 4.0))
    async with Client(
        FIRST, keep_alive_interval_seconds=interval, clock=SimClock(world.loop), rng=world.rng,
        initial_backoff_interval_ms=10, max_backoff_interval_ms=20,
    ) as client:  # fmt: skip
        producer = await client.create_producer(T, send_timeout_millis=0)
        await producer.send(b"0")
        for link in world.network.links:
            link.freeze()
        before = world.loop.time()
        await producer.send(b"1")
        waited = world.loop.time() - before
        assert interval < waited < 3 * interval + 5.5, f"noticed after {waited} s"
    assert await stored(world, FIRST) == [0, 1]


def test_a_silent_link() -> None:
    run_seeds(a_silent_link, 3)


def test_a_client_that_waits_too_long_for_a_sign_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WireConnection._keep_alive

    def patient(self: WireConnection) -> None:
        self._pinger = self._loop.call_later(10 * self._patience, whole, self)

    monkeypatch.setattr(WireConnection, "_keep_alive", patient)
    caught(a_silent_link, lambda _: None, saying="noticed after")


class Provider(ServiceInfoProvider):
    """Begins with the first cluster, and keeps what it was given."""

    def __init__(self) -> None:
        self.tell: Callable[[ServiceInfo], None] = lambda _: None
        self.closed = 0

    def initial_service_info(self) -> ServiceInfo:
        return ServiceInfo(FIRST)

    def initialize(self, on_service_info_update: Callable[[ServiceInfo], None]) -> None:
        self.tell = on_service_info_update

    def close(self) -> None:
        self.closed += 1


async def a_provider(world: World) -> None:
    """What a provider says counts, from the loop's own thread at once."""
    second = await boot_both(world)
    provider = Provider()
    async with new_client(world, provider) as client:
        producer = await client.create_producer(T)
        provider.tell(ServiceInfo(SECOND))
        assert client.get_service_info().service_url == SECOND
        await producer.send(b"3")
        try:
            client.update_service_url(FIRST)
        except ClientError:
            pass
        else:
            raise AssertionError("a provider decides alone")
    assert provider.closed == 1
    assert await stored(world, SECOND) == [3]
    await second.stop()


def test_a_provider() -> None:
    run_seeds(a_provider, 2)
