"""One simulated world per seed: network, broker, history; and the runs over many seeds.

``MAGNETAR_SEEDS=<factor>`` multiplies the number of seeds, ``MAGNETAR_SEED=<n>`` runs one alone: a failure prints the
line that repeats it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.ports import BrokerPorts
from magnetar.config.settings import Settings
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.broker import BrokerMachine, Tamper
from magnetar.testing.history import Crashed, Drained, Event
from magnetar.testing.history_check import Rules, verify
from magnetar.testing.network import Network
from magnetar.testing.processes import Process
from magnetar.testing.simloop import SimLoop, run_in
from magnetar.testing.transport import Weather
from tests.support.broker_audit import audit_broker

SMALL = StoreSettings(
    segment_bytes=20_000, aligned_bytes_min=1_500, cache_bytes=8_000, ledger_entries_max=40,
    ledger_min_rollover_ms=0, ledger_bytes_max=1 << 20, reserve_bytes=4_000,
)  # fmt: skip
"""Everything rolls over, is sealed and is evicted many times in a short run; blocks lie on pages and between them."""

T = "persistent://public/default/t"
_AUDITED_EVERY = 100  # events of the history
ENOUGH_SEEDS = 40  # of which one has to notice a wrong build


class World:
    """What a simulation's coroutine gets."""

    def __init__(self, seed: int, settings: Settings, storage: StoreSettings, tamper: Tamper | None) -> None:
        self.loop = SimLoop(seed, limit_s=86_400.0, disk_delay_s=(0.0001, 0.005))
        self.rng = self.loop.rng
        self.network = Network(self.loop, Weather(delay_s=(0.0002, 0.004)))
        self.settings = settings
        self.storage = storage
        self.tamper = tamper
        self.history: list[Event] = []
        self.machine: BrokerMachine
        self.archive: ParquetArchive | None = None
        """For simulations that offload; set before the first boot."""
        self.tasks: list[asyncio.Task[Any]] = []
        self.wrong: AssertionError | None = None
        """What :meth:`audit` found first. Whoever called it may be a client that only ends by that."""

    def add(self, event: Event) -> None:
        """Into the history."""
        self.history.append(event)
        if len(self.history) % _AUDITED_EVERY == 0:
            self.audit()

    def audit(self) -> None:
        """What the broker counts is what there is; a wrong build has other things to be found by."""
        if self.tamper is None and "machine" in vars(self) and self.machine.running:
            try:
                audit_broker(self.machine.broker)
            except AssertionError as error:
                self.wrong = self.wrong or error
                raise

    def start(self, *actors: Coroutine[Any, Any, Any]) -> None:
        """Run clients beside the simulation's own coroutine."""
        for actor in actors:
            self.tasks.append(self.loop.create_task(actor))

    async def finish(self, *actors: Coroutine[Any, Any, Any]) -> None:
        """Run clients until all of them have ended."""
        await asyncio.gather(*actors)

    def check_tasks(self) -> None:
        """A client that failed is a failure of the simulation."""
        for task in self.tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def boot(self) -> None:
        """First boot."""
        self.machine = BrokerMachine(
            self.loop, self.network, settings=self.settings, storage=self.storage, tamper=self.tamper
        )
        self.machine.archive = self.archive
        await self.machine.start()

    async def crash(self) -> None:
        """End the broker at this moment or inside one of its next disk calls, and boot it again after a while."""
        assert Process.current() is None
        self.audit()
        kind = self.rng.choice(("kill", "power", "kill during", "power during"))
        if kind == "kill":
            self.machine.kill()
        elif kind == "power":
            self.machine.power_off()
        else:
            during = self.machine.kill_during if kind == "kill during" else self.machine.power_off_during
            ended = during(self.rng.randint(0, 6))
            try:
                await asyncio.wait_for(asyncio.shield(ended), 2.0)
            except TimeoutError:
                self.machine.power_off()
        self.add(Crashed())
        await asyncio.sleep(self.rng.uniform(0.1, 0.5))
        self.add(Crashed())  # frames that were on the wire have arrived by now
        await self.machine.start()
        assert not self.machine.broker.store.damage, self.machine.broker.store.damage

    async def restart(self) -> None:
        """An orderly stop and a start."""
        self.add(Crashed())  # unacknowledged entries come again
        self.audit()
        await self.machine.stop()
        await asyncio.sleep(self.rng.uniform(0.1, 0.3))
        self.add(Crashed())
        await self.machine.start()
        assert not self.machine.broker.store.damage, self.machine.broker.store.damage

    async def quiet(self, seconds: float = 10.0) -> None:
        """Return when nothing has been written into the history for so long."""
        length = -1
        for _ in range(100):
            if length == len(self.history):
                return
            length = len(self.history)
            await asyncio.sleep(seconds)
        raise AssertionError(f"never at rest: the last of {length} events is {self.history[-1]}")

    async def end(self, *subscriptions: tuple[str, str]) -> None:
        """Wait until whatever was going to come has come, and say so."""
        await self.quiet()
        for topic, subscription in subscriptions:
            self.add(Drained(topic, subscription))

    def stuck(self) -> int:
        """How often a subscription stood still since the last start (docs/guarantees.md: Nothing stands still)."""
        return self.machine.broker.service.stuck_total

    def backlog(self, topic: str, subscription: str) -> int:
        """What the broker says is not acknowledged."""
        return self.machine.broker.service.topics[topic].subscriptions[subscription].cursor.backlog()

    def verify(self, rules: Mapping[str, Rules] | Rules) -> None:
        """Raises HistoryError; a subscription that had to be healed is an error of ours, however well that went."""
        self.check_tasks()
        self.audit()
        assert not self.stuck(), "a subscription stood still and had to be healed"
        verify(self.history, rules)


Simulation = Callable[[World], Coroutine[Any, Any, None]]


def run_seed(
    simulation: Simulation,
    seed: int,
    *,
    tamper: Tamper | None = None,
    settings: Settings | None = None,
    storage: StoreSettings = SMALL,
    watched: bool = False,
) -> None:
    """One run; raises what the simulation found.

    ``watched``: the broker looks after subscriptions that stand still. Otherwise not: it would heal what a simulation
    is there to notice.
    """
    settings = settings or Settings()
    world = World(seed, settings if watched else replace(settings, livenessCheckSeconds=0), storage, tamper)
    try:
        run_in(world.loop, simulation(world))
    finally:
        if world.wrong is not None:
            raise world.wrong


def run_seeds(simulation: Simulation, count: int, **options: Any) -> None:
    """So many seeds; the first that fails is named."""
    alone = os.environ.get("MAGNETAR_SEED")
    factor = float(os.environ.get("MAGNETAR_SEEDS", "1"))
    for seed in [int(alone)] if alone else range(max(1, round(count * factor))):
        try:
            run_seed(simulation, seed, **options)
        except BaseException as error:
            place = f"{simulation.__module__}.{simulation.__qualname__}"
            raise AssertionError(
                f"{place} failed with seed {seed}: {error}\nreplay: MAGNETAR_SEED={seed} make test (or pytest -k …)"
            ) from error


def ports_of(world: World) -> BrokerPorts:
    """What an administrator of the running broker can do."""
    broker = world.machine.broker
    return local_ports(broker.service, broker.rates, broker.connections)


def caught(simulation: Simulation, tamper: Tamper, *, saying: str = "", by_each_of: int = 0, **options: Any) -> None:
    """Raise AssertionError unless the simulation notices that the build is wrong, in one of ``ENOUGH_SEEDS`` seeds.

    It ends with the first seed that notices. The bound is generous because which seeds notice changes with every
    schedule: one that three of the first ten notice today may be missed by all ten tomorrow.

    ``saying``: what the error has to say, so that it is not the fault that stumbles.
    ``by_each_of``: so many seeds, and every one of them has to notice it.
    """
    others: list[str] = []
    for seed in range(by_each_of or ENOUGH_SEEDS):
        try:
            run_seed(simulation, seed, tamper=tamper, **options)
        except Exception as error:
            if saying not in str(error):
                others.append(repr(error)[:300])
            elif not by_each_of:
                return
        else:
            assert not by_each_of, f"{simulation.__qualname__} notices nothing with seed {seed}"
    assert by_each_of and not others, f"{simulation.__qualname__} notices nothing in any seed; it raised {others}"
