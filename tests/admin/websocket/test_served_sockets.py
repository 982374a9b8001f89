"""What becomes of a socket that has ended."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, cast
from weakref import ref

import pytest

from magnetar.admin.websocket.delivery_socket import CloseSocketError
from magnetar.admin.websocket.routes import _serve
from magnetar.admin.websocket.upgrade import Socket, SocketGoneError
from magnetar.model.errors import InvalidValueError


class Peer:
    """A socket that notes how it was closed."""

    def __init__(self) -> None:
        self.closed: list[Any] = []

    async def accept(self) -> None: ...

    async def close(self, code: int, reason: str = "") -> None:
        self.closed.append((code, reason))


class Frame:
    """A message that a function holds while it ends."""


@pytest.mark.parametrize(
    ("error", "closed"),
    [
        (SocketGoneError(), []),
        (CloseSocketError(1008, "enough"), [(1008, "enough")]),
        (InvalidValueError("no"), [(1011, "no")]),
    ],
)
def test_its_last_message_is_let_go_without_the_garbage_collector(error: Exception, closed: list[Any]) -> None:
    class Served:
        async def run(self) -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(asyncio.sleep(60))
                frame = Frame()
                held.append(ref(frame))
                raise error

    held: list[ref[Frame]] = []
    peer = Peer()
    gc.disable()
    try:
        asyncio.run(_serve(cast("Socket", peer), Served(), lambda: True))
        assert held[0]() is None
    finally:
        gc.enable()
    assert peer.closed == closed
