"""What sockets hold of messages that their peers do not take: one budget, and nobody else is held up for long."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from magnetar.admin.websocket import routes, socket_memory
from magnetar.admin.websocket.socket_memory import SocketMemory, SocketShare
from magnetar.client.aio.client import Client
from magnetar.client.encryption.crypto_key_reader import CryptoKeyReader
from tests.support.encrypted_entries import pair
from tests.support.real_broker import HOST, RealBroker, run_on_broker

C = "/ws/v2/consumer/persistent/public/default/"
R = "/ws/v2/reader/persistent/public/default/"
MIB = 1 << 20


class Watched(SocketMemory):
    """Notes the most that was ever held, of all sockets and of one."""

    most_held = most_waiting = 0

    def came(self, size: int) -> None:
        super().came(size)
        Watched.most_held = max(Watched.most_held, self.held)
        Watched.most_waiting = max(Watched.most_waiting, *(one.waiting() for one in self._shares))


@contextlib.contextmanager
def small(most: int, share: int, patience: float) -> Iterator[type[Watched]]:
    Watched.most_held = Watched.most_waiting = 0
    with (
        patch.multiple(routes, MEMORY=most, SHARE=share, PATIENCE=patience),
        patch.object(socket_memory, "SocketMemory", Watched),
    ):
        yield Watched


def narrow() -> socket.socket:
    """A socket whose kernel takes little."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return found


async def opened(broker: RealBroker, path: str, *, deaf: bool = False) -> ClientConnection:
    url = broker.node.broker.service.web_service_url.replace("http", "ws", 1) + path
    options: dict[str, Any] = {}
    if deaf:
        options = {"sock": narrow(), "max_queue": 1, "ping_interval": 0.1, "ping_timeout": None}
        port = int(url.partition("//")[2].partition("/")[0].rpartition(":")[2])
        options["sock"].setblocking(False)
        await asyncio.get_running_loop().sock_connect(options["sock"], (HOST, port))
    return await connect(url, compression=None, proxy=None, close_timeout=0.2, max_size=None, **options)


async def fill(broker: RealBroker, topics: list[str], count: int, size: int) -> None:
    async with Client(f"pulsar://{HOST}:{broker.node.port}") as client:
        for topic in topics:
            producer = await client.create_producer(topic, batching_enabled=False)
            for number in range(count):
                await producer.send(b"%d " % number + b"x" * size)


def test_deaf_peers_hold_a_budget_together_and_nobody_else_up(tmp_path: Path) -> None:
    """They send pings, so they are not silent; each has more to take than the kernels take for it."""

    async def scenario(broker: RealBroker) -> None:
        with small(8 * MIB, MIB // 4, 0.3) as watched:
            await fill(broker, ["t"], 12, MIB)
            deaf = [await opened(broker, R + "t?messageId=earliest", deaf=True) for _ in range(6)]
            good = await opened(broker, R + "t?messageId=earliest")
            for number in range(12):
                frame = json.loads(await asyncio.wait_for(good.recv(), 30))
                assert base64.b64decode(frame["payload"]).startswith(b"%d " % number)
                await good.send("{}")
            assert watched.most_held <= 2 * 8 * MIB + 2 * MIB, "it is looked at each megabyte"
            ended = 0
            for one in deaf:
                one.transport.resume_reading()
                with contextlib.suppress(TimeoutError):
                    try:
                        async with asyncio.timeout(10):
                            for _ in range(12):
                                await one.recv()
                                await one.send("{}")
                    except ConnectionClosed:
                        ended += 1
                await one.close()
            assert ended, "what a deaf peer held was needed"
            await good.close()

    run_on_broker(tmp_path, scenario)


def test_topics_of_one_socket_wait_with_the_broker(tmp_path: Path) -> None:
    topics = [f"persistent://public/default/t{number}" for number in range(8)]

    async def scenario(broker: RealBroker) -> None:
        with small(64 * MIB, MIB // 2, 60) as watched:
            consumer = await opened(broker, "/ws/v3/consumer/s?subscriptionInitialPosition=Earliest"
                                    "&receiverQueueSize=1&topics=" + ",".join(topics))  # fmt: skip
            await fill(broker, topics, 3, MIB)
            got = []
            for _ in range(24):
                frame = json.loads(await asyncio.wait_for(consumer.recv(), 30))
                got.append(base64.b64decode(frame["payload"])[:1])
                await consumer.send(json.dumps({"messageId": frame["messageId"]}))
            assert sorted(got) == sorted([b"0", b"1", b"2"] * 8)
            assert watched.most_waiting < 2 * MIB, "half a megabyte and the message that exceeds it"
            await consumer.close()

    run_on_broker(tmp_path, scenario)


def test_a_socket_that_unsubscribes_while_it_is_held_up_is_answered(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        with small(64 * MIB, 1000, 60):
            await fill(broker, ["t"], 6, 10_000)
            consumer = await opened(broker, C + "t/s?subscriptionInitialPosition=Earliest&receiverQueueSize=1")
            await asyncio.wait_for(consumer.recv(), 20)
            await consumer.send(json.dumps({"type": "unsubscribe"}))
            async with asyncio.timeout(10):
                while "s" in (await broker.stats("t"))["subscriptions"]:  # noqa: ASYNC110  nobody tells
                    await asyncio.sleep(0.01)
            await consumer.close()

    run_on_broker(tmp_path, scenario)


def test_encrypted_messages_are_not_passed_over_silently(tmp_path: Path) -> None:
    public = tmp_path / "public.pem"
    public.write_text(pair()[1])
    reader = CryptoKeyReader(str(public), None)

    async def scenario(broker: RealBroker) -> None:
        async with Client(f"pulsar://{HOST}:{broker.node.port}") as client:
            for seal in (None, "k", None):
                producer = await client.create_producer(
                    "t", batching_enabled=False, encryption_key=seal, crypto_key_reader=reader if seal else None
                )
                await producer.send(b"sealed" if seal else b"plain")
                await producer.close()
        for path in (C + "t/s?subscriptionInitialPosition=Earliest", R + "t?messageId=earliest"):
            failing = await opened(broker, path)
            assert json.loads(await failing.recv())["payload"] == base64.b64encode(b"plain").decode()
            await failing.send("{}") if "reader" in path else None
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(failing.recv(), 20)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1011
            assert " is encrypted, and cryptoFailureAction" in closed.value.rcvd.reason
        skipping = await opened(broker, R + "t?messageId=earliest&cryptoFailureAction=DISCARD")
        for _ in range(2):
            assert json.loads(await asyncio.wait_for(skipping.recv(), 20))["payload"] == "cGxhaW4="
            await skipping.send("{}")
        taking = await opened(broker, R + "t?messageId=earliest&cryptoFailureAction=CONSUME")
        found = []
        for _ in range(3):
            found.append(json.loads(await asyncio.wait_for(taking.recv(), 20)))
            await taking.send("{}")
        sealed = found[1]["encryptionContext"]
        assert "encryptionContext" not in found[0] and sealed["encrypted"] and list(sealed["keys"]) == ["k"]
        assert base64.b64decode(sealed["param"]) and base64.b64decode(sealed["keys"]["k"]["keyValue"])
        assert base64.b64decode(found[1]["payload"]) != b"sealed"
        for one in (skipping, taking):
            await one.close()

    run_on_broker(tmp_path, scenario)


def test_the_line_for_room_is_served_in_order_and_survives_who_leaves() -> None:
    async def scenario() -> None:
        memory = SocketMemory(10, 5, 60)
        shares = [SocketShare(memory, lambda: 0, lambda reason: None) for _ in range(4)]
        await shares[0].reserve(2)
        waiting = [asyncio.create_task(one.reserve(2)) for one in shares[1:]]
        await asyncio.sleep(0)
        assert [one.frame for one in shares] == [8, 0, 0, 0]
        waiting[0].cancel()
        shares[0].release()
        await waiting[1]
        assert [one.frame for one in shares] == [0, 0, 8, 0]
        shares[2].release()
        await waiting[2]
        shares[3].release()
        await shares[1].reserve(1000)
        assert shares[1].frame == 10, "what is larger than all has all of it"
        shares[1].release()
        assert memory.held == 0

    asyncio.run(scenario())
