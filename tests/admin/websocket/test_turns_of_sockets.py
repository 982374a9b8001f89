"""However many frames or chunks a peer sends at once, a few are handled at a time; what is half sent is bounded."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from magnetar.admin.http.websocket_connection import ROUND, WebSocketConnection
from magnetar.broker.connection import listener
from magnetar.broker.connection.bounds import unfinished_frames
from magnetar.broker.connection.bounds.turns import Turns
from tests.support.async_websocket import answer, door, opened
from tests.support.real_broker import HOST, RealBroker, run_on_broker
from tests.support.websocket_frames import CONTINUATION, PING, TEXT, ws_frame

SOME = 20_000


@contextmanager
def rounds() -> Iterator[list[int]]:
    """The units that were worked in each round."""
    found: list[int] = []
    begin = Turns._begin

    def noted(self: Turns) -> None:
        if self.round == ROUND:  # of this door
            found.append(ROUND - self.left)
        begin(self)

    with patch.object(Turns, "_begin", noted):
        yield found


def test_turns_are_taken_in_the_order_of_asking_and_a_round_ends_when_it_is_used_up() -> None:
    async def scenario() -> None:
        turns, order = Turns(ROUND), list[str]()

        class Socket:
            def __init__(self, name: str, rounds: int) -> None:
                self.name, self.rounds = name, rounds

            def turn(self) -> None:
                order.append(self.name)
                turns.spent(ROUND)
                self.rounds -= 1
                if self.rounds:
                    turns.queue(self)

        for one in (Socket("a", 3), Socket("b", 1), Socket("c", 2)):
            turns.queue(one)
        await asyncio.sleep(0)
        assert order == ["a"]
        for _ in range(10):
            await asyncio.sleep(0)
        assert order == ["a", "b", "c", "a", "c", "a"]
        assert len(turns) == 0

    asyncio.run(scenario())


def test_a_flood_of_frames_is_handled_a_few_at_a_time(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        reader, writer = await opened(broker)
        message = base64.b64encode(b"x").decode()
        with rounds() as worked:
            writer.write(ws_frame(PING, b"x") * SOME + ws_frame(TEXT, b'{"payload": "%s"}' % message.encode()))
            got = await reader.readexactly(3 * SOME)
            assert got == b"\x8a\x01x" * SOME
            assert (await answer(reader))["result"] == "ok"
        assert max(worked) < 1000
        assert sum(worked) >= SOME
        writer.close()

    run_on_broker(tmp_path, scenario)


def test_a_message_in_thousands_of_frames_is_one_message(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        reader, writer = await opened(broker)
        text = b'{"payload": "%s", "context": "1"}' % base64.b64encode(bytes(6000))
        parts = [ws_frame(TEXT, text[:1], last=False)]
        for i in range(1, len(text) - 1):
            parts += [ws_frame(CONTINUATION, text[i : i + 1], last=False), ws_frame(CONTINUATION, last=False)]
        parts.append(ws_frame(CONTINUATION, text[-1:]))
        with rounds() as worked:
            writer.write(b"".join(parts))
            said = await answer(reader)
        assert (said["result"], said["context"]) == ("ok", "1")
        assert max(worked) < 1000
        writer.close()

    run_on_broker(tmp_path, scenario)


def test_a_body_in_thousands_of_chunks_is_handled_a_few_at_a_time(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        reader, writer = await asyncio.open_connection(HOST, door(broker))
        with rounds() as worked:
            body = b'{"allowedClusters": ["standalone"]}' + b" " * SOME
            chunks = b"".join(b"1\r\n%c\r\n" % one for one in body)
            writer.write(
                b"PUT /admin/v2/tenants/chunky HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                b"Content-Type: application/json\r\n\r\n" + chunks + b"0\r\n\r\n"
            )
            assert b" 204 " in await reader.readuntil(b"\r\n\r\n")
        assert max(worked) < 1500
        assert sum(worked) >= SOME
        writer.close()

    run_on_broker(tmp_path, scenario)


def test_half_messages_share_the_budget_of_all_connections(tmp_path: Path) -> None:
    """Those that do not become whole lose their connection, and what they held is not kept."""

    async def scenario(broker: RealBroker) -> None:
        budget = broker.node.broker.connections.unfinished
        made: list[WebSocketConnection] = []
        count = WebSocketConnection._count

        def noted(self: WebSocketConnection) -> None:
            if self not in made:
                made.append(self)
            count(self)

        with (
            patch.object(unfinished_frames, "FRAME_SECONDS", 0.2),
            patch.object(listener, "UNFINISHED_MAX", 1),
            patch.object(WebSocketConnection, "_count", noted),
        ):
            half = [await opened(broker) for _ in range(16)]
            assert budget.most < 12_000_000
            for _, writer in half:
                writer.write(ws_frame(TEXT, b"x" * 1_000_000)[:-1])
            reader, writer = await opened(broker)
            writer.write(ws_frame(TEXT, b'{"payload": "%s"}' % base64.b64encode(bytes(300_000))))
            assert (await asyncio.wait_for(answer(reader), 20))["result"] == "ok"
            for _ in range(200):
                if budget.bytes <= budget.most:
                    break
                await asyncio.sleep(0.05)
            assert budget.bytes <= budget.most
            for _, one in half:
                one.transport.abort()
            writer.close()
            for _ in range(200):
                if not budget.bytes:
                    break
                await asyncio.sleep(0.05)
        assert budget.bytes == 0
        assert [len(one.conn.reader.buffer) for one in made] == [0] * 17

    run_on_broker(tmp_path, scenario)


def test_a_frame_with_very_many_values_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        reader, writer = await opened(broker)
        many = {str(number): "" for number in range(30_000)}
        writer.write(ws_frame(TEXT, json.dumps({"payload": "", "properties": many}).encode()))
        said = await answer(reader)
        assert said["result"] == "send-error:3"
        assert "more than 20000 values" in said["errorMsg"]
        writer.write(ws_frame(TEXT, json.dumps({"payload": "", "properties": {"commas": "," * 30_000}}).encode()))
        assert (await answer(reader))["result"] == "ok"
        writer.close()

    run_on_broker(tmp_path, scenario)
