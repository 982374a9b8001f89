"""Handshakes with long paths, queries and headers: each is served or refused at once, and none keeps its connection."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest

from magnetar.admin.http.websocket_connection import WebSocketConnection
from magnetar.admin.websocket.upgrade import Socket
from tests.support.async_websocket import KEY, PRODUCER, answer, door, handshake
from tests.support.minted_secrets import kept, signing_key, token
from tests.support.real_broker import HOST, RealBroker, run_on_broker
from tests.support.websocket_frames import TEXT, ws_frame
from tests.support.websocket_peers import PROVIDER


async def answered(broker: RealBroker, *parts: bytes) -> tuple[int, str]:
    """The status of what a handshake is answered with, and the reason; a refused one is closed."""
    reader, writer = await asyncio.open_connection(HOST, door(broker))
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        status = int(head.split()[1])
        return status, "" if status == 101 else (await asyncio.wait_for(reader.read(), 60)).decode()
    finally:
        writer.close()


def with_header(value: str, path: str = PRODUCER) -> bytes:
    return handshake(path).replace(KEY.encode(), f"{KEY}X-Long: {value}\r\n".encode())


def halves(sent: bytes) -> tuple[bytes, bytes]:
    return sent[: len(sent) // 2], sent[len(sent) // 2 :]


@pytest.mark.parametrize("size", [9_000, 20_000, 60_000])
def test_a_long_query_or_header_is_served(tmp_path: Path, size: int) -> None:
    async def scenario(broker: RealBroker) -> None:
        for sent in (handshake(f"{PRODUCER}?x={'x' * size}"), with_header("x" * size)):
            assert await answered(broker, sent) == (101, "")
            assert await answered(broker, *halves(sent)) == (101, "")

    run_on_broker(tmp_path, scenario)


def test_very_many_headers_are_served(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        many = "".join(f"X-{number}: x\r\n" for number in range(500))
        assert await answered(broker, handshake(PRODUCER).replace(KEY.encode(), (KEY + many).encode())) == (101, "")

    run_on_broker(tmp_path, scenario)


def test_a_head_that_no_request_may_have_is_refused_with_the_bound(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        for sent in (handshake(f"{PRODUCER}?x={'x' * 70_000}"), with_header("x" * 70_000)):
            status, said = await answered(broker, *halves(sent[:-100]))
            assert (status, "65536 bytes" in json.loads(said)["reason"]) == (431, True)

    run_on_broker(tmp_path, scenario)


def test_a_thousand_topics_in_the_query(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        names = ",".join(f"persistent://public/default/t{number}" for number in range(1000))
        assert await answered(broker, handshake(f"/ws/v3/consumer/s?topics={names}")) == (101, "")
        status, said = await answered(broker, handshake(f"/ws/v3/consumer/s?topics={names},one/too/many"))
        assert (status, "up to 1000 topics" in said) == (400, True)

    run_on_broker(tmp_path, scenario)


def test_a_long_token_counts_in_the_header_and_in_the_query(tmp_path: Path) -> None:
    key = signing_key()
    longest = token("app", key, padding="x" * 20_000)
    assert 20_000 < len(longest) < 32 << 10

    async def scenario(broker: RealBroker) -> None:
        path = "/ws/v2/producer/persistent/public/default/t"
        header = handshake(path).replace(KEY.encode(), f"{KEY}Authorization: Bearer {longest}\r\n".encode())
        assert await answered(broker, header) == (101, "")
        assert await answered(broker, *halves(handshake(f"{path}?token={longest}"))) == (101, "")
        assert (await answered(broker, handshake(f"{path}?token={longest[:-9]}")))[0] == 401

    settings = {"tokenSecretKey": f"file:{kept(tmp_path, 'key', key)}", "authenticationProviders": PROVIDER}
    run_on_broker(tmp_path / "data", scenario, authenticationEnabled=True, **settings)


def test_a_handshake_with_a_body_is_an_ordinary_request(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        for framing, body in (
            ("Content-Length: 3", b"abc"),
            ("Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n"),
        ):
            head = handshake(PRODUCER).replace(b": Upgrade\r\n", f": Upgrade, close\r\n{framing}\r\n".encode())
            status, said = await answered(broker, head + body)
            assert (status, "WebSocket" in said) == (405, True)

    run_on_broker(tmp_path, scenario)


def test_frames_behind_the_handshake_wait_for_its_answer(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        for between in (0.0, 0.001):
            reader, writer = await asyncio.open_connection(HOST, door(broker))
            writer.write(handshake(PRODUCER) + ws_frame(TEXT, b'{"payload":"eA==","context":"1"}'))
            await asyncio.sleep(between)
            writer.write(ws_frame(TEXT, b'{"payload":"eA==","context":"2"}'))
            assert b" 101 " in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            assert [(await asyncio.wait_for(answer(reader), 10))["context"] for _ in range(2)] == ["1", "2"]
            writer.close()

    run_on_broker(tmp_path, scenario)


def test_a_broken_frame_behind_the_handshake_closes_the_socket(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: RealBroker) -> None:
        for together in (True, False):
            reader, writer = await asyncio.open_connection(HOST, door(broker))
            writer.write(handshake(PRODUCER) + b"\xff\xff" * together)
            await asyncio.sleep(0)
            writer.write(b"\xff\xff")
            assert b" 101 " in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            assert (await asyncio.wait_for(reader.read(), 10))[2:4] == (1002).to_bytes(2, "big")
            writer.close()

    run_on_broker(tmp_path, scenario)
    assert "Traceback" not in caplog.text


def test_no_refused_handshake_keeps_its_connection(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        for sent in (
            handshake(f"{PRODUCER}?{'a' * 9000}").replace(KEY.encode(), b""),
            handshake(f"/ws/v2/nowhere?{'a' * 9000}"),
            handshake(PRODUCER).replace(b"GET", b"PUT"),
            handshake(PRODUCER).replace(b"Version: 13", b"Version: 1\xff"),
        ):
            status, said = await answered(broker, sent)
            assert (400 <= status < 500, said != "") == (True, True)
        assert broker.node.rest is not None and broker.node.rest.connection_limit.count == 0

    run_on_broker(tmp_path, scenario)


def test_a_head_of_very_many_lines_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Reading 16,000 headers of 64 KB took the loop a quarter of a second, before anybody had logged in."""

    async def scenario(broker: RealBroker) -> None:
        many = "".join(f"{number:x}:\r\n" for number in range(5_000))
        for first in (handshake(PRODUCER), b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            sent = first.replace(b"Host:", f"{many}Host:".encode())
            for parts in ((sent,), halves(sent)):
                status, reason = await answered(broker, *parts)
                assert status == 431
                assert "the head has more than 1000 lines" in reason

    run_on_broker(tmp_path, scenario)


def test_what_is_no_request_behind_an_answer_ends_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal that cannot be sent any more is no error of the broker."""

    async def scenario(broker: RealBroker) -> None:
        reader, writer = await asyncio.open_connection(HOST, door(broker))
        head = b"HEAD /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"nonsense\r\n")
        with suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 10)
        writer.close()

    run_on_broker(tmp_path, scenario)
    assert "LocalProtocolError" not in caplog.text


def test_frames_behind_a_handshake_are_all_taken(tmp_path: Path) -> None:
    """Also where the handshake is handled in slices, because so many lines come at once."""

    async def scenario(broker: RealBroker) -> None:
        reader, writer = await asyncio.open_connection(HOST, door(broker))
        sent = [json.dumps({"payload": "eA==", "context": str(number)}) + "\n" * 40 for number in range(40)]
        writer.write(handshake(PRODUCER) + b"".join(ws_frame(TEXT, one.encode()) for one in sent))
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        for number in range(40):
            assert (await asyncio.wait_for(answer(reader), 10))["context"] == str(number)
        writer.close()

    run_on_broker(tmp_path, scenario)


def test_a_connection_that_ends_before_its_handshake_is_answered_leaves_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the broker stops meanwhile: the consumer is closed again, and no traceback stands in the log."""
    ended = asyncio.Event()
    accept, lost = Socket.accept, WebSocketConnection.connection_lost

    async def late(self: Socket) -> None:
        assert callable(self._abort)
        self._abort()
        await ended.wait()
        await accept(self)

    def noted(self: WebSocketConnection, exc: Exception | None) -> None:
        lost(self, exc)
        ended.set()

    monkeypatch.setattr(Socket, "accept", late)
    monkeypatch.setattr(WebSocketConnection, "connection_lost", noted)

    async def scenario(broker: RealBroker) -> None:
        reader, writer = await asyncio.open_connection(HOST, door(broker))
        writer.write(handshake("/ws/v2/consumer/persistent/public/default/t/s"))
        with suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 60)
        writer.close()
        async with asyncio.timeout(60):
            while (await broker.stats("t"))["subscriptions"]["s"]["consumers"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    run_on_broker(tmp_path, scenario)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
