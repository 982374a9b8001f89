"""What ``magnetar produce`` says it produced is what was stored, also where it is ended in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from magnetar.cli.messages.produce.sender import Sender
from magnetar.model.errors import MagnetarError


class Promised:
    """A receipt as the client gives it."""

    def __init__(self) -> None:
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.done = self._future.done
        self.cancelled = self._future.cancelled
        self.exception = self._future.exception
        self.result = self._future.result

    def as_future(self) -> asyncio.Future[Any]:
        return self._future

    def __await__(self) -> Generator[Any, None, Any]:
        return self._future.__await__()

    def come(self, why_not: Exception | None = None) -> None:
        if why_not is None:
            self._future.set_result(object())
        else:
            self._future.set_exception(why_not)


class Producer:
    """Gives receipts; the third message is what ends the command, and closing brings what was on its way."""

    def __init__(self, ends: str) -> None:
        self._ends = ends
        self.given: list[Promised] = []

    async def create_producer(self, *_: object, **__: object) -> Producer:
        return self

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self.given[1].done():
            self.given[1].come()

    def message(self, body: bytes, *_: object, **__: object) -> bytes:
        return body

    async def enqueue(self, body: bytes) -> Promised:
        if body == b"third" and self._ends == "refused":
            raise MagnetarError("too large")
        self.given.append(Promised())
        if body == b"first":
            self.given[0].come()
        if body == b"third":
            if self._ends == "failed":
                self.given[1].come()
                self.given[2].come(MagnetarError("no room"))
            else:
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
        return self.given[-1]


@pytest.mark.parametrize("ends", ["refused", "failed", "stopped"])
def test_what_was_stored_is_counted_however_it_ends(ends: str, capsys: pytest.CaptureFixture[str]) -> None:
    sender = Sender(
        "t", ["first,second,third"], [], 1, 0, chunking=False, separator=",", properties=[],
        disable_replication=False, as_json=False,
    )  # fmt: skip

    async def send() -> None:
        await sender.send(Producer(ends))  # type: ignore[arg-type]

    with pytest.raises((MagnetarError, asyncio.CancelledError)):
        asyncio.run(asyncio.wait_for(send(), 20))
    sender.say_count()
    assert capsys.readouterr().out == "2 messages successfully produced\n"


def test_bytes_that_are_no_text_are_sent_as_they_were_typed() -> None:
    typed = b"\xff\xfe;\xc3\xa4".decode(errors="surrogateescape")
    sender = Sender(
        "t", [typed], [], 1, 0, chunking=False, separator=";", properties=[], disable_replication=False, as_json=False
    )
    assert sender._bodies == [b"\xff\xfe", b"\xc3\xa4"]
