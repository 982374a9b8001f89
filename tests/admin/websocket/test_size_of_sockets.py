"""A WebSocket of which thousands may be open holds nothing that is large while it is empty, and no second copy."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from magnetar.admin.http.websocket_connection import WebSocketConnection, _ReceivedMessages
from tests.support.async_websocket import answer, opened
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.websocket_frames import TEXT, ws_frame

_STEPS = st.lists(st.sampled_from(["put", "get", "cancel", "turn"]), max_size=30)


def test_no_empty_deques_and_no_second_copy_of_the_headers(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        reader, writer = await opened(broker)
        writer.write(ws_frame(TEXT, b'{"payload":"eA=="}'))
        await answer(reader)
        gc.collect()
        (found,) = [one for one in gc.get_objects() if type(one) is WebSocketConnection]
        held = vars(found)
        parts = [*gc.get_referents(held["queue"]), *gc.get_referents(held["writable"])]
        assert [one for one in parts if isinstance(one, deque)] == []
        assert "headers" in found.scope
        assert not {"request", "response"} & set(held)
        writer.close()

    run_on_broker(tmp_path, scenario)


async def outcome(queue: _ReceivedMessages | asyncio.Queue[int], steps: list[str]) -> list[object]:
    """Return what one reader sees after each step."""
    seen: list[object] = []
    taken: list[object] = []
    reading: asyncio.Task[object] | None = None
    for number, step in enumerate(steps):
        if step == "put":
            queue.put_nowait(number)
        elif step == "get" and reading is None:
            reading = asyncio.ensure_future(queue.get())
        elif step == "cancel" and reading is not None:
            reading.cancel()
        else:
            for _ in range(4):
                await asyncio.sleep(0)
        if reading is not None and reading.done():
            taken.append("cancelled" if reading.cancelled() else reading.result())
            reading = None
        seen.append((list(taken), queue.empty()))
    if reading is not None:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return seen


@given(_STEPS)
def test_received_messages_wait_as_in_a_queue_of_asyncio(steps: list[str]) -> None:
    # a turn of the loop behind each step: which one of several steps is seen first is each one's own
    turned = [one for step in steps for one in (step, "turn")]
    assert asyncio.run(outcome(_ReceivedMessages(), turned)) == asyncio.run(outcome(asyncio.Queue(), turned))
