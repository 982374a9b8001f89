"""The event of which thousands may be had does what ``asyncio.Event`` does."""

from __future__ import annotations

import asyncio
import gc

from hypothesis import given
from hypothesis import strategies as st

from magnetar.runtime.event import Event
from tests.support.object_parts import bytes_of

_STEPS = st.lists(st.sampled_from(["set", "clear", "wait", "cancel", "turn"]), max_size=30)


async def outcome(event: Event | asyncio.Event, steps: list[str]) -> list[object]:
    """Return what can be seen of an event after each step."""
    seen: list[object] = []
    waiting: list[asyncio.Task[object]] = []
    for step in steps:
        if step == "set":
            event.set()
        elif step == "clear":
            event.clear()
        elif step == "wait":
            waiting.append(asyncio.ensure_future(event.wait()))
        elif step == "cancel":
            for one in waiting[-2:]:
                one.cancel()
        else:
            for _ in range(3):
                await asyncio.sleep(0)
        seen.append((event.is_set(), [(one.done(), one.cancelled()) for one in waiting]))
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return seen


@given(_STEPS)
def test_it_does_what_the_one_of_asyncio_does(steps: list[str]) -> None:
    assert asyncio.run(outcome(Event(), steps)) == asyncio.run(outcome(asyncio.Event(), steps))


def test_who_waits_leaves_nothing_behind() -> None:
    async def main() -> None:
        event = Event()
        for _ in range(100):
            try:
                await asyncio.wait_for(event.wait(), 0)
            except TimeoutError:
                pass
        assert sum(map(len, [one for one in gc.get_referents(event) if isinstance(one, list)])) == 0

    asyncio.run(main())


def test_it_is_small() -> None:
    assert bytes_of([Event()]) < 100 < bytes_of([asyncio.Event()])
