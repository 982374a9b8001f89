"""What a call has made when Ctrl-C drops it is taken back, however late the interrupt comes."""

from __future__ import annotations

import asyncio

from magnetar.client.blocking.loop_thread import _Call


def _dropped(abandoned_before: bool) -> list[str]:
    """A call that has a result, and whose thread is interrupted before or after that."""
    undone: list[str] = []

    async def result() -> str:
        return "result"

    async def main() -> None:
        call = _Call(result(), undone.append)
        call.start()
        if abandoned_before:
            call.abandoned = True
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.abandoned = True
        call.cancel()
        call.cancel()

    asyncio.run(main())
    return undone


def test_interrupted_before_the_result() -> None:
    """The result that comes all the same is taken back once."""
    assert _dropped(abandoned_before=True) == ["result"]


def test_interrupted_after_the_result() -> None:
    """The thread was about to return it."""
    assert _dropped(abandoned_before=False) == ["result"]
