"""CONNECT with what a broker without authentication has no use for, and PING in hard times."""

from __future__ import annotations

import asyncio

from magnetar.protocol import commands as c
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"


def test_credentials_and_addresses_of_proxies_are_ignored() -> None:
    """Without authentication every credential is accepted; the address that is given for a proxy is ignored (rules
    1.2.8,
    12.5)."""

    async def test(wires: Wires) -> None:
        plain = await (await wires.silent()).connect()
        for options in (
            {"auth_method_name": "token", "auth_data": b"not.a.token"},
            {"auth_method_name": "basic", "auth_data": b"user:password"},
            {"auth_method_name": "no such method"},
            {"proxy_to_broker_url": "pulsar://elsewhere:6650"},
        ):
            client = await wires.silent()
            assert await client.connect(**options) == plain
            assert (await client.lookup(T)).response is c.LookupType.Connect

    on_broker(test)


def test_ping_is_answered_while_the_disk_hangs() -> None:
    """A broker that waits for its disk still answers PING, so that clients do not take it for dead (rule 12.11)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        producer = await client.producer(T)
        await producer.publish(b"before")
        wires.world.machine.hold_writes()
        producer.send(b"waits")
        for _ in range(3):
            await asyncio.sleep(20)
            client.say(c.CommandPing())
            await client.hear(c.CommandPong)
        assert not client.heard(c.CommandSendReceipt)
        wires.world.machine.release_writes()
        await producer.receipt()

    on_broker(test)
