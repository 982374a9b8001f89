"""Clients with service URLs of http, with several hosts, that move, and in processes that are forked off."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tools.servers.process import Server

import magnetar
from magnetar import aio
from magnetar.client.errors import ClientError, ConnectionLostError, ForkedClientError, RefusedError
from magnetar.model.errors import ServerError
from tests.support.forked_child import forked
from tests.support.live_broker import free_port

PATIENCE_MS = 10_000
EARLIEST = magnetar.InitialPosition.Earliest


def test_lookups_by_rest(server: Server, topic: str) -> None:
    """Everything that asks: producers, partitions, patterns, readers, schemas of versions, a missing namespace."""
    web = server.http_url.removeprefix("http://")
    url = f"http://127.0.0.1:{free_port()},{web}"  # nobody listens at the first
    magnetar.Admin(server.http_url).topics.create_partitioned(f"{topic}-parts", 3)
    with magnetar.Client(url) as client:
        assert len(client.get_topic_partitions(f"{topic}-parts")) == 3
        assert client.get_topic_partitions(topic) == [f"persistent://public/default/{topic}"]
        text = magnetar.schema.StringSchema()
        with client.create_producer(f"{topic}-parts", schema=text) as producer:
            for number in range(6):
                producer.send(f"{number}")
        pattern = re.compile(f"persistent://public/default/{topic}-.*")
        auto = magnetar.schema.AutoConsumeSchema()
        with client.subscribe(pattern, "s", schema=auto, initial_position=EARLIEST) as consumer:
            got = {consumer.receive(PATIENCE_MS).value() for _ in range(6)}
        assert got == {f"{number}" for number in range(6)}
        with client.create_reader(topic, magnetar.MessageId.earliest) as reader:
            assert not reader.has_message_available()
        with pytest.raises(RefusedError, match=r"look up|ask for the partitions") as refused:
            client.create_producer(f"public/nowhere/{topic}")
        assert refused.value.code in (ServerError.TopicNotFound, ServerError.MetadataError)


class _Elsewhere(BaseHTTPRequestHandler):
    """Redirects every question: to where the server says, or to https."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(307)
        self.send_header("Location", self.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, type[_Elsewhere]]]:
    handler = type("Handler", (_Elsewhere,), {})
    with HTTPServer(("127.0.0.1", 0), handler) as door:
        thread = threading.Thread(target=door.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{door.server_port}", handler
        finally:
            door.shutdown()
            thread.join()


def test_redirects_of_rest_are_followed_but_not_from_one_scheme_to_another(
    server: Server, topic: str, elsewhere: tuple[str, type[_Elsewhere]]
) -> None:
    url, handler = elsewhere
    handler.target = server.http_url
    with magnetar.Client(url) as client, client.create_producer(topic) as producer:
        assert producer.send(b"1").entry_id() == 0
        handler.target = "https://127.0.0.1:1"
        with pytest.raises(ClientError, match=r"redirects to https://127.0.0.1:1, where nothing is asked"):
            client.create_producer(f"{topic}-2")
        handler.target = url
        with pytest.raises(ClientError, match="redirects and no broker"):
            client.create_producer(f"{topic}-3")


def test_a_failover_at_real_sockets(server: Server, topic: str) -> None:
    """The primary cluster is not there: the client comes to the other one, and what waits is sent there."""
    away, other = f"pulsar://127.0.0.1:{free_port()}", f"pulsar://127.0.0.1:{free_port()},{server.broker_url[9:]}"
    service = magnetar.AutoClusterFailover(magnetar.ServiceInfo(away), [magnetar.ServiceInfo(other)], 20)
    with magnetar.Client(service) as client:
        with client.create_producer(topic) as producer:
            producer.send(b"1")
        assert client.get_service_info().service_url == other
        with pytest.raises(ValueError, match="AutoClusterFailover of this client says"):
            client.update_service_url(server.broker_url)


def test_a_moved_blocking_client(server: Server, topic: str) -> None:
    with magnetar.Client(f"pulsar://127.0.0.1:{free_port()}", operation_timeout_seconds=0.2) as client:
        with pytest.raises(ConnectionLostError):
            client.create_producer(topic)
        with pytest.raises(ValueError, match="no scheme"):
            client.update_service_url("nowhere")
        client.update_service_url(server.http_url)
        assert client.get_service_info().service_url == server.http_url
        with client.create_producer(topic) as producer:
            producer.send(b"1")


def test_an_asyncio_client_is_refused_in_a_child_at_once_and_the_parent_goes_on(server: Server, topic: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), aio.Client(server.broker_url) as client:
            consumer, producer = await client.subscribe(topic, "s"), await client.create_producer(topic)
            reader = await client.create_reader(topic, aio.MessageId.earliest)
            for number in range(3):
                await producer.send(b"%d" % number)
            first = await consumer.receive()
            await reader.read_next()
            uses: list[Callable[[], Awaitable[object]]] = [
                lambda: producer.send(b"x"), producer.flush, consumer.receive, lambda: consumer.acknowledge(first),
                lambda: consumer.acknowledge(first.message_id()), lambda: consumer.negative_acknowledge(first),
                lambda: consumer.seek(0), reader.read_next, reader.has_message_available,
                lambda: client.create_producer(topic), lambda: client.subscribe(topic, "t"), client.new_transaction,
                lambda: client.get_topic_partitions(topic),
            ]  # fmt: skip

            async def use() -> None:
                for one in uses:
                    with pytest.raises(ForkedClientError, match="Make a client in this process"):
                        await asyncio.wait_for(one(), 5.0)
                with pytest.raises(ForkedClientError):
                    _ = producer.send_nowait(b"x")
                for closing in (producer, consumer, reader, client):
                    await closing.close()

            process = forked(lambda: asyncio.run(use()))
            waiting = asyncio.get_running_loop().run_in_executor(None, os.waitpid, process, 0)
            assert os.waitstatus_to_exitcode((await waiting)[1]) == 0
            await producer.send(b"3")
            assert [(await consumer.receive()).data() for _ in range(3)] == [b"1", b"2", b"3"]
            assert (await reader.read_next()).data() == b"1"

    asyncio.run(main())
