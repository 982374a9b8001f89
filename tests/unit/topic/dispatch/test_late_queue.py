"""Entries that go out late: a queue against a list, whose memory follows what waits and which copies little."""

from __future__ import annotations

import random

import pytest

from magnetar.broker.topic.dispatch.late_queue import LateQueue


@pytest.mark.parametrize("seed", range(5))
def test_what_was_put_in_comes_out_in_its_order(seed: int) -> None:
    rng = random.Random(seed)
    queue, wanted = LateQueue(), list[int]()
    for step in range(300):
        match rng.randrange(12):
            case 0:
                queue.clear()
                wanted.clear()
            case 1 | 2 | 3:
                fresh = [step * 10_000 + i for i in range(rng.choice((0, 1, 50, 2000)))]
                queue.extend(fresh)
                wanted += fresh
            case _:
                count = rng.randint(0, min(len(wanted), rng.choice((3, 1500))))
                queue.drop(count)
                del wanted[:count]
        assert len(queue) == len(wanted)
        most = rng.choice((1, 10, 100_000))
        assert list(queue.front(most)) == wanted[:most]


def test_its_memory_follows_what_waits_and_taking_out_one_moves_nothing() -> None:
    """One that is never empty for months must not grow, and a queue of a million is not copied for each entry."""
    queue = LateQueue()
    queue.extend(range(100_000))
    held = queue._ordinals
    queue.drop(1)
    assert len(held) == 100_000
    for _ in range(200):
        queue.extend(range(5_000))
        queue.drop(5_000)
    queue.drop(len(queue) - 10)
    assert len(queue._ordinals) <= 5_000
