"""A simulated computer: a disk, a clock, a place in the network, and one program that can be killed and booted again.

The program is any coroutine function that takes the machine; it finds the disk in :attr:`Machine.files` and listens
through the loop. Between two boots only the disk survives, and of it only what :meth:`FaultFileSystem.crash` leaves
after a power cut, or all of it after a mere kill of the process (the kernel's page cache outlives kill -9).
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any

from magnetar.testing.faultfiles import FaultFileSystem, Faults
from magnetar.testing.network import Network
from magnetar.testing.processes import Process, SimulationError
from magnetar.testing.simloop import SimClock, SimLoop


class Machine:
    """Owned by the simulation. ``program`` is started by :meth:`boot`, in a process of its own."""

    def __init__(
        self,
        loop: SimLoop,
        network: Network,
        program: Callable[[Machine], Coroutine[Any, Any, None]],
        *,
        name: str = "broker",
        faults: Faults | None = None,
    ) -> None:
        self.loop = loop
        self.network = network
        self.name = name
        self.clock = SimClock(loop)
        self.files = FaultFileSystem(random.Random(loop.rng.getrandbits(64)), faults, new=True)
        self.boots = 0
        self._program = program
        self._process: Process | None = None
        self._main: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether the program was started and has neither ended nor been killed."""
        return self._process is not None and self._process.alive and self._main is not None and not self._main.done()

    @property
    def process(self) -> Process:
        """The program as it runs."""
        if self._process is None:
            raise SimulationError(f"{self.name} is not running")
        return self._process

    def boot(self) -> asyncio.Task[None]:
        """Start the program on the disk as it is. Its failure is the awaiter's, as an exit status would be."""
        if self.running:
            raise SimulationError(f"{self.name} is running already")
        self.boots += 1
        self._process = Process(self.loop, f"{self.name}#{self.boots}")
        self._main = self._process.start(self._program(self))
        return self._main

    def run(self, errand: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Something the running program does beside its main task; ends with it."""
        try:
            return self.process.start(errand)
        except SimulationError:
            errand.close()
            raise

    def kill(self) -> None:
        """kill -9: the program is gone, the operating system and its page cache are not."""
        self._stop()
        self.files = self.files.reopened()

    def power_off(self) -> None:
        """The program is gone and so is whatever had not reached the disk."""
        self._stop()
        self.files = self.files.crash(self.loop.rng)

    def power_off_during(self, calls: int) -> asyncio.Future[None]:
        """Power off inside a disk call, after ``calls`` more writing ones; the future is done when it happened.

        Between the calls of one executor job a crash can come in this way only
        (:meth:`~magnetar.testing.faultfiles.FaultFileSystem.stop_after`).
        """
        return self._stop_during(calls, self.power_off)

    def kill_during(self, calls: int) -> asyncio.Future[None]:
        """Do as :meth:`power_off_during` does, with :meth:`kill`."""
        return self._stop_during(calls, self.kill)

    def _stop_during(self, calls: int, end: Callable[[], None]) -> asyncio.Future[None]:
        ended: asyncio.Future[None] = self.loop.create_future()

        def stop() -> None:
            end()
            if not ended.done():
                ended.set_result(None)

        # In a context of its own: the call comes from inside the process that is about to die.
        outside = contextvars.Context()
        self.files.stop_after(calls, lambda: outside.run(self.loop.call_soon, stop))
        return ended

    def _stop(self) -> None:
        if self._process is not None:
            self.files.detach()  # first: a dying program's `finally` blocks must not reach the disk
            self._process.kill()
            self._process = None
