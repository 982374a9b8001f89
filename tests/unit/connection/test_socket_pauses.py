"""A socket is read unless there is a reason not to: its transport is asked once for each change."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest

from magnetar.broker.connection.bounds.socket_pauses import MEMORY, PUBLISHES, RATE, WORK, PausableSocket

REASONS = (PUBLISHES, RATE, WORK, MEMORY)


class Transport:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def pause_reading(self) -> None:
        self.asked.append("pause")

    def resume_reading(self) -> None:
        self.asked.append("resume")


def socket() -> tuple[PausableSocket, list[str]]:
    transport = Transport()
    return PausableSocket(cast(Any, transport)), transport.asked


@pytest.mark.parametrize("reasons", list(itertools.permutations(REASONS, 3)))
def test_it_is_read_again_when_the_last_reason_is_gone(reasons: tuple[int, ...]) -> None:
    read, asked = socket()
    for reason in reasons:
        for _ in range(2):
            read.stop_reading(reason)
        assert not read.reading
        assert asked == ["pause"]
    assert read.reading_paused == (PUBLISHES in reasons)
    for number, reason in enumerate(reversed(reasons), 1):
        for _ in range(2):
            read.read_again(reason)
        assert read.reading == (number == len(reasons))
        assert asked == ["pause", "resume"][: 1 + read.reading]


def test_a_reason_that_was_not_there_is_not_taken_back() -> None:
    read, asked = socket()
    read.read_again(WORK)
    assert (read.reading, asked) == (True, [])
    read.stop_reading(RATE)
    read.read_again(WORK)
    assert (read.reading, asked) == (False, ["pause"])


def test_a_transport_that_is_closed_is_asked_for_nothing() -> None:
    """It might refuse: what comes late, say the disk's answer, must not fail for that."""
    read, asked = socket()
    read.stop_reading(PUBLISHES)
    read.closed = True
    read.read_again(PUBLISHES)
    read.stop_reading(WORK)
    read.stop_reading(RATE)
    assert asked == ["pause"]


def test_only_messages_that_wait_for_the_disk_are_shown_as_a_pause() -> None:
    read, _ = socket()
    for reason in (RATE, WORK, MEMORY):
        read.stop_reading(reason)
    assert not read.reading_paused
    read.pause_reading()
    assert read.reading_paused
    read.resume_reading()
    assert not read.reading_paused and not read.reading
