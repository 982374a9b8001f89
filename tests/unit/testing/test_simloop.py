"""The virtual-time loop keeps its promises. Rerun on every new CPython: the loop uses private hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from magnetar.testing.processes import Process, SimulationError
from magnetar.testing.simloop import SimClock, SimLoop, SimulationStuckError, run, run_in


def here() -> SimLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    return loop


def test_an_hour_of_sleep_takes_an_hour_of_virtual_time_only() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await here().create_future()
        return here().time()

    assert run(1, main()) == pytest.approx(3660)


def test_deadlock_names_each_waiting_task_and_its_line() -> None:
    async def inner() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        task = here().create_task(inner(), name="lonely")
        await task

    with pytest.raises(SimulationStuckError, match=r"2 waiting.*lonely at locks\.py:\d+ \(Event\.wait\)"):
        run(1, main())


def test_time_limit_finds_a_deadlock_hidden_behind_a_timer() -> None:
    async def tick() -> None:
        for _ in range(1_000_000):
            await asyncio.sleep(30)

    async def main() -> None:
        ticker = here().create_task(tick(), name="keepalive")
        await here().create_future()
        ticker.cancel()

    with pytest.raises(SimulationStuckError, match=r"limit of 3600 s.*keepalive"):
        run(1, main(), limit_s=3600)


def test_endless_callbacks_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magnetar.testing.simloop.IDLE_TURNS_MAX", 1000)

    async def main() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0)

    with pytest.raises(SimulationStuckError, match="never rest"):
        run(1, main())


def test_a_failed_callback_fails_the_run() -> None:
    def broken() -> None:
        raise ValueError("boom")

    async def main() -> None:
        here().call_soon(broken)
        await asyncio.sleep(1)

    with pytest.raises(SimulationError, match="seed 7: Exception in callback") as caught:
        run(7, main())
    assert isinstance(caught.value.__cause__, ValueError)


def test_call_soon_threadsafe_keeps_first_in_order() -> None:
    async def main() -> list[int]:
        seen: list[int] = []
        for number in range(5):
            here().call_soon_threadsafe(seen.append, number)
        await asyncio.sleep(0)
        return seen

    assert run(1, main()) == [0, 1, 2, 3, 4]


def test_a_held_executor_begins_nothing_and_then_does_all_in_order() -> None:
    async def main() -> None:
        executor = ThreadPoolExecutor(max_workers=1)
        done: list[int] = []
        here().hold(executor)
        here().hold(executor)
        jobs = [here().run_in_executor(executor, done.append, number) for number in range(5)]
        await asyncio.sleep(100)
        assert not done
        here().release(executor)
        await asyncio.gather(*jobs)
        assert done == list(range(5))
        await here().run_in_executor(executor, done.append, 5)
        assert done[-1] == 5

    run(1, main())


async def _jobs(executor: ThreadPoolExecutor, count: int) -> tuple[list[int], list[int]]:
    worked: list[int] = []
    completed: list[int] = []

    async def one(number: int) -> None:
        await here().run_in_executor(executor, worked.append, number)
        completed.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))
            if number % 3 == 0:
                await asyncio.sleep(0.003)
    return worked, completed


def test_one_thread_works_and_completes_in_submission_order() -> None:
    for seed in range(50):
        worked, completed = run(seed, _jobs(ThreadPoolExecutor(max_workers=1), 20))
        assert worked == completed == list(range(20))


def test_many_threads_give_no_order() -> None:
    orders = {tuple(run(seed, _jobs(ThreadPoolExecutor(max_workers=4), 8))[1]) for seed in range(20)}
    assert len(orders) > 10


def test_work_happens_between_submission_and_completion() -> None:
    async def main() -> tuple[float, float, float]:
        submitted = here().time()
        worked = await here().run_in_executor(None, here().time)
        return submitted, worked, here().time()

    runs = [run(seed, main()) for seed in range(50)]
    assert all(submitted < worked < completed for submitted, worked, completed in runs)
    assert len({worked for _, worked, _ in runs}) == 50


def test_work_raises_into_its_future_and_cancelled_queued_work_is_not_done() -> None:
    async def main() -> list[str]:
        executor = ThreadPoolExecutor(max_workers=1)
        done: list[str] = []
        first = here().run_in_executor(executor, done.append, "first")
        second = here().run_in_executor(executor, done.append, "second")
        second.cancel()
        await first
        with pytest.raises(ZeroDivisionError):
            await here().run_in_executor(executor, divmod, 1, 0)
        executor.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            await here().run_in_executor(executor, done.append, "late")
        return done

    assert run(1, main()) == ["first"]


async def _busy() -> list[tuple[str, float]]:
    story: list[tuple[str, float]] = []

    async def worker(name: str) -> None:
        for _ in range(5):
            await asyncio.sleep(here().rng.random())
            await here().run_in_executor(None, story.append, (name, here().time()))

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(worker(f"worker {number}"))
    return story


def _fingerprint(seed: int, main: Callable[[], Awaitable[object]]) -> tuple[object, tuple[int, int, int]]:
    loop = SimLoop(seed)

    async def wrapped() -> object:
        return await main()

    return run_in(loop, wrapped()), loop.fingerprint()


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    assert _fingerprint(5, _busy) == _fingerprint(5, _busy)
    assert len({_fingerprint(seed, _busy)[1] for seed in range(20)}) == 20


def test_unfinished_tasks_are_cancelled_at_the_end() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            ended.append("cleaned")

    async def main() -> None:
        left = here().create_task(forever())
        await asyncio.sleep(1)
        assert not left.done()

    run(1, main())
    assert ended == ["cleaned"]


def test_clock_follows_virtual_time_and_jumps() -> None:
    async def main() -> list[int]:
        clock = SimClock(here(), epoch_ms=1000)
        shown = [clock.now_ms()]
        await asyncio.sleep(1.5)
        shown.append(clock.now_ms())
        clock.jump(-60_000)
        shown.append(clock.now_ms())
        return shown

    assert run(1, main()) == [1000, 2500, -57_500]


class Victim:
    """A small program: a task, a timer, disk work, and a cleanup that wants to do more of each."""

    def __init__(self) -> None:
        self.ticks = 0
        self.written: list[int] = []
        self.receipts: list[int] = []
        self.cleaned = False

    def tick(self) -> None:
        self.ticks += 1
        here().call_later(0.01, self.tick)

    async def main(self) -> None:
        self.tick()
        try:
            for number in range(1000):
                await here().run_in_executor(None, self.written.append, number)
                self.receipts.append(number)
        finally:
            self.cleaned = True
            self.last = here().run_in_executor(None, self.written.append, -1)
            here().call_soon(self.written.append, -3)
            here().call_later(1, self.written.append, -4)
            await asyncio.sleep(1)
            self.written.append(-2)


def _killed(seed: int) -> Victim:
    victim = Victim()

    async def main() -> None:
        process = Process(here(), "victim")
        running = process.start(victim.main())
        await asyncio.sleep(0.5)
        assert not running.done()
        cut: list[str] = []
        process.at_kill(lambda: cut.append("cut"))
        process.kill()
        process.kill()
        before = victim.ticks, list(victim.written)
        await asyncio.sleep(10)
        assert cut == ["cut"]
        assert (victim.ticks, victim.written) == before
        with pytest.raises(SimulationError, match="dead"):
            await process.start(victim.main())

    run(seed, main())
    return victim


def test_a_killed_process_does_nothing_more() -> None:
    victim = _killed(3)
    assert victim.cleaned
    assert victim.ticks > 10
    assert min(victim.written) == 0, "something was done after the kill"


def test_a_kill_falls_before_and_after_the_work() -> None:
    """Over the seeds some work was done without its completion reaching the program, some was not."""
    lost = {len(victim.written) - len(victim.receipts) for victim in map(_killed, range(40))}
    assert lost == {0, 1}


def test_a_process_cannot_kill_itself_and_its_children_belong_to_it() -> None:
    async def child(process: Process, seen: list[Process | None]) -> None:
        seen.append(Process.current())
        with pytest.raises(SimulationError, match="itself"):
            process.kill()

    async def main() -> None:
        process = Process(here(), "parent")
        seen: list[Process | None] = []

        async def parent() -> None:
            await here().create_task(child(process, seen))

        await process.start(parent())
        assert seen == [process]
        assert Process.current() is None

    run(1, main())
