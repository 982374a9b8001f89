"""Everything together: a toy log server that syncs before it answers survives every crash, three wrong ones do not.

The toy shows that the parts find what they are for, before there is a broker to try them on.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

import pytest
from typing_extensions import override

from magnetar.testing.faultfiles import Faults, StoppedError
from magnetar.testing.history import (
    ConsumerOpened,
    Crashed,
    Delivered,
    Drained,
    Event,
    MessagePosition,
    Receipted,
    Sent,
    Subscribed,
)
from magnetar.testing.history_check import Rules, check
from magnetar.testing.machine import Machine
from magnetar.testing.network import Network
from magnetar.testing.processes import SimulationError
from magnetar.testing.simloop import SimLoop, run

T = "log"
HEADER = struct.Struct(">II")


class LogServer(asyncio.Protocol):
    """A line in is a record; the answer is its number. ``early`` answers before the sync: a broken promise."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rest = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            number = self._log.records
            self._log.records += 1
            answer = b"%d %s\n" % (number, line)
            if self._log.early:
                self._transport.write(answer)
            durable = self._log.loop.run_in_executor(self._log.writer, self._log.write, line)
            if not self._log.early:
                durable.add_done_callback(partial(self._answer, answer))

    def _answer(self, answer: bytes, durable: asyncio.Future[None]) -> None:
        durable.result()
        self._transport.write(answer)


class Log:
    """[u32 size][u32 crc32][line] per record; what follows the last good one is cut at start."""

    def __init__(self, machine: Machine, *, early: bool = False, trusting: bool = False) -> None:
        self.loop = machine.loop
        self.early = early
        self.writer = ThreadPoolExecutor(max_workers=1)
        files = machine.files
        files.make()
        files.lock()
        self._file = files.open("log", create=True)
        files.sync()
        self.lines = list(self._recover(trusting))
        self.records = len(self.lines)

    def _recover(self, trusting: bool) -> list[str]:
        data = self._file.read(0, self._file.size())
        lines = []
        position = 0
        while position + HEADER.size <= len(data):
            size, checksum = HEADER.unpack_from(data, position)
            line = data[position + HEADER.size : position + HEADER.size + size]
            if len(line) < size or size == 0 or (zlib.crc32(line) != checksum and not trusting):
                break
            lines.append(line.decode(errors="replace"))
            position += HEADER.size + size
        self._file.truncate(position)
        self._file.sync()
        return lines

    def write(self, line: bytes) -> None:
        self._file.append([HEADER.pack(len(line), zlib.crc32(line)), line])
        self._file.sync()


Build = Callable[[Machine], Log]


async def _serve(machine: Machine, build: Build, logs: list[Log]) -> None:
    logs.append(build(machine))
    server = await machine.loop.create_server(lambda: LogServer(logs[-1]), "broker", 1)
    await server.serve_forever()


class Writer(asyncio.Protocol):
    """Sends numbered lines and writes the receipts into the history."""

    def __init__(self, history: list[Event]) -> None:
        self._history = history
        self._rest = b""
        self.lost = asyncio.get_running_loop().create_future()

    @override
    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            number, value = line.decode().split(" ", 1)
            self._history.append(Receipted(T, "w", value, MessagePosition(0, int(number))))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


def simulate(seed: int, build: Build, *, faults: Faults | None = None, cut_power: bool = True) -> list[str]:
    """Three lives of a machine under load, then what its disk says; the broken promises."""

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        network = Network(loop)
        logs: list[Log] = []
        machine = Machine(loop, network, lambda machine: _serve(machine, build, logs), faults=faults)
        history: list[Event] = [Subscribed(T, "s"), ConsumerOpened(T, "s", "c")]
        for life in range(3):
            booted = machine.boot()
            await asyncio.sleep(0.1)
            assert machine.running
            with pytest.raises(SimulationError, match="running already"):
                await machine.boot()
            transport, writer = await network.connect(lambda: Writer(history), "broker", 1)
            during = machine.power_off_during if cut_power else machine.kill_during
            stopped = during(loop.rng.randint(0, 38)) if life % 2 == 0 else None
            for number in range(20):
                value = f"{life}.{number} {'x' * loop.rng.randint(0, 2000)}"
                history.append(Sent(T, "w", value))
                transport.write(value.encode() + b"\n")
                await asyncio.sleep(loop.rng.uniform(0, 0.02))
            if stopped is not None:
                await stopped
            else:
                (machine.power_off if cut_power else machine.kill)()
            history.append(Crashed())
            await writer.lost
            assert not booted.done()
        last = build(machine)
        for number, value in enumerate(last.lines):
            history.append(Delivered(T, "s", "c", MessagePosition(0, number), value))
        return check([*history, Drained(T, "s")], Rules())

    return run(seed, main(), limit_s=600)


def test_a_log_that_syncs_first_survives() -> None:
    for seed in range(50):
        assert simulate(seed, Log) == []
        assert simulate(seed, Log, cut_power=False) == []


def test_answering_before_the_sync_is_caught() -> None:
    caught = sum(bool(simulate(seed, lambda machine: Log(machine, early=True))) for seed in range(20))
    assert caught > 10


def test_believing_torn_records_is_caught() -> None:
    caught = sum(bool(simulate(seed, lambda machine: Log(machine, trusting=True))) for seed in range(60))
    assert caught > 0


def test_a_lying_disk_is_caught() -> None:
    caught = sum(bool(simulate(seed, Log, faults=Faults(lying_sync=True))) for seed in range(20))
    assert caught > 10


def test_equal_seeds_break_the_same_promises() -> None:
    def early(machine: Machine) -> Log:
        return Log(machine, early=True)

    assert [simulate(seed, early) for seed in range(5)] == [simulate(seed, early) for seed in range(5)]


@pytest.mark.parametrize("calls", range(4))
def test_a_machine_may_stop_while_it_boots(calls: int) -> None:
    """Each writing call of the start: the creation, two syncs, the truncation. The next boot finds a usable disk."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        logs: list[Log] = []
        machine = Machine(loop, Network(loop), lambda machine: _serve(machine, Log, logs))
        stopped = machine.power_off_during(calls)
        booted = machine.boot()
        await stopped
        assert (machine.running, logs) == (False, [])
        with pytest.raises(StoppedError):
            await booted
        again = machine.boot()
        await asyncio.sleep(0.1)
        assert (machine.running, machine.boots, again.done(), len(logs)) == (True, 2, False, 1)

    for seed in range(10):
        run(seed, main())
