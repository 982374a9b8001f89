"""What producers' sockets have under way is one budget: the next frame waits, no socket is stopped by the others."""

from __future__ import annotations

import asyncio
import base64
import json
from types import SimpleNamespace
from typing import Any, cast

from magnetar.admin.websocket.produce_memory import ProduceMemory
from magnetar.admin.websocket.producer_socket import ProducerSocket
from magnetar.admin.websocket.upgrade import SocketGoneError
from magnetar.client.machines.message_id import MessageId
from tests.support.connections import until
from tests.support.loop_turns import settled

FRAME = json.dumps({"payload": base64.b64encode(b"x" * 600).decode()})
SIZE = len(FRAME)


class Peer:
    """A socket's peer that sends ``frames`` without waiting, and a producer that stores what it is told to."""

    def __init__(self, memory: ProduceMemory, frames: int) -> None:
        self.frames = [FRAME] * frames
        self.receipts: list[asyncio.Future[MessageId]] = []
        self.answers: list[str] = []
        self.gone = asyncio.Event()
        producer = SimpleNamespace(message=lambda *parts: parts, send_nowait=self._send_nowait)
        self.serving = asyncio.create_task(
            self._serve(ProducerSocket(cast(Any, self), cast(Any, producer), 99, memory))
        )

    async def _serve(self, socket: ProducerSocket) -> None:
        try:
            await socket.run()
        except* SocketGoneError:
            pass

    async def receive(self) -> str:
        if self.frames:
            return self.frames.pop()
        await self.gone.wait()
        raise SocketGoneError

    async def send(self, text: str) -> None:
        self.answers.append(text)

    def _send_nowait(self, message: object) -> asyncio.Future[MessageId]:
        self.receipts.append(asyncio.get_running_loop().create_future())
        return self.receipts[-1]

    def store(self, index: int) -> None:
        self.receipts[index].set_result(MessageId(0, index))


def test_frames_wait_for_what_others_have_under_way_and_go_on_in_turn() -> None:
    async def scenario() -> None:
        memory = ProduceMemory(5 * SIZE)
        first = Peer(memory, 9)
        await until(lambda: len(first.receipts) == 5)
        second, third = Peer(memory, 3), Peer(memory, 3)
        await settled()
        assert [len(one.receipts) for one in (first, second, third)] == [5, 1, 1], "each has one under way at least"
        assert memory.held == 7 * SIZE
        first.store(0)
        first.store(1)
        await settled()
        assert memory.held == 5 * SIZE, "no room yet"
        first.store(2)
        await settled()
        assert [len(one.receipts) for one in (first, second, third)] == [6, 1, 1], "it asked first"
        first.store(3)
        await settled()
        assert [len(one.receipts) for one in (first, second, third)] == [6, 2, 1]
        third.store(0)
        await settled()
        assert [len(one.receipts) for one in (first, second, third)] == [6, 2, 2], "none of its own was under way"
        assert (len(first.answers), len(third.answers)) == (4, 1)
        for one in (first, second, third):
            one.serving.cancel()
        await settled()
        assert memory.held == 0
        second.store(0)  # the receipt comes when nobody is there
        await settled()
        assert memory.held == 0

    asyncio.run(scenario())


def test_room_is_not_given_to_one_that_went_on_without() -> None:
    async def scenario() -> None:
        memory = ProduceMemory(3 * SIZE)
        first, second, _ = peers = [Peer(memory, frames) for frames in (9, 2, 9)]
        await settled()
        assert [len(one.receipts) for one in peers] == [3, 1, 1], "they wait in this order"
        second.store(0)
        await settled()
        assert [len(one.receipts) for one in peers] == [3, 2, 1], "none of its own was under way"
        for index in range(4):
            first.store(index)
            await settled()
        assert [len(one.receipts) for one in peers] == [5, 2, 2], "the third has what the second did not need"
        for one in peers:
            one.serving.cancel()
        await settled()

    asyncio.run(scenario())


def test_a_socket_that_ends_makes_room() -> None:
    async def scenario() -> None:
        memory = ProduceMemory(3 * SIZE)
        first, second = Peer(memory, 3), Peer(memory, 5)
        await settled()
        assert [len(one.receipts) for one in (first, second)] == [3, 1]
        waiting = Peer(memory, 2)  # it leaves from the line
        await settled()
        waiting.serving.cancel()
        first.gone.set()
        await first.serving
        await until(lambda: len(second.receipts) == 3)
        assert memory.held == 3 * SIZE
        second.serving.cancel()
        await settled()
        assert memory.held == 0

    asyncio.run(scenario())


def test_a_frame_that_is_refused_is_not_under_way() -> None:
    async def scenario() -> None:
        memory = ProduceMemory(SIZE)
        peer = Peer(memory, 2)
        peer.frames += ["{", '{"payload": 1}']
        await until(lambda: len(peer.answers) == 2 and len(peer.receipts) == 1)
        assert memory.held == SIZE
        peer.store(0)
        await until(lambda: len(peer.receipts) == 2)
        peer.gone.set()
        peer.store(1)
        await peer.serving
        assert memory.held == 0

    asyncio.run(scenario())
