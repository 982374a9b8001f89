"""Answers that are sent as they are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.types import Message

from magnetar.admin.http.bodies import Streamed


def test_pieces_go_out_as_they_come_and_end() -> None:
    async def pieces() -> AsyncIterator[str]:
        for piece in ("a", "ü"):
            yield piece

    sent = asyncio.run(sent_of(Streamed(pieces(), "text/plain", {"vary": "x"}), asyncio.Event()))
    assert sent[0]["status"] == 200
    assert dict(sent[0]["headers"]) == {b"vary": b"x", b"content-type": b"text/plain; charset=utf-8"}
    assert [(one["body"], one["more_body"]) for one in sent[1:]] == [(b"a", True), ("ü".encode(), True), (b"", False)]


def test_nothing_more_is_made_for_a_reader_who_has_left() -> None:
    left, made, closed = asyncio.Event(), list[int](), list[bool]()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            for number in range(1000):
                made.append(number)
                if number == 3:
                    left.set()
                await asyncio.sleep(0)
                yield b"x"
        finally:
            closed.append(True)

    async def scenario() -> None:
        await sent_of(Streamed(pieces(), "text/plain"), left)
        # the end of the loop would close them, too
        assert closed == [True]

    asyncio.run(scenario())
    assert len(made) < 10


async def sent_of(answer: Streamed, left: asyncio.Event) -> list[Any]:
    sent: list[Any] = []
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        for one in asked:
            return one
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await answer({"type": "http"}, receive, send)
    return sent
