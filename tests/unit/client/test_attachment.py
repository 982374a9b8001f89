"""A handle that was open and cannot be opened again goes on trying, and says what is wrong."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from magnetar.client.aio.connections import attachment
from magnetar.client.aio.connections.attachment import Attachment
from magnetar.client.aio.topics.receipt import no_receipt
from magnetar.client.errors import ConnectionLostError, RefusedError
from magnetar.client.machines.handle_life import USUAL_BACKOFF
from magnetar.model.errors import ServerError
from magnetar.runtime.log import RateLimitedLog

REFUSED = RefusedError("log in", ServerError.AuthenticationError, "the token has expired")
AWAY = ConnectionLostError("the broker is away")
NOT_READY = RefusedError("look up", ServerError.ServiceNotReady, "not yet")


class Lookup:
    """Gives these one after the other; a pause takes no time, and the last attempt is never over."""

    backoff = USUAL_BACKOFF

    def __init__(self, answers: Sequence[Exception | None]) -> None:
        self._answers = list(answers)
        self.through = asyncio.Event()

    async def connect(self, topic: str) -> Any:
        if not self._answers:
            self.through.set()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if answer is not None:
            raise answer
        return object()

    async def pause(self, seconds: float) -> None: ...


def trouble_after(answers: Sequence[Exception | None]) -> Exception | None:
    """What is wrong with a handle that was opened and lost, and then met these."""

    async def main() -> Exception | None:
        lookup = Lookup([None, *answers])

        async def opened(connection: Any) -> None: ...

        handle = Attachment(
            "t", cast("Any", lookup), random.Random(1), opened, lambda error: pytest.fail(str(error)), timeout=10.0
        )
        await handle.opened()
        while not lookup.through.is_set():
            if handle.connection is not None:
                handle.on_lost(AWAY)
            await asyncio.sleep(0)
        trouble = handle.trouble
        assert handle.why == ("" if trouble is None else f" ({trouble})")
        await handle.close()
        return trouble

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of other tests do not count."""
    monkeypatch.setattr(attachment, "_limited", RateLimitedLog(logging.getLogger("magnetar.client.test"), burst=1))


@pytest.mark.parametrize(
    ("answers", "trouble", "lines"),
    [
        ([REFUSED, REFUSED, REFUSED], REFUSED, 1),
        ([AWAY, NOT_READY, AWAY], AWAY, 0),
        ([REFUSED, AWAY, ValueError("odd")], "odd", 2),
        ([REFUSED, None], None, 1),
    ],
)
def test_what_is_wrong_is_said_once_for_each_cause(
    answers: list[Exception | None], trouble: Exception | str | None, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert str(trouble_after(answers)) == str(trouble)
    assert len(caplog.messages) == lines
    for line in caplog.messages:
        assert line.startswith("t was open, and cannot be opened again; it is tried on: ")


def test_a_message_without_a_receipt_says_why_there_is_no_connection() -> None:
    said = str(no_receipt("t", "p", 3.0, REFUSED))
    assert said.startswith("t: a message of producer p got no receipt in 3 s; it is not connected: ")
    assert "the token has expired" in said
    assert "is the broker away" in str(no_receipt("t", "p", 3.0, None))
