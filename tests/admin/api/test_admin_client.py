"""The admin client drives a running broker, blocking and on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from magnetar import Admin, AsyncAdmin
from magnetar.admin_client.errors import (
    AdminInvalidRequestError,
    AdminNoAnswerError,
    AdminNotFoundError,
    AdminRedirectError,
)
from magnetar.security.credentials.method import NOBODY, ClientCredentials
from magnetar.security.credentials.plugin import credentials_of
from tests.support import admin_program
from tests.support.real_broker import RealBroker, run_on_broker


def test_a_user_program(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        url = broker.node.broker.service.web_service_url
        await asyncio.to_thread(admin_program.run, Admin(url), "acme")
        admin = AsyncAdmin(url, at_once=2)
        names = await asyncio.gather(*(admin.tenants.list() for _ in range(5)))
        assert names == [["public", "pulsar"]] * 5
        await admin.topics.create("t")
        client = await broker.client()
        producer = await client.producer("persistent://public/default/t")
        await admin.subscriptions.create("t", "s", "earliest")
        await producer.receipt(producer.send(b"order 1"))
        assert (await admin.subscriptions.peek_message("t", "s", 1)).payload.endswith(b"order 1")
        assert (await admin.topics.get_stats("t")).subscriptions["s"].msg_backlog == 1
        with pytest.raises(AdminNotFoundError) as refused:
            await admin.topics.get_stats("none")
        assert refused.value.reason == "Topic persistent://public/default/none not found"
        with pytest.raises(AdminInvalidRequestError):
            await admin.namespaces.get_policies("no namespace")

    run_on_broker(tmp_path, scenario)


@pytest.mark.skipif("APACHE_PULSAR_REST" not in os.environ, reason="APACHE_PULSAR_REST names no REST interface")
def test_the_same_program_drives_apache_pulsar() -> None:
    admin_program.run(Admin(os.environ["APACHE_PULSAR_REST"]), "acme")


@asynccontextmanager
async def _answering(text: bytes) -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Event]]:
    """A server that answers every request so: its address, and what says that it has one and that its client closed."""
    asked, gone, writers = asyncio.Event(), asyncio.Event(), set[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        writer.write(text)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
            await reader.read()
        gone.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked, gone
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def test_a_cancelled_call_closes_its_connection() -> None:
    async def scenario() -> None:
        async with _answering(b"") as (url, asked, gone):
            call = asyncio.create_task(AsyncAdmin(url).tenants.list())
            await asked.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            async with asyncio.timeout(60):
                await gone.wait()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "does not answer as HTTP does"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[", "does not answer as HTTP does"),
    ],
)
def test_what_is_no_answer(text: bytes, reason: str) -> None:
    async def scenario() -> None:
        async with _answering(text) as (url, *_):
            with pytest.raises(AdminNoAnswerError) as refused:
                # the second one leaves the rest of its answer out
                await AsyncAdmin(url, seconds=0.3).tenants.list()
        assert reason in str(refused.value) or "did not answer for 0.3 s" in str(refused.value)

    asyncio.run(scenario())


@pytest.mark.parametrize("blocking", [True, False])
def test_redirects_go_where_the_credentials_may_go(
    tmp_path: Path, blocking: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 307 names the owner of a topic; it is followed to the same host, and to others that are named."""

    async def scenario(broker: RealBroker) -> None:
        port = broker.node.broker.service.web_service_url.rpartition(":")[2]
        monkeypatch.setenv("ADMIN_TOKEN", "a.b.c")
        token = credentials_of("token", "env:ADMIN_TOKEN", "this test", inline=False)

        async def names(
            url: str, *, credentials: ClientCredentials = NOBODY, redirects_to: tuple[str, ...] = ()
        ) -> list[str]:
            if blocking:
                admin = Admin(url, credentials=credentials, redirects_to=redirects_to)
                return await asyncio.to_thread(admin.tenants.list)
            return await AsyncAdmin(url, credentials=credentials, redirects_to=redirects_to).tenants.list()

        for host in ("127.0.0.1", "localhost"):
            location = f"http://{host}:{port}/admin/v2/tenants"
            answer = f"HTTP/1.1 307 X\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            async with _answering(answer.encode()) as (url, *_):
                assert await names(url) == ["public", "pulsar"]
                if host == "127.0.0.1":
                    assert await names(url, credentials=token) == ["public", "pulsar"]
                    continue
                with pytest.raises(AdminRedirectError, match=r"redirects_to=\['localhost'\]"):
                    await names(url, credentials=token)
                assert await names(url, credentials=token, redirects_to=("localhost",)) == ["public", "pulsar"]

    run_on_broker(tmp_path, scenario)
