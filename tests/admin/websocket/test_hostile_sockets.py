"""Peers of WebSockets that break off, flood, take nothing or ask for everything: bounded, and nobody else notices."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from magnetar.admin.local_broker import inner_clients
from magnetar.client.aio.client import Client
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.topic_pattern import PatternTopics
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.machines.message_id import MessageId
from magnetar.model.subscription_types import SubType
from magnetar.protocol.compression import CompressionType
from tests.support.real_broker import HOST, RealBroker, run_on_broker
from tests.support.websocket_peers import C, P, R, message, opened, said


async def clients_left(broker: RealBroker) -> int:
    """Waits until no connection is open beside ours, which takes as long as it takes."""
    for _ in range(400):
        if not len(broker.node.broker.connections):
            break
        await asyncio.sleep(0.01)
    return len(broker.node.broker.connections)


def test_what_was_answered_is_stored_though_the_peer_breaks_off(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", "/admin/v2/persistent/public/default/t/subscription/s", "earliest")
        socket = await opened(broker, P + "t")
        for number in range(200):
            await socket.send(message(number))
        answered = [(await said(socket))["context"] for _ in range(20)]
        socket.transport.abort()
        async with await opened(broker, C + "t/s?receiverQueueSize=1000") as consumer:
            got = [base64.b64decode((await said(consumer))["payload"]).decode() for _ in range(20)]
        assert got == answered == [str(number) for number in range(20)]
        assert await clients_left(broker) == 0
        assert (await broker.stats("t"))["publishers"] == []

    run_on_broker(tmp_path, scenario)


def test_a_consumer_that_acknowledges_nothing_holds_nobody_up(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        async with (
            await opened(broker, C + "t/s?subscriptionType=Shared&receiverQueueSize=3") as deaf,
            await opened(broker, P + "t") as producer,
            await opened(broker, C + "t/s?subscriptionType=Shared") as good,
        ):
            for number in range(100):
                await producer.send(message(number))
            for _ in range(100):
                assert (await said(producer))["result"] == "ok"
            took = [await said(deaf) for _ in range(3)]
            got: set[str] = set()
            # what the deaf one has, and what is on its way to it, stays there until it leaves
            while len(got) < 100 - 3 - 10:
                frame = await said(good)
                got.add(frame["payload"])
                await good.send(json.dumps({"messageId": frame["messageId"]}))
            await deaf.close()
            while len(got) < 100:
                frame = await said(good)
                got.add(frame["payload"])
                await good.send(json.dumps({"messageId": frame["messageId"]}))
            assert {one["payload"] for one in took} <= got

    run_on_broker(tmp_path, scenario)


def test_a_peer_that_reads_nothing_stops_its_own_pump(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        async with await opened(broker, P + "t") as producer:
            for number in range(60):
                await producer.send(message(number, 500_000))
                await said(producer)
        # its client library holds one message at most, and the kernel some megabytes
        async with await opened(broker, R + "t?messageId=earliest", max_queue=1) as reader:
            await asyncio.sleep(0.3)
            held = broker.node.broker.connections.held()["unsent_bytes"]
            assert held < 30 << 20
            taken = (await broker.stats("t"))["subscriptions"].values()
            assert all(one["msgOutCounter"] < 60 for one in taken)
            for number in range(60):
                assert base64.b64decode((await said(reader))["payload"]).startswith(b"%d" % number)
                await reader.send("{}")

    run_on_broker(tmp_path, scenario)


def test_a_million_permits_are_a_number(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        async with (
            await opened(broker, C + "t/s?pullMode=true") as consumer,
            await opened(broker, P + "t") as producer,
        ):
            for count in (10**6, 2**31 - 1, 0):
                await consumer.send(json.dumps({"type": "permit", "permitMessages": count}))
            await producer.send(message(1))
            assert (await said(consumer))["redeliveryCount"] == 0
            await consumer.send(json.dumps({"type": "permit", "permitMessages": 10**30}))
            try:
                await asyncio.wait_for(consumer.recv(), 20)
            except ConnectionClosed as closed:
                assert closed.rcvd is not None and closed.rcvd.code == 1007

    run_on_broker(tmp_path, scenario)


def test_half_a_handshake_and_bytes_that_are_no_frames(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        port = int(broker.node.broker.service.web_service_url.rpartition(":")[2])
        head = (
            f"GET {P}t HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ).encode()
        wrong = (head.replace(b"Version: 13", b"Version: 8"), head.replace(b"dGhl", b"!!"))
        for sent in (head[:-10], *wrong, head + b"\xff" * 100):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(sent)
            if sent in wrong:
                assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 4")
            else:
                await writer.drain()
                await asyncio.sleep(0.05)
            writer.close()
        async with await opened(broker, P + "t") as producer:
            await producer.send(message(1))
            assert (await said(producer))["result"] == "ok"
        assert await clients_left(broker) == 0
        assert broker.node.rest is not None and broker.node.rest.connection_limit.count <= 1

    run_on_broker(tmp_path, scenario)


def test_silence_ends_a_socket_and_a_sign_of_life_does_not(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        silent = await opened(broker, C + "t/s", ping_interval=None)
        async with await opened(broker, C + "t/other", ping_interval=0.1) as alive:
            try:
                await asyncio.wait_for(silent.recv(), 20)
            except ConnectionClosed as closed:
                assert closed.rcvd is not None
                assert (closed.rcvd.code, closed.rcvd.reason) == (1001, "Connection Idle Timeout")
            await alive.send(json.dumps({"type": "isEndOfTopic"}))
            assert await said(alive) == {"endOfTopic": False}

    run_on_broker(tmp_path, scenario, webSocketSessionIdleTimeoutMillis=1000)


def test_late_acknowledgements(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        async with (
            await opened(broker, C + "t/s?subscriptionType=Shared&ackTimeoutMillis=1000") as consumer,
            await opened(broker, P + "t") as producer,
        ):
            await producer.send(message(1))
            first = await said(consumer)
            again = await said(consumer)
            assert (first["messageId"], again["redeliveryCount"]) == (again["messageId"], 1)
            await consumer.send(json.dumps({"messageId": again["messageId"]}))

    run_on_broker(tmp_path, scenario)


def test_no_service(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        status, answered = await broker.ask("GET", P + "t")
        assert (status, "webSocketServiceEnabled" in answered["reason"]) == (404, True)

    run_on_broker(tmp_path, scenario, webSocketServiceEnabled=False)


def test_a_pattern_that_could_take_for_ever_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        for pattern in ("(a%2B)%2B$", "(.*)*x", ".*.*.*.*x", "a{1,9}", "[ab]", "x" * 501):
            try:
                async with opened(broker, f"/ws/v3/consumer/s?topicsPattern=persistent://public/default/{pattern}"):
                    raise AssertionError(pattern)
            except InvalidStatus as refused:
                assert refused.response.status_code == 400
                assert b"topicsPattern" in (refused.response.body or b"")

    run_on_broker(tmp_path, scenario)


def test_ids_of_batches_that_cannot_be_cost_nothing(tmp_path: Path) -> None:
    """A bit is kept for each message of a batch, so three such ids were a gigabyte, and seconds for everybody."""
    huge = base64.b64encode(MessageId(-1, 1, 0, 5, batch_size=(1 << 31) - 1).serialize()).decode()
    beyond = base64.b64encode(MessageId(-1, 1, 0, 1 << 30, batch_size=10).serialize()).decode()

    async def scenario(broker: RealBroker) -> None:
        for wrong in (huge, beyond):
            for kind in ("acknowledge", "negativeAcknowledge"):
                async with await opened(broker, C + "t/s") as consumer:
                    await consumer.send(json.dumps({"type": kind, "messageId": wrong}))
                    with pytest.raises(ConnectionClosed) as closed:
                        await asyncio.wait_for(consumer.recv(), 20)
                    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1011
                    assert "of a batch of" in closed.value.rcvd.reason
            with pytest.raises(InvalidStatus) as refused:
                await opened(broker, R + "t?messageId=" + quote(wrong, safe=""))
            assert refused.value.response.status_code == 400

    run_on_broker(tmp_path, scenario)


def test_only_messages_that_are_out_can_be_given_back(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        with patch.object(Consumer, "negative_acknowledge", autospec=True) as given_back:
            async with (
                await opened(broker, C + "t/s?negativeAckRedeliveryDelay=2000000000") as consumer,
                await opened(broker, P + "t") as producer,
            ):
                for entry in range(100):
                    invented = base64.b64encode(MessageId(-1, 1, entry).serialize()).decode()
                    await consumer.send(json.dumps({"type": "negativeAcknowledge", "messageId": invented}))
                await producer.send(message(1))
                first = await said(consumer)
                for _ in range(2):
                    await consumer.send(json.dumps({"type": "negativeAcknowledge", "messageId": first["messageId"]}))
                await consumer.send(json.dumps({"type": "isEndOfTopic"}))
                assert await said(consumer) == {"endOfTopic": False}
        assert given_back.call_count == 1

    run_on_broker(tmp_path, scenario)


def test_partitions_of_a_socket_share_what_waits_in_memory(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", "/admin/v2/persistent/public/default/p/partitions", 20)
        async with await opened(broker, C + "p/s"):
            found = (await broker.stats("p-partition-7"))["subscriptions"]["s"]["consumers"]
            assert [one["availablePermits"] for one in found] == [1]

    run_on_broker(tmp_path, scenario)


def test_a_pattern_of_too_many_topics_is_refused_and_those_of_others_are_opened_by_parts(tmp_path: Path) -> None:
    begun, most = 0, 0
    whole = TopicConsumer._open

    async def counted(self: TopicConsumer, *given: Any) -> None:
        nonlocal begun, most
        begun += 1
        most = max(most, begun)
        await asyncio.sleep(0)
        await whole(self, *given)
        begun -= 1

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", "/admin/v2/persistent/public/default/p/partitions", 6)
        path = "/ws/v3/consumer/s?topicsPattern=persistent://public/default/p.*"
        with patch.object(inner_clients, "_TOPICS_MAX", 5), pytest.raises(InvalidStatus) as refused:
            await opened(broker, path)
        assert refused.value.response.status_code == 400
        assert b"matches 6 topics, more than 5;" in (refused.value.response.body or b"")
        with (
            patch.object(inner_clients, "_TOPICS_MAX", 6),
            patch.object(inner_clients, "_OPENING_MAX", 2),
            patch.object(TopicConsumer, "_open", counted),
        ):
            async with await opened(broker, path):
                assert most == 2
                assert len((await broker.stats("p-partition-5"))["subscriptions"]["s"]["consumers"]) == 1

    run_on_broker(tmp_path, scenario)


def test_topics_that_a_pattern_finds_later_are_left_out_beyond_the_bound(caplog: pytest.LogCaptureFixture) -> None:
    bound = PatternTopics("p.*", 3)
    assert bound.choose(["c", "d"]) == ["c", "d"]
    assert bound.choose(["a", "b", "c", "d"]) == ["c", "d", "a"]
    assert "p.*: 1 topics are left out" in caplog.text
    assert bound.choose(["a", "b", "d"]) == ["a", "d", "b"]


@pytest.mark.parametrize("batching", [False, True])
def test_what_is_huge_when_unpacked_closes_the_socket_and_is_left_to_others(tmp_path: Path, batching: bool) -> None:
    huge = b"x" * (7 << 20)

    async def scenario(broker: RealBroker) -> None:
        async with Client(f"pulsar://{HOST}:{broker.node.port}") as client:
            other = await client.subscribe("t", "s", SubType.Shared, receiver_queue_size=0)
            await other.close()
            producer = await client.create_producer(
                "t", compression_type=CompressionType.ZSTD, batching_enabled=batching
            )
            await producer.send(b"small")
            place = await producer.send(huge)
            await producer.send(b"after")
            named = f"message {place.ledger_id()}:{place.entry_id()} has "
            for path in (C + "t/s?subscriptionType=Shared", R + "t?messageId=earliest"):
                async with await opened(broker, path) as socket:
                    assert base64.b64decode((await said(socket))["payload"]) == b"small"
                    with pytest.raises(ConnectionClosed) as closed:
                        await asyncio.wait_for(socket.recv(), 20)
                    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1011
                    assert closed.value.rcvd.reason.startswith(named)
            other = await client.subscribe("t", "s", SubType.Shared)
            found = {bytes((await other.receive(20_000)).data()) for _ in range(3)}
            assert found == {b"small", huge, b"after"}

    run_on_broker(tmp_path, scenario, maxMessageSize=1 << 20)
