"""Very many frames that are not whole at the same time."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.connection.bounds.unfinished_frames import UnfinishedFrames
from magnetar.testing.simloop import SimLoop, run_in

MB = 1 << 20


def test_shortage_costs_each_look_once_and_little_ones_count_when_they_are_many() -> None:
    """Hundreds of frames that came together were looked at for each of them."""
    told = looks = 0

    class One:
        def hold_off(self) -> None:
            nonlocal told
            told += 1

        carry_on = hold_off

        def too_slow(self, held: int) -> None: ...

    class Counted(UnfinishedFrames):
        def _divide(self) -> None:
            nonlocal looks
            looks += 1
            super()._divide()

    async def scenario() -> None:
        frames = Counted(10 * MB)
        many = [One() for _ in range(1_000)]
        for one in many:
            frames.changed(one, 0, 20_000, 0)
        await asyncio.sleep(0)
        assert told == 0
        for one in many:
            frames.changed(one, 20_000, 30_000, 0)
        await asyncio.sleep(0)
        # each is below what is its own, all together are three times the budget
        assert 600 < told < 3_000
        assert looks == 1
        for one in many:
            frames.changed(one, 30_000, 0, 0)
        await asyncio.sleep(0)
        assert frames.bytes == frames._wanted == 0
        assert frames._large == {}

    asyncio.run(scenario())


def test_a_frame_of_which_nothing_more_came_keeps_its_turn() -> None:
    """The first that began is the first that is read to its end, and then the next one has its turn."""

    class Sender:
        def __init__(self) -> None:
            self.reads = True

        def hold_off(self) -> None:
            self.reads = False

        def carry_on(self) -> None:
            self.reads = True

        def too_slow(self, held: int) -> None: ...

    async def scenario() -> None:
        frames = UnfinishedFrames(MB)
        first, second = Sender(), Sender()
        for sender in (first, second):
            frames.changed(sender, 0, 200_000, 400_000)
        await asyncio.sleep(0)
        assert (first.reads, second.reads) == (True, False)
        for before, held in ((200_000, 200_000), (200_000, 200_001)):
            frames.changed(first, before, held, 600_000 - held)
            await asyncio.sleep(0)
            assert (first.reads, second.reads) == (True, False)
        frames.changed(first, 200_001, 150_000, 450_000)  # it became whole, and another one has begun
        await asyncio.sleep(0)
        assert (first.reads, second.reads) == (False, True), "that one queues behind those that wait"
        frames.changed(second, 200_000, 0, 0)
        await asyncio.sleep(0)
        assert first.reads
        frames.changed(first, 150_000, 0, 0)
        assert (frames.bytes, frames._wanted, frames._large) == (0, 0, {})

    asyncio.run(scenario())


class Timed:
    """A sender that notes whether it is read and whether it was closed."""

    def __init__(self) -> None:
        self.reads = True
        self.closed = False

    def hold_off(self) -> None:
        self.reads = False

    def carry_on(self) -> None:
        self.reads = True

    def too_slow(self, held: int) -> None:
        self.closed = True


def test_the_time_of_an_earlier_shortage_does_not_count_in_the_next_one() -> None:
    async def scenario() -> None:
        frames = UnfinishedFrames(MB)
        first, second, third = Timed(), Timed(), Timed()
        frames.changed(first, 0, 200_000, 400_000)
        frames.changed(second, 0, 200_000, 400_000)
        await asyncio.sleep(1)
        frames.changed(second, 200_000, 0, 0)
        await asyncio.sleep(60)
        assert not first.closed, "nobody waited for it"
        frames.changed(third, 0, 200_000, 400_000)
        await asyncio.sleep(1.4)
        assert (first.reads, first.closed, third.reads) == (True, False, False)
        await asyncio.sleep(1.4)
        assert (first.closed, third.closed) == (True, False)
        frames.changed(first, 200_000, 0, 0)
        frames.changed(third, 200_000, 0, 0)
        await asyncio.sleep(60)

    run_in(SimLoop(1), scenario())


def test_a_frame_that_loses_its_place_is_not_to_blame_for_the_time_that_it_had() -> None:
    """The one before it became whole, and what follows there takes more room."""

    async def scenario() -> None:
        frames = UnfinishedFrames(MB)
        first, second, third = Timed(), Timed(), Timed()
        frames.changed(first, 0, 200_000, 100_000)
        frames.changed(second, 0, 200_000, 400_000)
        frames.changed(third, 0, 200_000, 200_000)
        await asyncio.sleep(1)
        assert [one.reads for one in (first, second, third)] == [True, True, False]
        frames.changed(first, 200_000, 250_000, 650_000)
        await asyncio.sleep(0)
        assert [one.reads for one in (first, second, third)] == [True, False, False]
        await asyncio.sleep(1.9)
        assert [one.closed for one in (first, second, third)] == [True, False, False]
        for one, held in ((first, 250_000), (second, 200_000), (third, 200_000)):
            frames.changed(one, held, 0, 0)
        await asyncio.sleep(60)
        assert (frames.bytes, second.closed, third.closed) == (0, False, False)

    run_in(SimLoop(1), scenario())


@pytest.mark.parametrize("behind_another", [False, True])
@pytest.mark.parametrize("held", [128 << 10, (128 << 10) + 1])
def test_the_first_128_kb_of_a_frame_are_each_connections_own(held: int, behind_another: bool) -> None:
    """Whatever came before it on the same connection."""

    async def scenario() -> None:
        frames, sender = UnfinishedFrames(MB), Timed()
        if behind_another:
            frames.changed(sender, 0, 200_000, 100_000)
        frames.changed(sender, frames.bytes, held, 300_000 - held)
        assert frames.bytes == held
        assert frames._wanted == (300_000 if held > 128 << 10 else 0)

    asyncio.run(scenario())


class Told:
    """A sender that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def hold_off(self) -> None:
        self.told.append("wait")

    def carry_on(self) -> None:
        self.told.append("read")

    def too_slow(self, held: int) -> None:
        self.told.append("end")


@pytest.mark.parametrize("over", [0, 1])
def test_frames_that_fill_the_budget_exactly_are_all_read_on(over: int) -> None:
    async def scenario() -> None:
        frames, first, second = UnfinishedFrames(MB), Told(), Told()
        frames.changed(first, 0, 200_000, 400_000)
        frames.changed(second, 0, 200_000, MB - 800_000 + over)
        assert second.told == ["wait"] * over
        await asyncio.sleep(0)
        assert (first.told, second.told) == ([], ["wait"] * over)
        assert frames._timer is None or over

    run_in(SimLoop(1), scenario())


def test_each_sender_is_told_once_what_is_to_be_done() -> None:
    """At once that it waits; not again for what arrives then, nor who has its turn; nobody who was not told to wait is
    told to read."""

    async def scenario() -> None:
        frames, first, second = UnfinishedFrames(MB), Told(), Told()
        frames.changed(first, 0, 200_000, 400_000)
        frames.changed(second, 0, 200_000, 400_000)
        assert (first.told, second.told) == ([], ["wait"]), "at once: until the next turn it would read on"
        await asyncio.sleep(0)
        frames.changed(first, 200_000, 300_000, 300_000)
        await asyncio.sleep(0)
        assert (first.told, second.told) == ([], ["wait"])
        frames.changed(first, 300_000, 0, 0)
        assert first.told == [], "it was never told to wait"
        await asyncio.sleep(0)
        assert second.told == ["wait", "read"]
        frames.changed(second, 200_000, 0, 0)
        assert second.told == ["wait", "read"]

    run_in(SimLoop(1), scenario())


def test_who_waits_and_whose_frame_became_whole_all_the_same_reads_on_at_once() -> None:
    """What it had sent before it was told to wait was all of it."""

    async def scenario() -> None:
        frames, first, second = UnfinishedFrames(MB), Told(), Told()
        frames.changed(first, 0, 200_000, 400_000)
        frames.changed(second, 0, 200_000, 400_000)
        assert second.told == ["wait"]
        frames.changed(second, 200_000, 0, 0)
        assert second.told == ["wait", "read"]
        await asyncio.sleep(0)
        assert (first.told, second.told) == ([], ["wait", "read"])
        frames.changed(first, 200_000, 0, 0)
        assert (frames.bytes, frames._wanted, frames._large) == (0, 0, {})

    run_in(SimLoop(1), scenario())


def test_who_was_counted_in_a_shortage_of_little_ones_is_counted_with_what_it_has_since() -> None:
    """A frame of 20 KB is looked at while all together are over the budget, and by then it grows; the next one on the
    same connection is little again."""

    async def scenario() -> None:
        frames, late = UnfinishedFrames(MB), Told()
        others = [Told() for _ in range(60)]
        for one in others:
            frames.changed(one, 0, 18_000, 0)
        frames.changed(late, 0, 20_000, 80_000)
        await asyncio.sleep(0)
        for one in others:
            frames.changed(one, 18_000, 0, 0)
        frames.changed(late, 20_000, 40_000, 60_000)
        assert (frames._large[late].held, frames._wanted) == (40_000, 100_000)
        frames.changed(late, 40_000, 30_000, 70_000)
        assert (frames.bytes, frames._large, frames._wanted) == (30_000, {}, 0)
        await asyncio.sleep(60)
        assert late.told[-1:] != ["end"]

    run_in(SimLoop(1), scenario())
