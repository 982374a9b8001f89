"""What a broker that was stopped leaves in its event loop: nothing, for tests that use the kit go on in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, make_entry
from tests.sim.world import T, World, run_seed
from tests.support.signed_tokens import SECRET, inline, signed

TOKEN_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
UNSTORED = "non-persistent://public/default/n"


async def client_of(role: str) -> RawClient:
    client = await RawClient.open(HOST, PORT)
    await client.connect(auth_method_name="token", auth_data=signed({"sub": role}).encode())
    return client


async def _nobody(world: World) -> None:
    """Nobody ever came."""


async def _idle(world: World) -> None:
    await client_of("alice")


async def _busy(world: World) -> None:
    """Everything that waits for a time: an activation, a delayed message, a transaction's end, a limited rate."""
    client = await client_of("alice")
    producer = await client.producer(T)
    for sub_type in c.SubType:
        consumer = await client.subscribe(T, f"s{sub_type}", sub_type)
        consumer.flow(10)
    late = make_entry(
        b"late", producer=producer.name, sequence_id=1, deliver_at_ms=world.machine.clock.now_ms() + 50_000
    )
    await producer.receipt(producer.send(b"", entry=late, sequence_id=1))
    begun = await client.request(c.CommandNewTxn(client.new_id(), 60_000), c.CommandNewTxnResponse)
    await producer.receipt(producer.send(b"in it", txn=begun.txn))
    other = await client_of("alice")
    passing = await other.producer(UNSTORED)
    await other.subscribe(UNSTORED, "s", c.SubType.Failover)
    for number in range(20):
        passing.send(b"%d" % number)
        producer.send(b"%d" % number)
    await asyncio.sleep(0.01)


async def _shaken(world: World) -> None:
    """Clients that are half in, half out, or gone without a word when it stops."""
    await RawClient.open(HOST, PORT)
    client = await client_of("alice")
    producer = await client.producer(T)
    client.say(c.CommandSubscribe(T, "s", c.SubType.Failover, 900, 901))
    producer.send(b"1")
    gone = await client_of("alice")
    gone.transport.abort()


@pytest.mark.parametrize("before", [_nobody, _idle, _busy, _shaken], ids=lambda story: story.__name__.strip("_"))
@pytest.mark.parametrize("seconds", [0.0, 100.0])
def test_a_broker_that_was_stopped_has_nothing_to_do_any_more(before: Any, seconds: float, tmp_path: Path) -> None:
    """Neither a task nor a timer of it is left, whatever it was in the middle of."""
    revoked = tmp_path / "revoked"
    revoked.write_text("sub mallory\n")

    async def simulation(world: World) -> None:
        await world.boot()
        process = world.machine.process
        await before(world)
        await asyncio.sleep(seconds)
        assert process.waiting()
        await world.machine.stop()
        assert process.waiting() == []

    settings = Settings(
        authenticationEnabled=True, authenticationProviders=TOKEN_PROVIDER, tokenSecretKey=inline(SECRET),
        tokenRevocationListFile=str(revoked), transactionCoordinatorEnabled=True,
        dispatchThrottlingRatePerTopicInMsg=5, brokerPublisherThrottlingMaxMessageRate=5,
        activeConsumerFailoverDelayTimeMillis=30_000,
        delayedDeliveryEnabled=True,
    )  # fmt: skip
    run_seed(simulation, 1, settings=settings, watched=True)
