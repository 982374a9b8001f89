"""When acknowledgements are written: the first after a pause at once, those of a stretch together."""

from __future__ import annotations

import pytest

from magnetar.client.machines.ack_pace import PACE, AckPace


def written(pace: AckPace, times: list[float]) -> list[float]:
    """Return when something is written, if one acknowledgement comes at each of these times and timers are on time."""
    found, count, due = list[float](), 0, float("inf")
    for now in [*times, float("inf")]:
        while count and due <= now:
            pace.written(due)
            found.append(due)
            count, due = 0, float("inf")
        if now == float("inf"):
            return found
        count += 1
        due = min(due, pace.due(now, count))
        if due <= now:
            pace.written(now)
            found.append(now)
            count, due = 0, float("inf")
    return found


def test_the_first_goes_at_once_and_the_others_together() -> None:
    pace = AckPace(0.0, 1_000, at_once=False)
    assert written(pace, [5.0, 5.004, 5.008, 7.0]) == [5.0, 5.0 + PACE, 7.0]


def test_a_stretch_costs_a_hundred_a_second() -> None:
    pace = AckPace(0.0, 1_000, at_once=False)
    assert len(written(pace, [number / 1_000 for number in range(1_000)])) in range(90, 120)


@pytest.mark.parametrize(("group_time", "many"), [(0.0, 3), (0.5, 3)])
def test_many_do_not_wait(group_time: float, many: int) -> None:
    pace = AckPace(group_time, many, at_once=False)
    pace.written(5.0)
    assert pace.due(5.001, many - 1) > 5.001
    assert pace.due(5.001, many) == 5.001


def test_a_time_of_the_applications_own_is_kept() -> None:
    assert written(AckPace(0.5, 1_000, at_once=True), [5.0, 5.1, 5.4, 6.0]) == [5.5, 6.5]


def test_what_is_awaited_goes_at_once() -> None:
    assert written(AckPace(0.0, 1_000, at_once=True), [5.0, 5.001, 5.002]) == [5.0, 5.001, 5.002]
