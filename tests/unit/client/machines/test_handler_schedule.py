"""The messages at hand of a handler's run against a model: keys in order, some at a time, in any order of ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.client.machines.handler_schedule import NEVER, HandlerSchedule

STEPS = st.lists(
    st.tuples(st.sampled_from(("add", "add", "start", "done", "hold", "wait", "give up")), st.integers(0, 4)),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(1, 4))
def test_any_walk(steps: list[tuple[str, int]], concurrency: int) -> None:
    """The oldest message of a key is tried until it is done, and nothing that was added is forgotten."""
    schedule: HandlerSchedule[int] = HandlerSchedule(concurrency, 12)
    waiting: dict[int | None, list[int]] = {}
    key_of: dict[int, int | None] = {}
    started: list[int] = []
    held: dict[int, float] = {}
    tries: dict[int, int] = {}
    now, number = 0.0, 0

    def start() -> None:
        for item in [one for one, until in held.items() if until <= now]:
            del held[item]
        for item, before in schedule.start(now):
            assert tries.get(item, 0) == before
            tries[item] = before + 1
            key = key_of[item]
            assert key is None or waiting[key][0] == item, "not the oldest of its key"
            assert item not in held, "before its time"
            started.append(item)
        assert len(started) <= concurrency

    for step, choice in steps:
        if step == "add" and schedule.room:
            key = choice or None
            number += 1
            key_of[number] = key
            waiting.setdefault(key, []).append(number)
            schedule.add(number, key)
        elif step == "start":
            start()
        elif step == "done" and started:
            item = started.pop(choice % len(started))
            waiting[key_of[item]].remove(item)
            schedule.done(item)
        elif step == "hold" and started:
            item = started.pop(choice % len(started))
            held[item] = now + choice
            schedule.hold(item, now + choice)
        elif step == "wait":
            now += choice / 2
        elif step == "give up":
            left = schedule.give_up()
            assert sorted(left) == sorted({item for items in waiting.values() for item in items} - set(started))
            held.clear()
            for item in left:
                waiting[key_of[item]].remove(item)
        schedule.check()
        assert schedule.next_due == min(held.values(), default=NEVER)
    rounds = 0
    while not schedule.empty:
        rounds += 1
        assert rounds < 200, "something is never started"
        now = max(now, schedule.next_due if schedule.next_due != NEVER else now)
        start()
        for item in started:
            waiting[key_of[item]].remove(item)
            schedule.done(item)
        started.clear()
        schedule.check()
    assert not any(waiting.values())
