"""Memory is trimmed after each burst, and seldom otherwise."""

from __future__ import annotations

import asyncio

from magnetar.runtime.memory.trim import GROWN_BYTES, IDLE_SECONDS, PATIENCE, MemoryTrimmer, resident_bytes, trim


class Process:
    """A process with ``used`` memory that stays and ``free`` memory that trimming returns."""

    def __init__(self) -> None:
        self.used = 100 << 20
        self.free = 0
        self.trims = self.forgotten = self.withdrawals = 0
        self.busy = 0.0
        self.busy_between = 0.0
        """Seconds of work between two checks."""
        self.memory = MemoryTrimmer(
            self._forget, self._withdraw, self._trim, lambda: self.used + self.free, lambda: self.busy
        )

    async def _forget(self) -> None:
        assert self.forgotten == self.trims, "before the memory around it is given back"
        self.forgotten += 1

    async def _withdraw(self) -> None:
        assert self.forgotten == self.trims + 1, "after what is made anew is gone"
        self.withdrawals += 1

    def _trim(self) -> None:
        self.trims += 1
        self.free = 0

    def looks(self, count: int) -> int:
        """How often memory was trimmed in ``count`` checks."""
        before = self.trims

        async def all_of_them() -> None:
            for _ in range(count):
                self.busy += self.busy_between
                await self.memory.trim_if_grown()

        asyncio.run(all_of_them())
        return self.trims - before


def test_a_quiet_process_is_never_trimmed() -> None:
    process = Process()
    process.free = GROWN_BYTES - 1
    assert process.looks(100) == 0


def test_memory_is_trimmed_once_after_a_burst() -> None:
    process = Process()
    process.free = GROWN_BYTES
    assert process.looks(100) == 1
    process.free = GROWN_BYTES
    assert process.looks(1) == 1
    assert process.forgotten == 2


def test_memory_that_becomes_free_later_is_trimmed_too() -> None:
    process = Process()
    process.used += 10 * GROWN_BYTES
    assert process.looks(1) == 1
    process.used -= 10 * GROWN_BYTES
    process.free = 10 * GROWN_BYTES
    assert process.looks(PATIENCE) == 1
    assert process.free == 0


def test_a_large_process_is_trimmed_seldom() -> None:
    process = Process()
    process.used += 10 * GROWN_BYTES
    assert process.looks(1 + 10 * PATIENCE) == 11


def test_free_places_stay_at_hand_while_the_process_works() -> None:
    process = Process()
    process.used += 10 * GROWN_BYTES
    process.busy_between = IDLE_SECONDS
    assert process.looks(1 + 3 * PATIENCE) == 4
    assert process.withdrawals == 0
    process.busy_between = IDLE_SECONDS - 0.1
    assert process.looks(2 * PATIENCE) == 2
    assert process.withdrawals == 2


def test_malloc_trim_can_be_called() -> None:
    trim()
    assert resident_bytes() > 1 << 20
