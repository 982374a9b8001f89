"""Passes over subscriptions: the work of one turn of the loop, the order, and that every pass ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from magnetar.broker.throttling.passes import EACH, Passes


@pytest.mark.parametrize("seed", range(10))
def test_each_step_is_taken_once_in_order_and_a_turn_of_the_loop_has_a_bounded_share(seed: int) -> None:
    """Whatever the steps take, one turn ends with the step that uses up its units, and passes take turns."""

    async def main() -> None:
        rng, turn = Random(seed), 0
        units = rng.choice((100, 2_000))
        passes = Passes(units)
        loop = asyncio.get_running_loop()

        def next_turn() -> None:  # the first of its turn's callbacks
            nonlocal turn
            turn += 1
            loop.call_soon(next_turn)

        loop.call_soon(next_turn)
        await asyncio.sleep(0)
        took, taken, ended = Counter[int](), dict[int, list[int]](), list[int]()

        def start(number: int, steps: int) -> None:
            mine: list[int] = []
            taken[number] = mine

            def step(thing: int) -> int:
                assert took[turn] < units, "this turn had used up its units"
                cost = rng.choice((0, 1, 50))
                took[turn] += EACH + cost
                mine.append(thing)
                return cost

            passes.start(range(steps), step, lambda: ended.append(number))

        sizes = [rng.choice((0, 1, 3, 40, 400)) for _ in range(12)]
        for number, size in enumerate(sizes):
            start(number, size)
            while rng.random() < 0.3:  # noqa: ASYNC110
                await asyncio.sleep(0)
        while passes:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert taken == {number: list(range(size)) for number, size in enumerate(sizes)}
        assert sorted(ended) == list(range(12))
        assert turn <= 24 + sum(took.values()) // units * 2

    asyncio.run(main())


def test_a_short_pass_does_not_wait_for_the_end_of_a_long_one() -> None:
    async def main() -> None:
        passes, ended = Passes(), list[str]()
        passes.start(range(10_000), lambda _: 0, lambda: ended.append("long"))
        passes.start(range(10), lambda _: 0, lambda: ended.append("short"))
        assert (len(passes), ended) == (2, [])
        while passes:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert ended == ["short", "long"]
        passes.start(range(10), lambda _: 0, lambda: ended.append("alone"))
        assert ended[-1] == "alone", "nobody waits, and this turn has units left"

    asyncio.run(main())


def test_what_fails_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        passes, done, ended = Passes(units=EACH * 3), list[int](), list[str]()

        def step(thing: int) -> int:
            if thing % 3 == 1:
                raise RuntimeError(f"step {thing}")
            done.append(thing)
            return 0

        def end() -> None:
            ended.append("first")
            raise RuntimeError("the end")

        passes.start(range(9), step, end)
        passes.start(range(9), step, lambda: ended.append("second"))
        while passes:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert done.count(8) == 2
        assert Counter(done) == dict.fromkeys((0, 2, 3, 5, 6, 8), 2)
        assert ended == ["first", "second"]

    asyncio.run(main())
    said = caplog.text
    assert all(f"RuntimeError: {what}" in said for what in ("step 1", "step 7", "the end"))
